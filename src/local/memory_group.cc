#include "local/memory_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <vector>

namespace voda::local {

namespace {

constexpr std::size_t kFileBytes = std::size_t{1} << 16;

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool Lists(const std::vector<std::string>& words, std::string_view wanted) {
  for (const std::string& word : words) {
    if (word == wanted) return true;
  }
  return false;
}

// Where the hierarchy is mounted: v1's with the memory controller, or v2's.
std::optional<std::string> MountPoint(bool unified) {
  const auto text = ReadWhole("/proc/self/mounts", std::size_t{4} << 20);
  if (!text) return std::nullopt;
  for (const std::string& line : Split(*text, '\n')) {
    const auto fields = Split(line, ' ');
    if (fields.size() < 4) continue;
    if (unified && fields[2] == "cgroup2") return fields[1];
    if (!unified && fields[2] == "cgroup" && Lists(Split(fields[3], ','), "memory")) return fields[1];
  }
  return std::nullopt;
}

// This process's place in the hierarchy.
std::optional<std::string> OwnPath(bool unified) {
  const auto text = ReadWhole("/proc/self/cgroup", kFileBytes);
  if (!text) return std::nullopt;
  for (const std::string& line : Split(*text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : Lists(Split(controllers, ','), "memory"))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

bool WriteFile(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.ok() && WriteAll(fd.get(), text);
}

// Folders in which a group with a memory limit may be made, best first. In v2 a group with processes hands
// no controller on, so ours has to be beside the one this process is in.
std::vector<std::string> Parents(bool unified) {
  const auto mount = MountPoint(unified);
  const auto own = OwnPath(unified);
  if (!mount || !own) return {};
  const std::string inside = *own == "/" ? "" : *own;
  if (!unified) return {*mount + inside};
  std::vector<std::string> parents;
  for (std::string_view at = inside;; at = at.substr(0, at.rfind('/'))) {
    std::string folder = *mount + std::string(at);
    const auto handed_on = ReadWhole(folder + "/cgroup.subtree_control", kFileBytes);
    if (handed_on && Lists(Split(handed_on->substr(0, handed_on->find('\n')), ' '), "memory"))
      parents.push_back(std::move(folder));
    if (at.empty() || parents.size() == 2) break;
  }
  return parents;
}

}  // namespace

Result<MemoryGroup> MemoryGroup::Make(const std::string& name, std::int64_t bytes) {
  int code = ENOENT;
  for (const bool unified : {true, false}) {
    for (const std::string& parent : Parents(unified)) {
      const std::string path = fmt::format("{}/{}", parent, name);
      if (::mkdir(path.c_str(), 0755) != 0) {
        code = errno;
        continue;
      }
      const std::string limit = fmt::format("{}\n", bytes);
      Fd procs(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
      if (procs.ok() && WriteFile(path + (unified ? "/memory.max" : "/memory.limit_in_bytes"), limit)) {
        // Swap counts too, where it is counted.
        WriteFile(path + (unified ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"),
                  unified ? "0\n" : limit);
        return MemoryGroup(path, std::move(procs), unified);
      }
      code = errno;
      ::rmdir(path.c_str());
    }
  }
  return SystemError("make a cgroup with a memory limit", code);
}

bool MemoryGroup::Join() const {
  return ::write(procs_.get(), "0", 1) == 1;
}

bool MemoryGroup::Killed() const {
  const auto text = ReadWhole(path_ + (unified_ ? "/memory.events" : "/memory.oom_control"), kFileBytes);
  if (!text) return false;
  for (const std::string& line : Split(*text, '\n')) {
    if (line.starts_with("oom_kill ")) return line != "oom_kill 0";
  }
  return false;
}

void MemoryGroup::Remove() const {
  ::rmdir(path_.c_str());
}

}  // namespace voda::local
