// The command of a worker and its whole environment; nothing of Voda's own environment is passed on.
#pragma once

#include <cstdint>
#include <string>

#include "local/local_cluster.h"
#include "local/start_files.h"

namespace voda::local {

// Folders and files of a job, below LocalConfig::folder.
std::string JobPath(const LocalConfig& config, std::int64_t id);
std::string WorkPath(const std::string& job_path);     // VODA_JOB_DIR
std::string MetricsPath(const std::string& job_path);  // METRICS_DIR
std::string DiscoverPath(const std::string& job_path);

// A PyTorchJob whose group cannot take in or lose a worker: it is started and stopped as a whole.
bool Rigid(const JobSpec& spec);

// What a worker is told that its start does not say.
struct Told {
  bool has_devices = false;  // whether the node's GPUs are known; if not, a worker sees none
  // As worker 0 was told, since all must know the same; if empty, the job's.
  std::string nnodes;
  std::string rendezvous;
  std::string
      discover_hosts;  // VODA_DISCOVER_HOSTS of an MPIJob: DiscoverPath by a plain name (plain_path.h)
};

// Sets argv, env and working_dir of a start that says which worker it is of, and where.
void SetCommand(const LocalConfig& config, const AcceptedJob& job, const Told& told, WorkerSpec& start);

}  // namespace voda::local
