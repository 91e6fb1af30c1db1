#include "ledger/stop_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/files.h"
#include "base/log.h"

namespace voda {

namespace {

constexpr std::string_view kHold = "hold ";
constexpr std::string_view kDelete = "delete ";

}  // namespace

StopFile::StopFile(std::string path) : path_(std::move(path)) {
  Read();
  Reserve();
}

void StopFile::Read() {
  const auto text = ReadFileIfAny(path_, kBytes, FileKind::kRegular);
  if (!text) {
    Log(LogLevel::kError, "stops of jobs that the store does not have yet cannot be read",
        {{"why", text.error().message}});
    return;
  }
  if (!*text) return;
  // A line without an end, or behind zeros, was never acknowledged.
  std::string_view left = **text;
  left = left.substr(0, left.find('\0'));
  for (std::size_t end = 0; (end = left.find('\n')) != left.npos; left.remove_prefix(end + 1)) {
    const std::string_view line = left.substr(0, end);
    if (line.starts_with(kHold)) stops_.emplace(line.substr(kHold.size()), Stop::kHold);
    if (line.starts_with(kDelete)) stops_[std::string(line.substr(kDelete.size()))] = Stop::kDelete;
    used_ += end + 1;
  }
}

void StopFile::Reserve() {
  if (reserved_) return;
  if (!file_.ok()) file_ = Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // What follows the lines may be half a line of a run that died.
  reserved_ = file_.ok() && Overwrite(used_, std::string(kBytes - used_, '\0'));
  if (!reserved_)
    Log(LogLevel::kWarn, "no room for stopping jobs could be reserved; on a full disk they cannot be stopped",
        {{"path", path_}, {"why", std::strerror(errno)}});
}

bool StopFile::Overwrite(std::size_t at, const std::string& bytes) const {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written =
        ::pwrite(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return ::fdatasync(file_.get()) == 0;
}

bool StopFile::Put(const std::string& job, Stop stop) {
  const auto known = stops_.find(job);
  if (known != stops_.end() && (known->second == stop || known->second == Stop::kDelete)) return true;
  const std::string line = fmt::format("{}{}\n", stop == Stop::kHold ? kHold : kDelete, job);
  if (!reserved_ || line.size() > kBytes - used_ || !Overwrite(used_, line)) return false;
  used_ += line.size();
  stops_[job] = stop;
  return true;
}

void StopFile::Clear() {
  if (stops_.empty()) return;
  if (!Overwrite(0, std::string(used_, '\0'))) {
    Log(LogLevel::kError, "stops of jobs that the store has cannot be removed from their file",
        {{"path", path_}, {"why", std::strerror(errno)}});
    return;
  }
  stops_.clear();
  used_ = 0;
}

}  // namespace voda
