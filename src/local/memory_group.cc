#include "local/memory_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/text.h"

namespace voda::local {

namespace {

constexpr std::size_t kFileBytes = std::size_t{1} << 16;

bool Lists(std::string_view list, char separator, std::string_view wanted) {
  const auto words = Split(list, separator);
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

// Where the hierarchy is mounted: that of v1's memory controller, or that of v2.
std::optional<std::string> MountPoint(bool unified) {
  const auto text = ReadFile("/proc/self/mounts", std::size_t{4} << 20);
  if (!text) return std::nullopt;
  for (const std::string_view line : SplitEnded(*text)) {
    const auto fields = Split(line, ' ');
    if (fields.size() < 4) continue;
    if (unified && fields[2] == "cgroup2") return std::string(fields[1]);
    if (!unified && fields[2] == "cgroup" && Lists(fields[3], ',', "memory")) return std::string(fields[1]);
  }
  return std::nullopt;
}

// The place of this process in the hierarchy.
std::optional<std::string> OwnPath(bool unified) {
  const auto text = ReadFile("/proc/self/cgroup", kFileBytes);
  if (!text) return std::nullopt;
  for (const std::string_view line : SplitEnded(*text)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (unified ? controllers.empty() : Lists(controllers, ',', "memory"))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

bool WriteFile(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.ok() && WriteAll(fd.get(), text);
}

// Folders in which a group with a memory limit may be made, best first. In v2 a group with processes passes
// no controller on, so ours must be beside the group of this process.
std::vector<std::string> Parents(bool unified) {
  const auto mount = MountPoint(unified);
  const auto own = OwnPath(unified);
  if (!mount || !own) return {};
  const std::string inside = *own == "/" ? "" : *own;
  if (!unified) return {*mount + inside};
  std::vector<std::string> parents;
  for (std::string_view at = inside;; at = at.substr(0, at.rfind('/'))) {
    std::string folder = *mount + std::string(at);
    const auto handed_on = ReadFile(folder + "/cgroup.subtree_control", kFileBytes);
    if (handed_on && Lists(Trim(*handed_on), ' ', "memory")) parents.push_back(std::move(folder));
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
        // Swap is limited, too, if the kernel counts it.
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
  const auto text = ReadFile(path_ + (unified_ ? "/memory.events" : "/memory.oom_control"), kFileBytes);
  if (!text) return false;
  for (const std::string_view line : SplitEnded(*text)) {
    if (line.starts_with("oom_kill ")) return line != "oom_kill 0";
  }
  return false;
}

void MemoryGroup::Remove() const {
  ::rmdir(path_.c_str());
}

}  // namespace voda::local
