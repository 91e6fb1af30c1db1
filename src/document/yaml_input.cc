#include "document/yaml_input.h"

namespace voda {

YamlInput::int_type YamlInput::underflow() {
  constexpr std::size_t kPiece = 1024;
  constexpr std::string_view kSigns = "[]{},?:*&!\"'";
  constexpr std::string_view kBlank = " \t\r\n";
  const std::string_view piece = rest_.substr(0, kPiece);
  if (piece.empty()) return traits_type::eof();
  rest_.remove_prefix(piece.size());
  for (const char c : piece) {
    const bool comment = c == '#' && kBlank.find(last_) != std::string_view::npos;
    if (comment || kSigns.find(c) != std::string_view::npos) ++signs_;
    last_ = c;
  }
  if (signs_ > kMostSigns) throw TooFarAhead{};
  char* const begin = const_cast<char*>(piece.data());  // nothing is written there
  setg(begin, begin, begin + piece.size());
  return traits_type::to_int_type(piece.front());
}

}  // namespace voda
