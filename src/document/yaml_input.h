// YamlInput: a text as the YAML library reads it, with a bound on how far it reads ahead.
//
// The library keeps all tokens of a list or mapping in brackets, some 200 bytes each, until it has seen the
// end of it: a MiB of "[" would cost hundreds of MiB before there is the first event. So this counts the
// signs that may begin a token, and whoever hears the events resets the count. A text of allowed length
// between two events has no more signs than the bound.
#pragma once

#include <cstddef>
#include <streambuf>
#include <string_view>

#include "document/tree_builder.h"

namespace voda {

class YamlInput final : public std::streambuf {
 public:
  static constexpr std::size_t kMostSigns = 2 * kMaxScalarBytes;  // '' is one quote of a text
  struct TooFarAhead {};                                          // thrown to the reader

  explicit YamlInput(std::string_view text) : rest_(text) {}
  void OnEvent() { signs_ = 0; }

 protected:
  int_type underflow() override;

 private:
  std::string_view rest_;
  std::size_t signs_ = 0;  // since the last event
  char last_ = '\n';
};

}  // namespace voda
