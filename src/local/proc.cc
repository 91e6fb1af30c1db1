#include "local/proc.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "local/files.h"
#include "os/pidfd.h"

namespace voda::local {

namespace {

constexpr std::size_t kStatBytes = 4096;
constexpr std::size_t kEnvironmentBytes = std::size_t{4} << 20;

// A file of /proc, as far as `limit`; nothing if the process is gone or not ours to look at.
Result<std::optional<std::string>> ReadProc(const std::string& path, std::size_t limit) {
  const auto failed = [&path](int code) -> Result<std::optional<std::string>> {
    for (const int none : {ENOENT, ESRCH, EACCES, EPERM, EIO}) {
      if (code == none) return std::optional<std::string>();
    }
    return SystemError(fmt::format("read {}", path), code);
  };
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.ok()) return failed(errno);
  std::string text;
  char chunk[4096];
  while (text.size() < limit) {
    const ssize_t got = ::read(file.get(), chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(errno);
    if (got == 0) break;
    text.append(chunk, chunk + got);
  }
  return std::optional(std::move(text));
}

std::optional<pid_t> Number(std::string_view text) {
  pid_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses the fields after the name, which is in parentheses and may hold anything, parentheses too.
std::optional<Process> ParseStat(pid_t pid, std::string_view text) {
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string_view::npos || bracket + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(bracket + 2);
  Process process{.pid = pid, .zombie = text[0] == 'Z' || text[0] == 'X'};
  constexpr int kParentField = 1;  // counted from the state
  constexpr int kStartField = 19;
  for (int field = 0; field <= kStartField; ++field) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (field == kParentField) std::from_chars(word.data(), word.data() + word.size(), process.parent);
    if (field == kStartField) std::from_chars(word.data(), word.data() + word.size(), process.start);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (process.start == 0) return std::nullopt;
  return process;
}

}  // namespace

Result<std::optional<Process>> FindProcess(pid_t pid) {
  const auto text = ReadProc(fmt::format("/proc/{}/stat", pid), kStatBytes);
  if (!text) return text.error();
  return *text ? ParseStat(pid, **text) : std::nullopt;
}

Result<std::vector<Process>> AllProcesses() {
  std::vector<Process> all;
  const auto names = ListFolder("/proc");
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const auto pid = Number(name);
    if (!pid) continue;
    const auto process = FindProcess(*pid);
    if (!process) return process.error();
    if (*process) all.push_back(**process);
  }
  std::sort(all.begin(), all.end(), [](const Process& a, const Process& b) { return a.pid < b.pid; });
  return all;
}

Result<std::vector<Process>> Descendants(pid_t root) {
  const auto all = AllProcesses();
  if (!all) return all.error();
  std::vector<pid_t> family = {root};
  std::vector<Process> found;
  for (bool more = true; more;) {
    more = false;
    for (const Process& process : *all) {
      const auto known = [&](pid_t pid) {
        return std::find(family.begin(), family.end(), pid) != family.end();
      };
      if (!known(process.parent) || known(process.pid)) continue;
      family.push_back(process.pid);
      if (!process.zombie) found.push_back(process);
      more = true;
    }
  }
  return found;
}

bool Signal(const Process& process, int signal) {
  // The handle comes first: then the process behind it is compared with the one that we mean.
  const Fd handle = os::OpenProcess(process.pid);
  if (!handle.ok()) return false;
  const auto now = FindProcess(process.pid);
  if (!now || !*now || (*now)->start != process.start) return false;
  return os::SignalProcess(handle, signal);
}

Result<std::string> EnvironmentOf(pid_t pid) {
  auto text = ReadProc(fmt::format("/proc/{}/environ", pid), kEnvironmentBytes);
  if (!text) return text.error();
  return *text ? std::move(**text) : std::string();
}

std::optional<std::string_view> Lookup(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::size_t end = std::min(environment.find('\0'), environment.size());
    const std::string_view pair = environment.substr(0, end);
    if (pair.size() > name.size() && pair.substr(0, name.size()) == name && pair[name.size()] == '=') {
      return pair.substr(name.size() + 1);
    }
    environment.remove_prefix(std::min(end + 1, environment.size()));
  }
  return std::nullopt;
}

namespace {

template <class Belongs>
Result<std::vector<JobProcess>> JobProcesses(Belongs belongs) {
  std::vector<JobProcess> found;
  const auto all = AllProcesses();
  if (!all) return all.error();
  for (const Process& process : *all) {
    if (process.zombie) continue;
    auto environment = EnvironmentOf(process.pid);
    if (!environment) return environment.error();
    const auto work = Lookup(*environment, "VODA_JOB_DIR");
    if (work && belongs(*work)) found.push_back({process, std::move(*environment)});
  }
  return found;
}

}  // namespace

Result<std::vector<JobProcess>> ProcessesOfJob(const std::string& work) {
  return JobProcesses([&work](std::string_view of) { return of == work; });
}

Result<std::vector<JobProcess>> ProcessesOfJobsBelow(const std::string& folder) {
  return JobProcesses([below = folder + "/"](std::string_view of) { return of.starts_with(below); });
}

}  // namespace voda::local
