// What a worker runs and with which environment: exactly this, nothing of Voda's own.
#pragma once

#include <string>
#include <vector>

#include "local/local_cluster.h"

namespace voda::local {

// Folders and files of a job, below LocalConfig::folder.
std::string JobPath(const LocalConfig& config, std::int64_t id);
std::string WorkPath(const std::string& job_path);      // VODA_JOB_DIR
std::string MetricsPath(const std::string& job_path);   // METRICS_DIR
std::string DiscoverPath(const std::string& job_path);  // VODA_DISCOVER_HOSTS

// Where and as what a worker is started.
struct Seat {
  int worker = 0;
  std::string node;
  int serial = 0;  // of the start
  std::vector<int> devices;
  bool has_devices = false;  // the node's GPUs are known; without, a worker sees none
  int incarnation = 0;
  int port = 0;
  std::int64_t memory_bytes = 0;  // limit; 0: none
  std::string nnodes;             // as worker 0 was told: all must know the same limits; empty: the job's
};

struct Command {
  std::vector<std::string> argv;
  std::vector<EnvVar> env;
  std::string working_dir;
};

// A PyTorchJob whose processes cannot take a member in or let one go: it is started and stopped as a whole.
bool Rigid(const JobSpec& spec);

Command WorkerCommand(const LocalConfig& config, const ClusterJob& job, const Seat& seat);

}  // namespace voda::local
