#include "exec/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

extern char** environ;  // NOLINT: POSIX

#include "base/fd.h"

namespace voda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{20};  // how often a child that is silent is looked after
constexpr double kLongest = 1e6;                // seconds

Error SystemError(std::string_view doing, int code) {
  return Error{fmt::format("cannot {}: {}", doing, std::strerror(code))};
}

// A file in memory instead of a pipe: a program that does not read its input can neither block nor signal us.
Result<Fd> InputFile(std::string_view input) {
  Fd file(::memfd_create("voda-snapshot", MFD_CLOEXEC));
  if (!file.AboveStandard()) return SystemError("make the input file", errno);
  for (std::size_t at = 0; at < input.size();) {
    const ssize_t written = ::write(file.get(), input.data() + at, input.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("write the input file", errno);
    at += static_cast<std::size_t>(written);
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return SystemError("rewind the input file", errno);
  return file;
}

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> OutputPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("make a pipe", errno);
  Pipe pipe{Fd(ends[0]), Fd(ends[1])};
  if (!pipe.read.AboveStandard() || !pipe.write.AboveStandard()) return SystemError("make a pipe", errno);
  if (::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK) != 0) return SystemError("set up a pipe", errno);
  return pipe;
}

Result<pid_t> Spawn(const std::vector<std::string>& argv, int in, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&defaults, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int code = posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code == ENOEXEC)
    return Error{"cannot start it: not a program; begin it with #!/usr/bin/env python3 or the like"};
  if (code != 0) return SystemError("start it", code);
  return pid;
}

// A running child; whatever happens, it and its group are killed and it is reaped in the end.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { Reap(); }

  // Whether it has ended. It stays a zombie, so that its id names nobody else until Reap.
  bool Ended() const {
    siginfo_t info{};
    const int code = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return code != 0 ? errno != EINTR : info.si_pid == pid_;
  }

  // Kills what is left of the group and returns the wait status, or nothing where somebody else reaped the
  // child.
  std::optional<int> Reap() {
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

 private:
  pid_t pid_;
};

enum class Heard { kNothing, kEnd, kTooMuch };

// Takes what is in the pipe now.
Heard Drain(int fd, std::size_t limit, std::string& output) {
  char chunk[65536];
  for (;;) {
    const ssize_t got = ::read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? Heard::kNothing : Heard::kEnd;
    if (got == 0) return Heard::kEnd;
    if (output.size() + static_cast<std::size_t>(got) > limit) return Heard::kTooMuch;
    output.append(chunk, static_cast<std::size_t>(got));
  }
}

// Reads until the child has ended, or a limit was broken. A descendant that keeps stdout open does not hold
// us up, nor does a child that closes stdout and goes on.
Status Listen(const Child& child, Fd& output_end, const ChildLimits& limits, std::string& output) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(std::min(limits.timeout_seconds, kLongest)));
  for (;;) {
    const bool ended = child.Ended();
    const Heard heard =
        output_end.ok() ? Drain(output_end.get(), limits.output_bytes, output) : Heard::kNothing;
    if (heard == Heard::kTooMuch) {
      return Error{fmt::format("printed more than {} bytes", limits.output_bytes)};
    }
    if (ended) return Ok{};
    const auto now = Clock::now();
    if (now >= deadline) return Error{fmt::format("no answer within {} s", limits.timeout_seconds)};
    // Once stdout is closed the end is near, and nothing else tells of it.
    auto wait = kLook;
    if (heard == Heard::kEnd) output_end.Close();
    if (!output_end.ok()) wait = std::chrono::milliseconds(1);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
    pollfd waiting{output_end.get(), POLLIN, 0};
    ::poll(&waiting, output_end.ok() ? 1 : 0, static_cast<int>(std::min(wait, left).count()));
  }
}

}  // namespace

Result<std::string> RunChild(const std::vector<std::string>& argv, std::string_view input,
                             const ChildLimits& limits) {
  auto file = InputFile(input);
  if (!file) return file.error();
  auto pipe = OutputPipe();
  if (!pipe) return pipe.error();
  const auto pid = Spawn(argv, file->get(), pipe->write.get());
  if (!pid) return pid.error();
  Child child(*pid);
  file->Close();
  pipe->write.Close();

  std::string output;
  if (const Status heard = Listen(child, pipe->read, limits, output); !heard) return heard.error();
  const auto status = child.Reap();
  if (!status) return Error{"its exit code was lost"};
  if (WIFSIGNALED(*status)) {
    return Error{fmt::format("killed by signal {} ({})", WTERMSIG(*status), ::strsignal(WTERMSIG(*status)))};
  }
  if (WEXITSTATUS(*status) != 0) return Error{fmt::format("exit code {}", WEXITSTATUS(*status))};
  return output;
}

}  // namespace voda
