#include "service/data_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files.h"

namespace voda {

namespace {

Error CannotMake(const std::string& path, const std::string& why) {
  return Error{
      fmt::format("--data {}: cannot be made: {}; name a folder that this user may write to", path, why)};
}

bool Names(const std::string& server_file, const std::string& url) {
  constexpr std::size_t kMostBytes = 4096;
  const auto text = ReadFile(server_file, kMostBytes);
  return text && *text == url + "\n";
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
  if (Names(path, url)) return Ok{};
  Status written = ReplaceFile(path, url + "\n", 0600, Durable::kNo);
  if (!written) ::unlink(path.c_str());  // nobody is sent where Voda is not
  return written;
}

void RemoveServerFile(const std::string& path, const std::string& url) {
  if (Names(path, url)) ::unlink(path.c_str());
}

std::string SocketPath(const std::string& data) {
  return data + "/socket";
}

std::string ProgressSocketPath(const std::string& data) {
  return data + "/progress";
}

}  // namespace voda
