#include "kube/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace voda::kube {

Result<std::string> ReadSmallFile(const std::string& path, bool changes, std::size_t limit) {
  const auto failed = [&](int code) {
    return Error{fmt::format("{} cannot be read: {}", path, std::strerror(code))};
  };
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (changes ? O_NONBLOCK : 0)));
  if (file.get() < 0) return failed(errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return failed(errno);
  if (S_ISDIR(about.st_mode)) return failed(EISDIR);
  if (changes && !S_ISREG(about.st_mode)) return Error{fmt::format("{} is not a regular file", path)};
  std::string text;
  std::array<char, 16384> block;
  while (true) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > limit) return Error{fmt::format("{} is larger than {} bytes", path, limit)};
  }
}

}  // namespace voda::kube
