#include "local/eraser.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "local/files.h"

namespace voda::local {

namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Calls `visit` with the names in an open folder until it returns false.
template <class Visit>
void ForEachName(int folder, Visit visit) {
  const auto close = [](DIR* listed) { ::closedir(listed); };
  const std::unique_ptr<DIR, decltype(close)> listed(::fdopendir(::openat(folder, ".", kFolder)), close);
  if (!listed) return;
  while (const dirent* entry = ::readdir(listed.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !visit(entry->d_name)) return;
  }
}

}  // namespace

// Names in the trash are numbers that ascend from run to run; a name that is taken is skipped.
Eraser::Eraser(std::string trash)
    : path_(std::move(trash)), next_name_(static_cast<std::uint64_t>(UptimeNow() * 1e6)) {
  if (const Status made = MakeFolder(path_, 0700); !made)
    Log(LogLevel::kWarn, "no trash folder", {{"error", made.error().message}});
  thread_ = std::thread([this] { Run(); });
}

Eraser::~Eraser() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Eraser::Erase(const std::string& folder) {
  const Fd trash(::open(path_.c_str(), kFolder));
  if (!trash.ok() || !MoveIntoTrash(AT_FDCWD, folder.c_str(), trash.get())) {
    if (Exists(folder)) RemoveTree(folder);
    return;
  }
  {
    const std::lock_guard guard(mutex_);
    more_ = true;
  }
  wake_.notify_one();
}

bool Eraser::MoveIntoTrash(int from, const char* name, int trash) {
  for (;;) {
    const std::string free = std::to_string(next_name_++);
    if (::renameat(from, name, trash, free.c_str()) == 0) return true;
    if (errno != EEXIST && errno != ENOTEMPTY) return false;
  }
}

void Eraser::Run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || more_; });
      if (stop_) return;
      more_ = false;
    }
    EmptyTrash();
  }
}

void Eraser::EmptyTrash() {
  const Fd trash(::open(path_.c_str(), kFolder));
  std::set<std::string> failed;
  while (trash.ok() && !stop_) {
    std::string next;
    ForEachName(trash.get(), [&](const char* name) {
      if (!failed.contains(name)) next = name;
      return next.empty();
    });
    if (next.empty()) return;
    if (Remove(trash.get(), next) || stop_) continue;
    Log(LogLevel::kWarn, "folder not erased",
        {{"folder", path_ + "/" + next}, {"error", std::strerror(errno)}});
    failed.insert(std::move(next));
  }
}

// Folders inside are moved into the trash and removed from there: however deep they are, this needs only
// two open files, and it can stop at any point.
bool Eraser::Remove(int trash, const std::string& name) {
  if (::unlinkat(trash, name.c_str(), 0) == 0) return true;
  const Fd folder(::openat(trash, name.c_str(), kFolder));
  if (!folder.ok()) return false;
  ::fchmod(folder.get(), 0700);
  for (bool progress = true; progress && !stop_;) {
    progress = false;
    ForEachName(folder.get(), [&](const char* entry) {
      bool gone =
          ::unlinkat(folder.get(), entry, 0) == 0 || ::unlinkat(folder.get(), entry, AT_REMOVEDIR) == 0;
      if (!gone && (errno == ENOTEMPTY || errno == EEXIST)) {
        // A job may have taken away the rights to its folders, even from their owner.
        ::fchmodat(folder.get(), entry, 0700, 0);
        gone = MoveIntoTrash(folder.get(), entry, trash);
      }
      progress = progress || gone;
      return !stop_;
    });
    if (::unlinkat(trash, name.c_str(), AT_REMOVEDIR) == 0) return true;
  }
  return false;
}

}  // namespace voda::local
