#include "os/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/files.h"

namespace voda::os {

namespace {

using Clock = std::chrono::steady_clock;
using Kind = RunEnd::Kind;
using std::chrono::milliseconds;

constexpr double kLongest = 1e6;        // seconds
constexpr milliseconds kLook{50};       // how often a cancellation is noticed
constexpr milliseconds kBlindLook{20};  // how often a child is looked after that the kernel does not tell of

// A file in memory instead of a pipe: a program that does not read its input can neither block nor signal us.
Result<Fd> InputFile(std::string_view input) {
  Fd file(::memfd_create("voda-input", MFD_CLOEXEC));
  if (!file.AboveStandard()) return SystemError("make the input file", errno);
  if (!WriteAll(file.get(), input)) return SystemError("write the input file", errno);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return SystemError("rewind the input file", errno);
  return file;
}

// Takes what is in the pipe now, and closes it at its end. False: that is more than `limit` bytes.
bool Drain(Fd& pipe, std::size_t limit, std::string& output) {
  char chunk[65536];
  while (pipe.ok()) {
    const ssize_t got = ::read(pipe.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (got <= 0) {
      pipe.Close();
      return true;
    }
    if (std::cmp_greater(got, limit - output.size())) return false;
    output.append(chunk, chunk + got);
  }
  return true;
}

// Reads until the child has ended; why not, where a limit was broken before.
std::optional<Kind> Listen(const Child& child, Fd& pipe, const RunLimits& limits, std::string& output) {
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(std::min(limits.seconds, kLongest)));
  for (;;) {
    const bool ended = child.Ended();
    if (!Drain(pipe, limits.output_bytes, output)) return Kind::kTooMuch;
    if (ended) return std::nullopt;
    const auto now = Clock::now();
    if (limits.canceled != nullptr && *limits.canceled) return Kind::kCanceled;
    if (now >= deadline) return Kind::kTooLate;
    auto wait = std::chrono::ceil<milliseconds>(deadline - now);
    if (limits.canceled != nullptr) wait = std::min(wait, kLook);
    if (child.descriptor() < 0) wait = std::min(wait, kBlindLook);
    pollfd waiting[2] = {{child.descriptor(), POLLIN, 0}, {pipe.get(), POLLIN, 0}};
    ::poll(waiting, 2, static_cast<int>(wait.count()));
  }
}

}  // namespace

Result<RunEnd> Run(Program program, std::optional<std::string_view> input, const RunLimits& limits) {
  Result<Fd> file = input ? InputFile(*input) : Fd();
  if (!file) return file.error();
  auto pipe = MakePipe();
  if (!pipe) return pipe.error();
  if (::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK) != 0) return SystemError("set up a pipe", errno);
  program.descriptors.push_back({file->ok() ? file->get() : Program::kNull, STDIN_FILENO});
  program.descriptors.push_back({pipe->write.get(), STDOUT_FILENO});
  auto child = Child::Start(program);
  if (!child) return RunEnd{Kind::kNotStarted, errno, {}};
  file->Close();
  pipe->write.Close();

  RunEnd end;
  const auto broken = Listen(*child, pipe->read, limits, end.output);
  const auto status = child->Reap();
  if (broken) {
    end.kind = *broken;
  } else if (!status) {
    end.kind = Kind::kLost;
  } else {
    end.kind = WIFSIGNALED(*status) ? Kind::kSignaled : Kind::kExited;
    end.number = WIFSIGNALED(*status) ? WTERMSIG(*status) : WEXITSTATUS(*status);
  }
  return end;
}

}  // namespace voda::os
