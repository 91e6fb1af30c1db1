#include "local/plain_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/files.h"

namespace voda::local {

namespace {

std::string TargetOf(const std::string& link) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length < 0 ? std::string() : std::string(target, static_cast<std::size_t>(length));
}

}  // namespace

bool PlainInPath(char c) {
  return c == '/' || c == '.' || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

Result<std::string> PlainPath(const std::string& folder) {
  if (std::all_of(folder.begin(), folder.end(), PlainInPath)) return folder;
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return SystemError(fmt::format("look at {}", folder), errno);
  const std::string link = fmt::format("/tmp/voda-{}-{:x}-{:x}", ::geteuid(), about.st_dev, about.st_ino);
  // Where /tmp is everybody's, another user may have taken the name and must not choose our script.
  struct stat found {};
  const bool ours = ::lstat(link.c_str(), &found) == 0 && found.st_uid == ::geteuid();
  if (ours && TargetOf(link) == folder) return link;
  if (ours) ::unlink(link.c_str());
  if (::symlink(folder.c_str(), link.c_str()) == 0) return link;
  const Error error = SystemError(fmt::format("link {} to {}", link, folder), errno);
  return Error{
      fmt::format("{}; MPIJobs need it, or a data folder without spaces and other characters that a "
                  "shell takes apart",
                  error.message)};
}

}  // namespace voda::local
