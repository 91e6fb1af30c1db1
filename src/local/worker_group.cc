#include "local/worker_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/untrusted_file.h"
#include "local/proc.h"
#include "local/start_files.h"

namespace voda::local {

namespace {

constexpr std::size_t kFileBytes = std::size_t{1} << 16;
constexpr std::size_t kMembersBytes = std::size_t{16} << 20;
constexpr std::string_view kUnified;  // the hierarchy of v2
// Hierarchies of v1 in which a group may be made; only the first limits memory.
constexpr std::string_view kOfVersion1[] = {"memory", "pids", "freezer", "name=systemd"};

bool Lists(std::string_view list, char separator, std::string_view wanted) {
  const auto words = Split(list, separator);
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

// Where a hierarchy is mounted.
std::optional<std::string> MountPoint(std::string_view mounts, std::string_view hierarchy) {
  for (const std::string_view line : SplitEnded(mounts)) {
    const auto fields = Split(line, ' ');
    if (fields.size() < 4) continue;
    const bool found = hierarchy == kUnified ? fields[2] == "cgroup2"
                                             : fields[2] == "cgroup" && Lists(fields[3], ',', hierarchy);
    if (found) return std::string(fields[1]);
  }
  return std::nullopt;
}

// The place of this process in a hierarchy.
std::optional<std::string> OwnPath(std::string_view places, std::string_view hierarchy) {
  for (const std::string_view line : SplitEnded(places)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (hierarchy == kUnified ? controllers.empty() : Lists(controllers, ',', hierarchy))
      return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

bool WriteFile(const std::string& path, std::string_view text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.ok() && WriteAll(fd.get(), text);
}

// A folder in which groups may be made.
struct GroupParent {
  std::string folder;
  bool unified;
  bool limits;  // whether groups in it can have a memory limit
};

// Best first. In v2 a group with processes passes no controller on, so a group with a memory limit must be
// beside the group of this process; one without may be inside.
Result<std::vector<GroupParent>> GroupParents() {
  const auto mounts = ReadFile("/proc/self/mounts", std::size_t{4} << 20);
  if (!mounts) return mounts.error();
  const auto places = ReadFile("/proc/self/cgroup", kFileBytes);
  if (!places) return places.error();
  const auto inside = [&](std::string_view hierarchy, std::string& mount, std::string& own) {
    const auto mounted = MountPoint(*mounts, hierarchy);
    const auto place = OwnPath(*places, hierarchy);
    if (!mounted || !place) return false;
    mount = *mounted;
    own = *place == "/" ? "" : *place;
    return true;
  };
  std::vector<GroupParent> parents;
  std::string mount;
  std::string own;
  if (inside(kUnified, mount, own)) {
    int limiting = 0;
    for (std::string_view at = own;; at = at.substr(0, at.rfind('/'))) {
      std::string folder = mount + std::string(at);
      const auto handed_on = ReadFile(folder + "/cgroup.subtree_control", kFileBytes);
      const bool limits = handed_on && Lists(Trim(*handed_on), ' ', "memory");
      if (limits) ++limiting;
      if (limits || at.size() == own.size())
        parents.push_back({.folder = std::move(folder), .unified = true, .limits = limits});
      if (at.empty() || limiting == 2) break;
    }
  }
  for (const std::string_view hierarchy : kOfVersion1) {
    if (inside(hierarchy, mount, own))
      parents.push_back({.folder = mount + own, .unified = false, .limits = hierarchy == "memory"});
  }
  return parents;
}

bool SetLimit(const std::string& path, bool unified, std::int64_t bytes) {
  const std::string limit = fmt::format("{}\n", bytes);
  if (!WriteFile(path + (unified ? "/memory.max" : "/memory.limit_in_bytes"), limit)) return false;
  // Swap is limited, too, if the kernel counts it.
  WriteFile(path + (unified ? "/memory.swap.max" : "/memory.memsw.limit_in_bytes"), unified ? "0\n" : limit);
  return true;
}

// Kills what is in a group, and in groups that a worker made in it. Returns whether nothing was.
bool KillMembers(const std::string& path) {
  const auto inner = ListFolder(path);
  if (!inner) return false;
  bool none = true;
  for (const std::string& name : *inner) {
    const std::string at = fmt::format("{}/{}", path, name);
    struct stat about {};
    if (::lstat(at.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) continue;
    none = KillMembers(at) && none;
    ::rmdir(at.c_str());
  }
  const auto members = ReadFileIfAny(path + "/cgroup.procs", kMembersBytes);
  if (!members) return false;
  if (!*members) return none;
  // The kernel does it at once, and no process forks away from it; version 1 and older kernels cannot.
  const bool at_once = (*members)->empty() || WriteFile(path + "/cgroup.kill", "1");
  for (const std::string_view line : SplitEnded(**members)) {
    const auto member = FindProcess(static_cast<pid_t>(std::atol(std::string(line).c_str())));
    if (!member) return false;
    if (!*member || (*member)->zombie) continue;
    if (!at_once) Signal(**member, SIGKILL);
    none = false;
  }
  return none;
}

bool KillAndRemove(const std::string& path) {
  if (!KillMembers(path)) return false;
  // Dead processes may keep it busy for a moment. Then the next start of Voda removes it.
  ::rmdir(path.c_str());
  return true;
}

// Splits JOBS/ID/wWORKER-SERIAL behind JOBS.
std::size_t EndOfJobs(std::string_view folder) {
  const std::size_t last = folder.rfind('/');
  if (last == folder.npos || last == 0) return 0;
  const std::size_t before = folder.rfind('/', last - 1);
  return before == folder.npos ? 0 : before;
}

// How the names of all groups of a folder of jobs begin. There may be several Vodas on a machine.
std::string GroupPrefix(std::string_view jobs) {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  for (const char letter : jobs) hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  return fmt::format("voda-{:016x}-", hash);
}

// Whether a path that a job may have written is that of a group of this name.
bool IsGroup(const std::string& path, std::string_view name) {
  if (path.size() >= PATH_MAX || !path.ends_with(fmt::format("/{}", name))) return false;
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr || path != resolved) return false;
  struct statfs about {};
  if (::statfs(resolved, &about) != 0) return false;
  return about.f_type == CGROUP_SUPER_MAGIC || about.f_type == CGROUP2_SUPER_MAGIC;
}

}  // namespace

std::string GroupName(const std::string& folder) {
  const std::size_t end = EndOfJobs(folder);
  std::string rest = folder.substr(std::min(end + 1, folder.size()));
  std::replace(rest.begin(), rest.end(), '/', '-');
  return GroupPrefix(std::string_view(folder).substr(0, end)) + rest;
}

Result<WorkerGroup> WorkerGroup::Make(const std::string& name, std::int64_t bytes) {
  const auto parents = GroupParents();
  if (!parents) return parents.error();
  int code = ENOENT;
  for (const GroupParent& parent : *parents) {
    if (bytes > 0 && !parent.limits) continue;
    const std::string path = fmt::format("{}/{}", parent.folder, name);
    if (::mkdir(path.c_str(), 0755) != 0) {
      code = errno;
      if (code != EEXIST) continue;
      KillMembers(path);
    }
    Fd procs(::open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (procs.ok() && (bytes == 0 || SetLimit(path, parent.unified, bytes)))
      return WorkerGroup(path, std::move(procs), parent.unified, bytes > 0);
    code = errno;
    ::rmdir(path.c_str());
  }
  return SystemError(bytes > 0 ? "make a cgroup with a memory limit" : "make a cgroup", code);
}

bool WorkerGroup::Join() const {
  return ::write(procs_.get(), "0", 1) == 1;
}

bool WorkerGroup::OutOfMemory() const {
  if (!limited_) return false;
  const auto text = ReadFile(path_ + (unified_ ? "/memory.events" : "/memory.oom_control"), kFileBytes);
  if (!text) return false;
  for (const std::string_view line : SplitEnded(*text)) {
    if (line.starts_with("oom_kill ")) return line != "oom_kill 0";
  }
  return false;
}

bool WorkerGroup::Kill() const {
  return KillAndRemove(path_);
}

bool KillGroup(const std::string& folder) {
  const std::string name = GroupName(folder);
  const auto parents = GroupParents();
  if (!parents) return false;
  bool none = true;
  for (const GroupParent& parent : *parents) {
    const std::string path = fmt::format("{}/{}", parent.folder, name);
    if (Exists(path)) none = KillAndRemove(path) && none;
  }
  const auto noted = ReadUntrusted(CgroupPath(folder), PATH_MAX);
  if (!noted) return false;
  if (*noted && IsGroup(**noted, name)) none = KillAndRemove(**noted) && none;
  return none;
}

bool KillGroups(const std::string& jobs, const std::function<bool(const std::string& name)>& spared) {
  const auto parents = GroupParents();
  if (!parents) return false;
  const std::string prefix = GroupPrefix(jobs);
  bool none = true;
  for (const GroupParent& parent : *parents) {
    const auto names = ListFolder(parent.folder);
    if (!names) continue;  // then this process can have made none there
    for (const std::string& name : *names) {
      if (name.starts_with(prefix) && !spared(name))
        none = KillAndRemove(fmt::format("{}/{}", parent.folder, name)) && none;
    }
  }
  return none;
}

}  // namespace voda::local
