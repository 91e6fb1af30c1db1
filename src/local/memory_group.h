// MemoryGroup: a cgroup with a memory limit for one worker, where this process may make one (cgroup v2 or
// v1). RLIMIT_AS would be no substitute: CUDA reserves far more addresses than it uses.
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
  // The calling process joins; for a child before exec.
  bool Join() const;
  // Whether the kernel killed somebody in it for want of memory.
  bool Killed() const;
  // Of what is empty by now.
  void Remove() const;

 private:
  MemoryGroup(std::string path, Fd procs, bool unified)
      : path_(std::move(path)), procs_(std::move(procs)), unified_(unified) {}

  std::string path_;
  Fd procs_;
  bool unified_;
};

}  // namespace voda::local
