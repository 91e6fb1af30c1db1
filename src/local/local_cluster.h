// LocalCluster: this machine's processes behind the Cluster port.
//
// A worker of a PyTorchJob, or the launcher of an MPIJob, is a process below a shim (shim.h) that outlives
// Voda. What runs is read from the run folder alone, so a restarted Voda knows as much as the one before it.
// One thread of its own carries actions out, in order for each job, and watches processes; everything it
// learns is handed to `post` as events. Jobs and nodes are announced before the scheduler may act on them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/job_cluster.h"

namespace voda {

struct LocalConfig {
  std::string folder;       // DATA/jobs: one folder per job id
  std::string working_dir;  // of jobs that name none
  // Of jobs, where their containers set none: Voda's own, so that what its user has on it is found.
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::string shim;  // the program to run as `shim __shim FOLDER`; normally /proc/self/exe
  std::string
      progress_url;  // "http://127.0.0.1:55587"; jobs get VODA_PROGRESS_URL=<this>/api/v1/jobs/NAME/progress
  double launch_seconds = 60;   // what Elastic Horovod gets from its start on to look at its hosts
  double settle_seconds = 0.5;  // a worker that ends with an error before is a failed start
  double disturbed_seconds =
      60;                    // failures of other workers so soon after a change are its effect, not failures
  double stale_seconds = 8;  // what training gets to notice that members of its group have left
  std::int64_t log_bytes = std::int64_t{64} << 20;  // kept per worker, the newest
  double judge_seconds = 5;  // what worker 0 gets to end well, too, before the failure of another is judged
};

class LocalCluster : public JobCluster {
 public:
  struct Callbacks {
    // Both are called from the cluster's thread and must not block for long.
    std::function<void(const std::string& gpu_type, Event event)> post;
    std::function<void(const JobNotice&)> notice;
  };

  static Result<std::unique_ptr<LocalCluster>> Open(LocalConfig config, Callbacks callbacks);
  // Processes below the data folder that belong to no job that was added: stops them. Then starts the thread.
  virtual void Run() = 0;
};

}  // namespace voda
