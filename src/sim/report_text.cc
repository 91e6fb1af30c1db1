#include "sim/report_text.h"

#include <fmt/format.h>

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

std::string SafeInHtml(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace voda::sim
