#include "sim/report_json.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/utf8.h"

namespace voda::sim {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    out += length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string Shorten(const std::string& valid_utf8, size_t bytes_max) {
  if (valid_utf8.size() <= bytes_max) return valid_utf8;
  size_t cut = bytes_max;
  while (cut > 0 && (static_cast<unsigned char>(valid_utf8[cut]) & 0xC0) == 0x80) --cut;
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
