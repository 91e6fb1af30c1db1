// WorkerGroup: the control group (cgroup v2 or v1) of one start of a worker, if this process may make one.
// Nothing leaves it by forking, detaching or emptying its environment, so it tells what is left of a worker
// whose shim was killed. It also limits the worker's memory, if asked; RLIMIT_AS is no substitute: CUDA
// reserves far more addresses than it uses.
//
// Groups are found by their names, which follow from the start folder, below the groups of this process. A
// Voda that was moved since finds them by the file `cgroup` of the start folder. A job can write that file,
// so it is believed only where it names a group of that very start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "local/files.h"

namespace voda::local {

// The name of the group of a start folder, JOBS/ID/wWORKER-SERIAL.
std::string GroupName(const std::string& folder);

class WorkerGroup {
 public:
  // Makes a group, with a memory limit unless `bytes` is 0. What is in one of that name is killed.
  static Result<WorkerGroup> Make(const std::string& name, std::int64_t bytes);

  const std::string& path() const { return path_; }
  // Moves the calling process into the group; for a child before exec.
  bool Join() const;
  bool limited() const { return limited_; }
  // Whether the kernel killed a process of the group because its limit was reached.
  bool OutOfMemory() const;
  // Kills what is in the group. Returns true once nothing is, and removes the group.
  bool Kill() const;

 private:
  WorkerGroup(std::string path, Fd procs, bool unified, bool limited)
      : path_(std::move(path)), procs_(std::move(procs)), unified_(unified), limited_(limited) {}

  std::string path_;
  Fd procs_;
  bool unified_;
  bool limited_;
};

// Kills what is in the group of a start folder. Returns true once nothing is, and removes the group.
bool KillGroup(const std::string& folder);

// Does the same for all groups of a folder of jobs, except those whose names are to be spared. Returns true
// once nothing is left.
bool KillGroups(const std::string& jobs, const std::function<bool(const std::string& name)>& spared);

}  // namespace voda::local
