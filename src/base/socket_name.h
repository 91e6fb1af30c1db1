// SocketName: how to call a Unix socket, for which the system takes 107 bytes at most. A longer path is
// reached through a descriptor of its folder.
#pragma once

#include <string>

#include "base/fd.h"

namespace voda {

class SocketName {
 public:
  static constexpr std::size_t kLongest = 107;  // bytes

  explicit SocketName(const std::string& path);
  // To bind or connect to while this object lives. If the folder of a long path cannot be opened, the path.
  const std::string& text() const { return text_; }

 private:
  Fd folder_;
  std::string text_;
};

}  // namespace voda
