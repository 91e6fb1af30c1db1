#include "service/data_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/fd.h"

namespace voda {

namespace {

Error CannotMake(const std::string& path, const std::string& why) {
  return Error{
      fmt::format("--data {}: cannot be made: {}; name a folder that this user may write to", path, why)};
}

}  // namespace

Status PrepareDataFolder(const std::string& path, bool shared) {
  std::error_code error;
  const std::string bare = path.substr(0, path.find_last_not_of('/') + 1);  // without "/" at its end
  const std::filesystem::path parent = std::filesystem::path(bare).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return CannotMake(path, error.message());
  const bool made = ::mkdir(path.c_str(), 0700) == 0;
  struct stat found {};
  if (!made && errno != EEXIST) return CannotMake(path, std::strerror(errno));
  if (::stat(path.c_str(), &found) != 0) return CannotMake(path, std::strerror(errno));
  if (!S_ISDIR(found.st_mode)) return CannotMake(path, "it is no folder");
  if (::access(path.c_str(), W_OK) != 0) {
    return Error{fmt::format("--data {}: cannot be written: {}; name another folder or mend its permissions",
                             path, std::strerror(errno))};
  }
  if (!made && !shared && (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    const bool everybodys = (found.st_mode & S_ISVTX) != 0;  // as /tmp
    return Error{fmt::format(
        "--data {}: other users may write to it (mode {:04o}) and put files in the place of Voda's; {}", path,
        found.st_mode & 07777U,
        everybodys ? fmt::format("name a folder in it that Voda makes, such as {}",
                                 (std::filesystem::path(path) / "voda").string())
                   : fmt::format("run: chmod go-w {}, or name another folder", path))};
  }
  return Ok{};
}

Status WriteServerFile(const std::string& path, const std::string& url) {
  const std::string temporary = path + ".new";
  const std::string text = url + "\n";
  const Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool written =
      file.get() >= 0 && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::rename(temporary.c_str(), path.c_str()) != 0) {
    return Error{fmt::format("{} cannot be written: {}", path, std::strerror(errno))};
  }
  return Ok{};
}

}  // namespace voda
