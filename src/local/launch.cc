#include "local/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/untrusted_file.h"
#include "local/job_folder.h"
#include "local/shim.h"
#include "local/start_files.h"
#include "os/open_files.h"
#include "os/pidfd.h"

namespace voda::local {

Result<Fd> TakeLock(const std::string& folder) {
  const std::string path = LockPath(folder);
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.ok()) return SystemError(fmt::format("open {}", path), errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return SystemError(fmt::format("lock {}", path), errno);
  return lock;
}

Result<bool> LockHeld(const std::string& folder) {
  const auto lock = OpenUntrusted(LockPath(folder));
  if (!lock) return lock.error();
  if (!lock->ok() || ::flock(lock->get(), LOCK_SH | LOCK_NB) == 0) return false;
  if (errno == EWOULDBLOCK) return true;
  return SystemError(fmt::format("try the lock of {}", folder), errno);
}

Result<std::unique_ptr<Launch>> Launch::Begin(const std::string& program, const std::string& folder) {
  auto lock = TakeLock(folder);
  if (!lock) return lock.error();
  auto go = os::MakePipe();
  if (!go) return go.error();
  auto status = os::MakePipe();
  if (!status) return status.error();
  if (::fcntl(status->read.get(), F_SETFL, O_NONBLOCK) != 0) return SystemError("set up a pipe", errno);
  // The shim inherits the lock; ours is closed on return. The shim does not inherit our output, because a
  // reader of Voda's output must see its end when Voda is gone.
  auto parent = os::Child::Start({.argv = {program, "__shim", folder},
                                  .descriptors = {{go->read.get(), kGoFd},
                                                  {os::Program::kNull, STDOUT_FILENO},
                                                  {os::Program::kNull, STDERR_FILENO},
                                                  {lock->get(), kLockFd},
                                                  {status->write.get(), kStatusFd}}});
  if (!parent) return SystemError(fmt::format("start the shim {}", program), errno);
  std::unique_ptr<Launch> launch(new Launch(program, folder, std::move(*parent)));
  launch->status_ = std::move(status->read);
  launch->go_ = std::move(*go);
  return launch;
}

Status Launch::Look() {
  if (ready()) return Ok{};
  pid_t pid = 0;
  ssize_t got = 0;
  do {
    got = ::read(status_.get(), &pid, sizeof pid);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return Ok{};
  if (got != static_cast<ssize_t>(sizeof pid) || pid <= 0) return DidNotStart();
  // The shim waits for our word, so its id cannot have been reused.
  shim_.handle = os::OpenProcess(pid);
  if (!shim_.handle.ok()) return SystemError("watch the shim", errno);
  os::RestoreOpenFiles(pid);  // it was forked before its parent got the limit back
  shim_.pid = pid;
  return Ok{};
}

Error Launch::DidNotStart() const {
  return Error{fmt::format("the shim {} did not start in {}", program_, folder_)};
}

Shim Launch::Go() {
  VODA_CHECK(ready());
  VODA_CHECK(WriteAll(go_.write.get(), "g"));  // an empty pipe with both ends open takes a byte
  return std::move(shim_);
}

Result<std::optional<Shim>> FindShim(const std::string& folder, const FindPatience& patience) {
  for (;;) {
    auto held = LockHeld(folder);
    if (!held) return held.error();
    if (!*held) return std::optional<Shim>();
    const auto lock = ReadLock(folder);
    if (!lock) return lock.error();
    const LockRecord record = lock->value_or(LockRecord{});
    const double now = UptimeNow();
    const bool late = now >= patience.give_up;
    if (record.pid > 0) {
      Shim shim{.pid = record.pid, .handle = os::OpenProcess(record.pid)};
      if (!shim.handle.ok() && errno != ESRCH) return SystemError("watch the shim", errno);
      if (!shim.handle.ok() && late) return std::optional<Shim>();  // the record is not its holder's
      held = LockHeld(folder);
      if (!held) return held.error();
      // The holder of the lock wrote its id there. The lock is still held, so the handle is that of the shim.
      if (shim.handle.ok() && *held && (record.started || late)) return std::optional(std::move(shim));
    } else if (late) {
      return std::optional<Shim>();
    }
    if (now >= patience.wait_until)
      return Error{fmt::format("whoever holds the lock of {} does not say yet who it is", folder)};
    const timespec pause{0, 5'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

bool Ended(const Shim& shim) {
  pollfd polled{shim.handle.get(), POLLIN, 0};
  if (::poll(&polled, 1, 0) != 1) return false;
  ::waitpid(shim.pid, nullptr, WNOHANG);
  return true;
}

void SendSignal(const Shim& shim, int signal) {
  os::SignalProcess(shim.handle, signal);
}

}  // namespace voda::local
