// MemoryGroup: a cgroup with a memory limit for one worker, if this process may make one (cgroup v2 or v1).
// RLIMIT_AS is no substitute: CUDA reserves far more addresses than it uses.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "local/files.h"

namespace voda::local {

class MemoryGroup {
 public:
  // `name` must not be in use.
  static Result<MemoryGroup> Make(const std::string& name, std::int64_t bytes);

  const std::string& path() const { return path_; }
  // Moves the calling process into the group; for a child before exec.
  bool Join() const;
  // Whether the kernel killed a process of the group because memory ran out.
  bool Killed() const;
  // Removes the group, which must be empty.
  void Remove() const;

 private:
  MemoryGroup(std::string path, Fd procs, bool unified)
      : path_(std::move(path)), procs_(std::move(procs)), unified_(unified) {}

  std::string path_;
  Fd procs_;
  bool unified_;
};

}  // namespace voda::local
