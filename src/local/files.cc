#include "local/files.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/untrusted_file.h"

namespace voda::local {

std::string ReadEnd(const std::string& path, std::size_t limit) {
  const std::int64_t begin = UntrustedSize(path) - static_cast<std::int64_t>(limit);
  auto text = ReadUntrustedAt(path, std::max<std::int64_t>(0, begin), limit);
  return text ? std::move(*text) : std::string();
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

Result<std::vector<std::string>> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  const auto failed = [&path](int code) { return SystemError(fmt::format("list {}", path), code); };
  const auto close = [](DIR* listed) { ::closedir(listed); };
  const std::unique_ptr<DIR, decltype(close)> folder(::opendir(path.c_str()), close);
  // Below something that is no folder there are no names, either.
  if (!folder && (errno == ENOENT || errno == ENOTDIR)) return names;
  if (!folder) return failed(errno);
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) return failed(errno);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (names.size() == kMostNames) return failed(EOVERFLOW);
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void RemoveTree(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string BootId() {
  const auto text = ReadFile("/proc/sys/kernel/random/boot_id", 256);
  return text ? text->substr(0, text->find('\n')) : "unknown";
}

}  // namespace voda::local
