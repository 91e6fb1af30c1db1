// Machine: what the runners of jobs share, and how they are heard. All on the cluster's thread.
#pragma once

#include <string>
#include <vector>

#include "local/local_cluster.h"
#include "local/workers.h"

namespace voda::local {

class Machine {
 public:
  virtual ~Machine() = default;

  virtual const LocalConfig& config() const = 0;
  virtual ProcessWatch& watch() = 0;

  virtual void Post(const std::string& gpu_type, Event event) = 0;
  virtual void Notice(const JobNotice& notice) = 0;
  virtual void SetFailures(const std::string& job, int failures) = 0;

  struct Devices {
    bool known = false;        // whether the node has any
    std::vector<int> indices;  // in ascending order
  };
  // As many GPUs of a node as asked for that no worker holds.
  virtual Result<Devices> FreeDevices(const std::string& node, int count) const = 0;
  // All of a node.
  virtual Devices DevicesOf(const std::string& node) const = 0;
  // A port of the loopback that nobody listens on and no live worker was told of.
  virtual Result<int> FreePort() const = 0;
};

}  // namespace voda::local
