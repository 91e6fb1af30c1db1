#include "local/shim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/untrusted_file.h"
#include "local/files.h"
#include "local/launch.h"
#include "local/log_sink.h"
#include "local/network.h"
#include "local/proc.h"
#include "local/start_files.h"
#include "local/worker_group.h"
#include "os/child.h"

extern char** environ;  // NOLINT: POSIX

namespace voda {

namespace local {

namespace {

constexpr double kRest = 2;  // seconds that descendants may live on after the worker itself has ended
constexpr double kDescendantsEvery = 0.05;  // seconds between two looks at them
constexpr double kFolderEvery = 2;          // and between two looks whether the folder is still there
constexpr int kExitTries = 20;              // tries to record the end on a full disk, one a second
constexpr int kCannotRun = 127;
constexpr std::size_t kLastWords = std::size_t{1} << 20;  // bytes read after all processes are gone

bool WriteLock(const LockRecord& record) {
  const std::string text = Encode(record);
  return ::pwrite(kLockFd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

// Resets all signals to their defaults, by the system call: the library reserves two signals and makes
// posix_spawn ignore them, and an ignored signal stays ignored across exec.
void ResetSignals() {
  const unsigned long by_default[8] = {};
  constexpr std::size_t kSetBytes = 8;
  for (int number = 1; number <= 64; ++number)
    ::syscall(SYS_rt_sigaction, number, by_default, nullptr, kSetBytes);
}

// Runs in the child, between fork and exec.
[[noreturn]] void RunWorker(const WorkerSpec& spec, const WorkerGroup* group, pid_t shim, int output) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != shim) ::_exit(kCannotRun);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ResetSignals();
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(022);
  // When memory runs out on the machine, a worker goes before Voda.
  const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (score.ok()) WriteAll(score.get(), "500");
  const auto fail = [](const std::string& what, int code) {
    WriteAll(STDERR_FILENO, fmt::format("voda: {}: {}\n", what, std::strerror(code)));
    ::_exit(kCannotRun);
  };
  // Outside its group a worker without a limit still runs.
  if (group != nullptr && !group->Join() && group->limited()) fail("cannot join the cgroup", errno);
  if (::chdir(spec.working_dir.c_str()) != 0)
    fail(fmt::format("cannot enter the working directory {}", spec.working_dir), errno);

  std::vector<std::string> pairs;
  for (const EnvVar& variable : spec.env) pairs.push_back(variable.name + "=" + variable.value);
  std::vector<char*> variables = os::Pointers(pairs);
  environ = variables.data();  // its PATH is searched for the program
  ::execvp(spec.argv[0].c_str(), os::Pointers(spec.argv).data());
  fail(fmt::format("cannot run {}", spec.argv[0]), errno);
  ::_exit(kCannotRun);
}

class ShimProcess {
 public:
  ShimProcess(std::string folder, WorkerSpec spec)
      : folder_(std::move(folder)), spec_(std::move(spec)), log_(folder_, spec_.log_bytes) {}

  void Run() {
    ReserveExit();
    if (Start()) Watch();
    Finish();
  }

 private:
  // Reserves the record's room on the disk, so that a full disk cannot lose how a worker ended.
  void ReserveExit() {
    exit_file_ = MakeUntrusted(ReservePath(), O_WRONLY);
    if (exit_file_.ok()) WriteAll(exit_file_.get(), Encode(end_));
  }
  std::string ReservePath() const { return ExitPath(folder_) + ".tmp"; }

  bool Start() {
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGCHLD);
    signals_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    int ends[2];
    if (!signals_.ok() || ::pipe2(ends, O_CLOEXEC) != 0) {
      log_.Say(fmt::format("cannot watch the worker: {}", std::strerror(errno)));
      end_.code = kCannotRun;
      return false;
    }
    output_ = Fd(ends[0]);
    const Fd input(ends[1]);
    ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
    MakeGroup();

    const pid_t self = ::getpid();
    main_ = ::fork();
    if (main_ < 0) {
      log_.Say(fmt::format("cannot start a process: {}", std::strerror(errno)));
      end_.code = kCannotRun;
      return false;
    }
    if (main_ == 0) RunWorker(spec_, group_ ? &*group_ : nullptr, self, input.get());
    ::setpgid(main_, main_);
    return true;
  }

  void MakeGroup() {
    const std::string name = GroupName(folder_);
    auto group = WorkerGroup::Make(name, spec_.memory_bytes);
    if (!group && spec_.memory_bytes > 0) {
      log_.Say(fmt::format("the memory limit of {} bytes is not applied: {}", spec_.memory_bytes,
                           group.error().message));
      group = WorkerGroup::Make(name, 0);
    }
    if (!group) return;
    group_.emplace(std::move(*group));
    NoteGroup();
  }

  // For a Voda that does not find the group by its name. On a full disk it has to.
  void NoteGroup() const {
    [[maybe_unused]] const Status noted =
        ReplaceFile(CgroupPath(folder_), group_->path(), 0600, Durable::kNo);
  }

  // Watches until the worker and all of its descendants are gone.
  void Watch() {
    for (;;) {
      Reap();
      const double now = UptimeNow();
      double wait = kFolderEvery;
      if (now >= folder_at_) {
        KeepFolder();
        folder_at_ = now + kFolderEvery;
      }
      if (!ended_) {
        if (end_.asked) {
          if (now >= kill_at_) {
            ::kill(-main_, SIGKILL);
            SignalDescendants(SIGKILL);
            kill_at_ = now + kDescendantsEvery;
          }
          wait = std::min(wait, kill_at_ - now);
        }
      } else {
        // Whatever is in the group and no descendant any more goes with the last of them.
        if (const auto left = Descendants(::getpid()); left && left->empty()) {
          if (group_ && group_->OutOfMemory()) end_.out_of_memory = true;
          if (!group_ || group_->Kill()) return;
        }
        if (rest_until_ == 0) {
          SignalDescendants(SIGTERM);
          rest_until_ = now + (end_.asked ? std::clamp(kill_at_ - now, 0.0, kRest) : kRest);
        }
        if (now >= rest_until_) SignalDescendants(SIGKILL);
        wait = kDescendantsEvery;
      }
      pollfd polled[2] = {{signals_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}};
      const int milliseconds = static_cast<int>(std::max(0.0, wait) * 1000) + 1;
      ::poll(polled, output_.ok() ? 2 : 1, milliseconds);
      ReadSignals();
      if (output_.ok() && polled[1].revents != 0) ReadOutput(sizeof chunk_);
    }
  }

  void ReadSignals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo != SIGTERM || end_.asked || ended_) continue;
      // If it has ended already, we did not stop it.
      Reap();
      if (ended_) continue;
      end_.asked = true;
      kill_at_ = UptimeNow() + std::max(0, spec_.grace_seconds);
      ::kill(-main_, SIGTERM);
    }
  }

  void Reap() {
    for (;;) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (pid < 0 && errno == EINTR) continue;
      if (pid <= 0) return;
      if (pid != main_) continue;
      ended_ = true;
      end_.ended = UptimeNow();
      if (WIFSIGNALED(status)) {
        end_.signal = WTERMSIG(status);
      } else {
        end_.code = WEXITSTATUS(status);
      }
    }
  }

  static void SignalDescendants(int number) {
    const auto descendants = Descendants(::getpid());
    if (!descendants) return;  // the next look tries again
    for (const Process& process : *descendants) Signal(process, number);
  }

  // Reads about `limit` bytes at most; returns false if there is nothing more now.
  bool ReadOutput(std::size_t limit) {
    for (std::size_t total = 0; total < limit;) {
      const ssize_t got = ::read(output_.get(), chunk_, sizeof chunk_);
      if (got < 0 && errno == EINTR) continue;
      if (got == 0) output_.Close();
      if (got <= 0) return false;
      log_.Write({chunk_, static_cast<std::size_t>(got)});
      total += static_cast<std::size_t>(got);
    }
    return true;
  }

  void Finish() {
    if (output_.ok()) ReadOutput(kLastWords);
    if (end_.ended == 0) end_.ended = UptimeNow();
    if (group_) {
      if (end_.out_of_memory)
        log_.Say(fmt::format("the memory limit of {} bytes was reached", spec_.memory_bytes));
      group_->Kill();
    }
    for (int attempt = 0; attempt < kExitTries && !RecordExit(); ++attempt) ::sleep(1);
  }

  // Somebody may remove or move the folder while the worker runs. Voda knows the worker and its end by it, so
  // it is made again: otherwise a job that ended well would be run once more. A folder of all jobs that is
  // gone, too, was removed with Voda's data, and stays away. Returns whether the folder is ours.
  bool KeepFolder() {
    if (SameFile(LockPath(folder_), kLockFd)) return true;
    ::mkdir(folder_.substr(0, folder_.rfind('/')).c_str(), 0700);
    ::mkdir(folder_.c_str(), 0700);
    // If another start has got the name, its shim holds the lock.
    const auto lock = TakeLock(folder_);
    if (!lock || ::dup3(lock->get(), kLockFd, O_CLOEXEC) < 0) return false;
    WriteLock({.pid = ::getpid(), .started = true});
    if (const Status written = ReplaceFile(SpecPath(folder_), Encode(spec_), 0600, Durable::kNo); !written)
      log_.Say(written.error().message);
    if (group_) NoteGroup();
    if (log_.Reopen()) log_.Say("the folder of this worker was removed while it ran, and was made again");
    if (!SameFile(ReservePath(), exit_file_.get())) ReserveExit();
    return true;
  }

  bool RecordExit() {
    struct stat about {};
    // Where Voda's data was removed, nobody wants to know.
    if (!KeepFolder()) return ::stat(folder_.c_str(), &about) != 0 && (errno == ENOENT || errno == ENOTDIR);
    // The worker may have put something else in the place of the file, or taken its rights away.
    if (!SameFile(ReservePath(), exit_file_.get())) ReserveExit();
    ::fchmod(exit_file_.get(), 0600);
    const std::string text = Encode(end_);
    if (!exit_file_.ok() ||
        ::pwrite(exit_file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
        ::fsync(exit_file_.get()) != 0 || ::rename(ReservePath().c_str(), ExitPath(folder_).c_str()) != 0) {
      return false;
    }
    const Fd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.ok()) ::fsync(folder.get());
    return true;
  }

  std::string folder_;
  WorkerSpec spec_;
  LogSink log_;
  std::optional<WorkerGroup> group_;
  Fd exit_file_;
  Fd signals_;
  Fd output_;
  pid_t main_ = -1;
  bool ended_ = false;
  ExitRecord end_;
  double kill_at_ = 0;
  double rest_until_ = 0;
  double folder_at_ = 0;  // when to look at the folder
  char chunk_[16384];
};

// Sets the signals that would end the shim or that it waits for; its child resets them.
void SetSignals() {
  ::signal(SIGCHLD, SIG_DFL);
  for (const int number : {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGTTOU, SIGTTIN}) {
    ::signal(number, SIG_IGN);
  }
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

// Reports readiness and waits to be told to start. Returns false if Voda went away before that.
bool WaitForGo() {
  const pid_t self = ::getpid();
  if (!WriteLock({.pid = self, .started = false})) return false;
  if (::write(kStatusFd, &self, sizeof self) != static_cast<ssize_t>(sizeof self)) return false;
  ::close(kStatusFd);
  char go = 0;
  ssize_t got = 0;
  do {
    got = ::read(kGoFd, &go, 1);
  } while (got < 0 && errno == EINTR);
  return got == 1 && WriteLock({.pid = self, .started = true});
}

}  // namespace

}  // namespace local

int ShimMain(const char* folder) {
  using namespace local;  // NOLINT: the shim's own
  const auto text = ReadUntrusted(SpecPath(folder), kMaxSpecBytes);
  if (!text || !*text) return 1;
  auto spec = DecodeWorkerSpec(**text);
  if (!spec) return 1;
  // Our parent waits only for this process; the shim itself belongs to init.
  const pid_t child = ::fork();
  if (child != 0) ::_exit(child < 0 ? 1 : 0);
  ::setsid();
  ::prctl(PR_SET_NAME, "voda-shim");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  SetSignals();
  ::close_range(kStatusFd + 1, ~0U, 0);
  ::fcntl(kLockFd, F_SETFD, FD_CLOEXEC);
  if (!spec->network.empty()) {
    if (const Status entered = EnterNetwork(spec->network); !entered) {
      LogSink(folder, spec->log_bytes).Say(entered.error().message);
      ::_exit(1);
    }
  }
  if (!WaitForGo()) ::_exit(1);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
  if (nothing > STDERR_FILENO) ::close(nothing);
  ShimProcess(folder, std::move(*spec)).Run();
  ::_exit(0);
}

}  // namespace voda
