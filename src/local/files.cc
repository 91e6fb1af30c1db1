#include "local/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace voda::local {

namespace {

void SyncFolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  const Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.ok()) ::fsync(fd.get());
}

}  // namespace

Error SystemError(std::string_view doing, int code) {
  return Error{fmt::format("cannot {}: {}", doing, std::strerror(code))};
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

Result<std::string> ReadWhole(const std::string& path, std::size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) return SystemError(fmt::format("read {}", path), errno);
  std::string text;
  char chunk[16384];
  for (;;) {
    const ssize_t got = ::read(fd.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(fmt::format("read {}", path), errno);
    if (got == 0) return text;
    if (text.size() + static_cast<std::size_t>(got) > limit) {
      return Error{fmt::format("{} has more than {} bytes", path, limit)};
    }
    text.append(chunk, static_cast<std::size_t>(got));
  }
}

std::string ReadEnd(const std::string& path, std::size_t limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.ok() || ::fstat(fd.get(), &status) != 0) return {};
  const auto size = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  const std::size_t wanted = std::min(size, limit);
  std::string text(wanted, '\0');
  std::size_t have = 0;
  while (have < wanted) {
    const ssize_t got =
        ::pread(fd.get(), text.data() + have, wanted - have, static_cast<off_t>(size - wanted + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

Status ReplaceFile(const std::string& path, std::string_view text, mode_t mode, Durable durable) {
  const std::string temporary = path + ".tmp";
  ::unlink(temporary.c_str());
  {
    const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd.ok() || !WriteAll(fd.get(), text) || ::fchmod(fd.get(), mode) != 0 ||
        (durable == Durable::kYes && ::fsync(fd.get()) != 0)) {
      const int code = errno;
      ::unlink(temporary.c_str());
      return SystemError(fmt::format("write {}", path), code);
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    return SystemError(fmt::format("write {}", path), code);
  }
  if (durable == Durable::kYes) SyncFolderOf(path);
  return Ok{};
}

Status MakeFolder(const std::string& path, mode_t mode) {
  for (std::size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at + 1);
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return SystemError(fmt::format("make the folder {}", part), errno);
    }
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return SystemError(fmt::format("make the folder {}", path), errno);
  if (!S_ISDIR(status.st_mode)) return SystemError(fmt::format("make the folder {}", path), ENOTDIR);
  return Ok{};
}

bool Exists(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

double BootTime() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string BootId() {
  const auto text = ReadWhole("/proc/sys/kernel/random/boot_id", 256);
  return text ? text->substr(0, text->find('\n')) : "unknown";
}

}  // namespace voda::local
