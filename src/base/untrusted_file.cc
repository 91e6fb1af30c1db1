#include "base/untrusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/files.h"

namespace voda {

namespace {

Error CannotRead(const std::string& path, int code) {
  return SystemError(fmt::format("read {}", path), code);
}

// Reads until `most` bytes are there or the file ends. Returns the code of what failed, else 0.
int ReadSome(int file, std::int64_t offset, std::size_t most, std::string& text) {
  char chunk[16384];
  while (text.size() < most) {
    const std::size_t wanted = std::min(sizeof chunk, most - text.size());
    const ssize_t got =
        ::pread(file, chunk, wanted, static_cast<off_t>(offset + static_cast<std::int64_t>(text.size())));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    text.append(chunk, chunk + got);
  }
  return 0;
}

}  // namespace

Result<Fd> OpenUntrusted(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
  if (!file.ok()) {
    // Nothing is below what is no folder. A link and a socket are something else than a regular file.
    const bool none = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO;
    if (none) return Fd();
    return CannotRead(path, errno);
  }
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return CannotRead(path, errno);
  return S_ISREG(about.st_mode) ? std::move(file) : Fd();
}

Result<std::optional<std::string>> ReadUntrusted(const std::string& path, std::size_t limit) {
  const auto file = OpenUntrusted(path);
  if (!file) return file.error();
  if (!file->ok()) return std::optional<std::string>();
  std::string text;
  if (const int code = ReadSome(file->get(), 0, limit + 1, text); code != 0) return CannotRead(path, code);
  return text.size() > limit ? std::nullopt : std::optional(std::move(text));
}

Result<std::string> ReadUntrustedAt(const std::string& path, std::int64_t offset, std::size_t most) {
  const auto file = OpenUntrusted(path);
  if (!file) return file.error();
  std::string text;
  if (!file->ok()) return text;
  if (const int code = ReadSome(file->get(), offset, most, text); code != 0) return CannotRead(path, code);
  return text;
}

std::int64_t UntrustedSize(const std::string& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) ? about.st_size : 0;
}

bool SameFile(const std::string& path, int file) {
  struct stat named {};
  struct stat open {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(file, &open) == 0 && named.st_ino == open.st_ino &&
         named.st_dev == open.st_dev;
}

Fd MakeUntrusted(const std::string& path, int flags) {
  ::unlink(path.c_str());
  return Fd(::open(path.c_str(), flags | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

}  // namespace voda
