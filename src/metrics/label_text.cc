#include "metrics/label_text.h"

#include <cstdint>

namespace voda {

namespace {

// The length of the character that begins here, 0 where none does.
std::size_t CharacterAt(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t code = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

}  // namespace

std::string LabelText(std::string_view text, std::size_t bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = CharacterAt(text);
    const std::string_view piece = length > 0 ? text.substr(0, length) : "\xef\xbf\xbd";
    if (out.size() + piece.size() > bytes) break;
    out += piece;
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

}  // namespace voda
