// LocalCluster: this machine's processes behind the Cluster port.
//
// A worker of a PyTorchJob, or the launcher of an MPIJob, is a process below a shim (shim.h) that outlives
// Voda. What runs is read from the run folder alone, so a restarted Voda knows as much as the one before
// it. One thread carries out actions, in order for each job, and watches processes; it reports everything
// to the sink. Jobs and nodes are announced before the scheduler may act on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/pulse.h"
#include "base/result.h"
#include "cluster/job_cluster.h"
#include "cluster/sink.h"

namespace voda {

struct LocalConfig {
  std::string folder;       // DATA/jobs: one folder per job id
  std::string working_dir;  // for jobs without one of their own
  // The PATH of jobs whose containers set none: Voda's own, so that they find its user's programs.
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::string shim;  // the program to run as `shim __shim FOLDER`; normally /proc/self/exe
  // "http://127.0.0.1:55587"; jobs get VODA_PROGRESS_URL=<this>/api/v1/jobs/NAME/progress.
  std::string progress_url;
  std::string progress_socket;                      // VODA_PROGRESS_SOCKET, where there is one
  bool private_network = false;                     // each job has a network of its own (network.h)
  std::int64_t log_bytes = std::int64_t{64} << 20;  // of the newest output, for each worker

  double shim_seconds = 20;    // for a shim to report that it is ready; a loaded machine is slow
  double launch_seconds = 60;  // for Elastic Horovod, from its start to its first look at its hosts
  double trial_seconds = 0.5;  // a worker that fails this soon is a failed start
  // Failures of other workers this soon after a change are its effect and do not count.
  double disturbed_seconds = 60;
  double stale_seconds = 8;  // for training to notice that workers of its group have left
  double judge_seconds = 5;  // for worker 0 to end well, too, before the failure of another is judged
};

class LocalCluster : public JobCluster {
 public:
  // The sink must outlive the cluster.
  static Result<std::unique_ptr<LocalCluster>> Open(LocalConfig config, ClusterSink& sink);
  // Stops processes below the data folder that belong to none of the added jobs, then starts the thread.
  virtual void Run() = 0;
  virtual const Pulse& pulse() const = 0;  // of the thread
};

}  // namespace voda
