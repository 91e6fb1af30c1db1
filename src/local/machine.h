// Machine: what the runners of jobs share, and where they report to. Everything runs on the cluster's thread.
#pragma once

#include <string>
#include <vector>

#include "local/local_cluster.h"
#include "local/worker_processes.h"

namespace voda::local {

class Machine {
 public:
  virtual ~Machine() = default;

  virtual const LocalConfig& config() const = 0;
  virtual DescriptorWatch& watch() = 0;
  // Until when adoptions may wait for shims, all of them together; past once the cluster's thread runs.
  virtual double AdoptionUntil() = 0;

  virtual void Post(const std::string& gpu_type, Event event) = 0;
  virtual void Notice(const JobNotice& notice) = 0;
  // The job was deleted before, and whoever believes it to be there is wrong.
  virtual void Gone(const std::string& job) = 0;
  virtual void SetFailures(const std::string& job, int failures) = 0;
  virtual void SetRanUnheard(const std::string& job, double seconds) = 0;
  // Takes a folder away at once and removes its content later.
  virtual void Erase(const std::string& folder) = 0;

  struct Devices {
    bool known = false;        // whether the node's GPUs are known
    std::vector<int> indices;  // in ascending order
  };
  // As many GPUs of a node as asked for, none of which a worker holds.
  virtual Result<Devices> FreeDevices(const std::string& node, int count) const = 0;
  // All GPUs of a node.
  virtual Devices DevicesOf(const std::string& node) const = 0;
  // A loopback port that nobody listens on and that no running worker was given.
  virtual Result<int> FreePort() const = 0;
};

}  // namespace voda::local
