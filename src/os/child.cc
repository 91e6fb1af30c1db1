#include "os/child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"
#include "os/open_files.h"
#include "os/pidfd.h"

extern char** environ;  // NOLINT: POSIX

namespace voda::os {

namespace {

// posix_spawn's two lists of what to do in the child.
class Preparation {
 public:
  Preparation() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;
  ~Preparation() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }

  // False, with errno: no descriptor is free.
  bool Pass(const std::vector<Program::Descriptor>& descriptors) {
    int highest = STDERR_FILENO;
    for (const Program::Descriptor& one : descriptors) highest = std::max(highest, one.theirs);
    for (const Program::Descriptor& one : descriptors) {
      if (one.ours == Program::kNull) {
        posix_spawn_file_actions_addopen(&actions_, one.theirs, "/dev/null", O_RDWR, 0);
        continue;
      }
      // A number that is given to another one first would be lost.
      int ours = one.ours;
      if (ours <= highest) {
        moved_.emplace_back(::fcntl(ours, F_DUPFD_CLOEXEC, highest + 1));
        if (!moved_.back().ok()) return false;
        ours = moved_.back().get();
      }
      posix_spawn_file_actions_adddup2(&actions_, ours, one.theirs);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, highest + 1);
    return true;
  }

  void LeadGroupWithDefaultSignals() {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
  std::vector<Fd> moved_;
};

}  // namespace

Result<Pipe> MakePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("make a pipe", errno);
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  if (!pipe.read.AboveStandard() || !pipe.write.AboveStandard()) return SystemError("make a pipe", errno);
  return pipe;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::optional<Child> Child::Start(const Program& program) {
  Preparation preparation;
  if (!preparation.Pass(program.descriptors)) return std::nullopt;
  preparation.LeadGroupWithDefaultSignals();
  std::vector<char*> variables;
  if (program.environment) variables = Pointers(*program.environment);
  pid_t pid = -1;
  const int code =
      ::posix_spawnp(&pid, program.argv.at(0).c_str(), preparation.actions(), preparation.attributes(),
                     Pointers(program.argv).data(), program.environment ? variables.data() : environ);
  if (code != 0) {
    errno = code;
    return std::nullopt;
  }
  RestoreOpenFiles(pid);
  return Child(pid, OpenProcess(pid));
}

bool Child::Ended() const {
  siginfo_t info{};
  const int code = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  return code != 0 ? errno != EINTR : info.si_pid == pid_;
}

std::optional<int> Child::Reap() {
  if (pid_ < 0) return std::nullopt;
  ::kill(-pid_, SIGKILL);
  const pid_t pid = std::exchange(pid_, -1);
  int status = 0;
  pid_t waited = 0;
  do {
    waited = ::waitpid(pid, &status, 0);
  } while (waited < 0 && errno == EINTR);
  if (waited != pid) return std::nullopt;
  return status;
}

}  // namespace voda::os
