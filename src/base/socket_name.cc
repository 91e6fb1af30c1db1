#include "base/socket_name.h"

#include <fcntl.h>
#include <fmt/format.h>

namespace voda {

SocketName::SocketName(const std::string& path) : text_(path) {
  const auto slash = path.rfind('/');
  if (path.size() <= kLongest || slash == path.npos) return;
  folder_ = Fd(::open(path.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (folder_.ok()) text_ = fmt::format("/proc/self/fd/{}{}", folder_.get(), path.substr(slash));
}

}  // namespace voda
