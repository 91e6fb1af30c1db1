#include "local/proc.h"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "local/files.h"

namespace voda::local {

namespace {

constexpr std::size_t kStatBytes = 4096;
constexpr std::size_t kEnvironmentBytes = std::size_t{4} << 20;

std::optional<pid_t> Number(std::string_view text) {
  pid_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The fields after the name, which is in brackets and may hold anything, brackets too.
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

std::optional<Process> FindProcess(pid_t pid) {
  const auto text = ReadWhole(fmt::format("/proc/{}/stat", pid), kStatBytes);
  if (!text) return std::nullopt;
  return ParseStat(pid, *text);
}

std::vector<Process> AllProcesses() {
  std::vector<Process> all;
  for (const std::string& name : ListFolder("/proc")) {
    const auto pid = Number(name);
    if (!pid) continue;
    if (const auto process = FindProcess(*pid)) all.push_back(*process);
  }
  std::sort(all.begin(), all.end(), [](const Process& a, const Process& b) { return a.pid < b.pid; });
  return all;
}

std::vector<Process> Descendants(pid_t root) {
  const std::vector<Process> all = AllProcesses();
  std::vector<pid_t> family = {root};
  std::vector<Process> found;
  for (bool more = true; more;) {
    more = false;
    for (const Process& process : all) {
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
  // The handle first: whoever it names is compared with whom we mean.
  const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!handle.ok()) return false;
  const auto now = FindProcess(process.pid);
  if (!now || now->start != process.start) return false;
  return ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0) == 0;
}

std::string EnvironmentOf(pid_t pid) {
  auto text = ReadWhole(fmt::format("/proc/{}/environ", pid), kEnvironmentBytes);
  return text ? std::move(*text) : std::string();
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

}  // namespace voda::local
