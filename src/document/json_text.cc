#include "document/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/utf8.h"

namespace voda {

namespace {

constexpr std::size_t kBriefBytes = 60;

bool Plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

// The character at the front, which is not plain. Returns how many bytes it took.
std::size_t AppendEscaped(std::string& out, std::string_view text) {
  constexpr std::string_view kBytes = "\"\\\b\f\n\r\t";
  constexpr std::string_view kNames = "\"\\bfnrt";
  const char c = text.front();
  const std::size_t length = CharacterBytes(text);
  if (const auto at = kBytes.find(c); at != kBytes.npos) {
    out += '\\';
    out += kNames[at];
  } else if (length == 0) {
    out += "\xEF\xBF\xBD";
  } else if (static_cast<unsigned char>(c) < ' ') {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
  } else {
    out += text.substr(0, length);
  }
  return std::max<std::size_t>(length, 1);
}

}  // namespace

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto plain = std::find_if_not(text.begin(), text.end(), Plain);
    out.append(text.begin(), plain);
    text = std::string_view(plain, text.end());
    if (!text.empty()) text.remove_prefix(AppendEscaped(out, text));
  }
  out += '"';
}

std::string Quoted(std::string_view text) {
  std::string out;
  AppendQuoted(out, text);
  return out;
}

std::string QuotedBrief(std::string_view text) {
  if (text.size() <= kBriefBytes) return Quoted(text);
  // Not through the middle of a character, which would show as a replacement.
  std::size_t end = kBriefBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}... ({} bytes)", Quoted(text.substr(0, end)), text.size());
}

void AppendNumber(std::string& out, double value) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  fmt::format_to(std::back_inserter(out), "{}",
                 std::isnan(value) ? 0.0 : std::clamp(value, -kLargest, kLargest));
}

}  // namespace voda
