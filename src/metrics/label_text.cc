#include "metrics/label_text.h"

#include "base/utf8.h"

namespace voda {

std::string LabelText(std::string_view text, std::size_t bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = CharacterBytes(text);
    const std::string_view piece = length > 0 ? text.substr(0, length) : "\xef\xbf\xbd";
    if (out.size() + piece.size() > bytes) break;
    out += piece;
    text.remove_prefix(length > 0 ? length : 1);
  }
  return out;
}

}  // namespace voda
