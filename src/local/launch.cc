#include "local/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "local/records.h"
#include "local/shim.h"

extern char** environ;  // NOLINT: POSIX

namespace voda::local {

namespace {

constexpr int kStartMilliseconds = 20'000;  // for a shim to report; a loaded machine is slow
constexpr double kFindSeconds = 10;         // for a shim whose Voda died to notice

int OpenHandle(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

struct Pipe {
  Fd read;
  Fd write;
};

// Clear of the numbers that the shim's files get.
Fd OutOfTheWay(int fd) {
  const Fd original(fd);
  return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 16));
}

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("make a pipe", errno);
  Pipe pipe{OutOfTheWay(ends[0]), OutOfTheWay(ends[1])};
  if (!pipe.read.ok() || !pipe.write.ok()) return SystemError("make a pipe", errno);
  return pipe;
}

Result<pid_t> Spawn(const std::string& program, const std::string& folder, int go, int lock, int status) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, go, kGoFd);
  posix_spawn_file_actions_adddup2(&actions, lock, kLockFd);
  posix_spawn_file_actions_adddup2(&actions, status, kStatusFd);
  // Not ours: whoever reads what Voda prints must see its end when Voda is gone.
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = program;
  std::string command = "__shim";
  std::string path = folder;
  char* arguments[] = {name.data(), command.data(), path.data(), nullptr};
  pid_t pid = -1;
  const int code = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return SystemError(fmt::format("start the shim {}", program), code);
  return pid;
}

// The id that a shim reports, or 0.
pid_t ReadPid(int status) {
  pollfd waiting{status, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&waiting, 1, kStartMilliseconds);
  } while (ready < 0 && errno == EINTR);
  pid_t pid = 0;
  if (ready != 1 || ::read(status, &pid, sizeof pid) != static_cast<ssize_t>(sizeof pid)) return 0;
  return pid;
}

}  // namespace

Result<Fd> TakeLock(const std::string& folder) {
  const std::string path = LockPath(folder);
  Fd lock = OutOfTheWay(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.ok()) return SystemError(fmt::format("open {}", path), errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return SystemError(fmt::format("lock {}", path), errno);
  return lock;
}

bool LockHeld(const std::string& folder) {
  const Fd lock(::open(LockPath(folder).c_str(), O_RDWR | O_CLOEXEC));
  return lock.ok() && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Result<Shim> StartShim(const std::string& program, const std::string& folder) {
  auto lock = TakeLock(folder);
  if (!lock) return lock.error();
  auto go = MakePipe();
  if (!go) return go.error();
  auto status = MakePipe();
  if (!status) return status.error();
  const auto parent = Spawn(program, folder, go->read.get(), lock->get(), status->write.get());
  if (!parent) return parent.error();
  status->write.Close();
  lock->Close();  // the shim has it
  Shim shim;
  shim.pid = ReadPid(status->read.get());
  // It waits for our word, so its id is still its own.
  if (shim.pid > 0) shim.handle = Fd(OpenHandle(shim.pid));
  const int code = errno;
  if (shim.pid <= 0) ::kill(*parent, SIGKILL);
  while (::waitpid(*parent, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (shim.pid <= 0) return Error{fmt::format("the shim {} did not start in {}", program, folder)};
  if (!shim.handle.ok()) return SystemError("watch the shim", code);
  // Our own reading end is open still: a shim that died cannot make this a SIGPIPE.
  if (!WriteAll(go->write.get(), "g")) return SystemError("start the worker", errno);
  return shim;
}

std::optional<Shim> FindShim(const std::string& folder) {
  const double give_up = BootTime() + kFindSeconds;
  for (;;) {
    if (!LockHeld(folder)) return std::nullopt;
    const auto text = ReadWhole(LockPath(folder), 4096);
    const LockRecord record = text ? DecodeLock(*text) : LockRecord{};
    if (record.pid > 0) {
      Shim shim{.pid = record.pid, .handle = Fd(OpenHandle(record.pid))};
      // Whoever has the lock is the one who wrote its id there: still locked, so the handle is of the shim.
      const bool late = BootTime() > give_up;
      if (shim.handle.ok() && LockHeld(folder) && (record.started || late)) return shim;
    } else if (BootTime() > give_up) {
      return std::nullopt;
    }
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
  ::syscall(SYS_pidfd_send_signal, shim.handle.get(), signal, nullptr, 0);
}

}  // namespace voda::local
