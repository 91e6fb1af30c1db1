#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace voda {

namespace {

Fd OpenToRead(const std::string& path, FileKind kind) {
  return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (kind == FileKind::kRegular ? O_NONBLOCK : 0)));
}

void SyncFolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.ok()) ::fsync(fd.get());
}

// Writes a file that will get its name when it is whole. Returns the code of what failed, else 0.
int WriteTemporary(const std::string& path, std::string_view text, mode_t mode, Durable durable) {
  ::unlink(path.c_str());
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (fd.ok() && WriteAll(fd.get(), text) && ::fchmod(fd.get(), mode) == 0 &&
      (durable == Durable::kNo || ::fsync(fd.get()) == 0)) {
    return 0;
  }
  const int code = errno;
  ::unlink(path.c_str());
  return code;
}

}  // namespace

Error SystemError(std::string_view doing, int code) {
  return Error{fmt::format("cannot {}: {}", doing, std::strerror(code))};
}

Result<std::string> ReadOpenFile(const Fd& file, const std::string& path, std::size_t limit, FileKind kind) {
  const auto failed = [&path](int code) { return SystemError(fmt::format("read {}", path), code); };
  if (!file.ok()) return failed(errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return failed(errno);
  if (kind == FileKind::kRegular && !S_ISREG(about.st_mode))
    return S_ISDIR(about.st_mode) ? failed(EISDIR) : Error{fmt::format("{} is not a regular file", path)};
  std::string text;
  char chunk[16384];
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) return text;
    text.append(chunk, chunk + got);
    if (text.size() > limit) return Error{fmt::format("{} is larger than {} bytes", path, limit)};
  }
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<std::string> ReadFile(const std::string& path, std::size_t limit, FileKind kind) {
  return ReadOpenFile(OpenToRead(path, kind), path, limit, kind);
}

Result<std::optional<std::string>> ReadFileIfAny(const std::string& path, std::size_t limit, FileKind kind) {
  const Fd file = OpenToRead(path, kind);
  // Below something that is no folder there is no file, either.
  if (!file.ok() && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
  auto text = ReadOpenFile(file, path, limit, kind);
  if (!text) return text.error();
  return std::optional<std::string>(std::move(*text));
}

Status ReplaceFile(const std::string& path, std::string_view text, mode_t mode, Durable durable) {
  const std::string temporary = path + ".tmp";
  int code = WriteTemporary(temporary, text, mode, durable);
  if (code == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
    code = errno;
    ::unlink(temporary.c_str());
  }
  if (code != 0) return SystemError(fmt::format("write {}", path), code);
  if (durable == Durable::kYes) SyncFolderOf(path);
  return Ok{};
}

Status MakeFile(const std::string& path, std::string_view text, mode_t mode) {
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  int code = WriteTemporary(temporary, text, mode, Durable::kYes);
  if (code == 0) {
    if (::link(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST) code = errno;
    ::unlink(temporary.c_str());
  }
  if (code != 0) return SystemError(fmt::format("write {}", path), code);
  SyncFolderOf(path);
  return Ok{};
}

}  // namespace voda
