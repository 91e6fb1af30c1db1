#include "sim/report_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace voda::sim {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned char ByteAt(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Bytes of the valid UTF-8 character at `i`, or 0 (Unicode 15, table 3-7).
size_t CharacterLength(std::string_view text, size_t i) {
  const unsigned char lead = ByteAt(text, i);
  if (lead < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (i + length > text.size()) return 0;
  if (ByteAt(text, i + 1) < low || ByteAt(text, i + 1) > high) return 0;
  for (size_t k = 2; k < length; ++k) {
    if ((ByteAt(text, i + k) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
    out += length == 0 ? kReplacement : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return out;
}

std::string Shorten(const std::string& valid_utf8, size_t bytes_max) {
  if (valid_utf8.size() <= bytes_max) return valid_utf8;
  size_t cut = bytes_max;
  while (cut > 0 && (ByteAt(valid_utf8, cut) & 0xC0) == 0x80) --cut;
  return valid_utf8.substr(0, cut) + "\xE2\x80\xA6";
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : ValidUtf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || c == '<' || c == '>' || c == '&' || byte == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendJsonNumber(std::string& out, double value, int decimals) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const double scale = std::pow(10.0, decimals);
  const double scaled = value * scale;
  // Beyond 2^53 a double has no decimals to round away.
  const double rounded = std::abs(scaled) < 9e15 ? std::round(scaled) / scale : value;
  fmt::format_to(std::back_inserter(out), "{}", rounded == 0 ? 0.0 : rounded);
}

}  // namespace voda::sim
