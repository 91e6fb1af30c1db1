// LocalCluster: this machine's processes behind the Cluster port.
//
// A worker of a PyTorchJob, or the launcher of an MPIJob, is a process below a shim (shim.h) that outlives
// Voda. What runs is read from the run folder alone, so a restarted Voda knows as much as the one before it.
// One thread of its own carries actions out, in order for each job, and watches processes; everything it
// learns is handed to `post` as events. Jobs and nodes are announced before the scheduler may act on them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/ports.h"
#include "spec/job_spec.h"

namespace voda {

struct LocalJob {
  std::int64_t id = 0;  // names its files
  std::string name;
  std::string gpu_type;
  std::string token;  // for its progress reports
  JobSpec spec;
};

struct LocalConfig {
  std::string folder;       // DATA/jobs: one folder per job id
  std::string working_dir;  // of jobs that name none
  // Of jobs, where their containers set none: Voda's own, so that what its user has on it is found.
  std::string path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  std::string shim;  // the program to run as `shim __shim FOLDER`; normally /proc/self/exe
  std::string
      progress_url;  // "http://127.0.0.1:55587"; jobs get VODA_PROGRESS_URL=<this>/api/v1/jobs/NAME/progress
  double settle_seconds = 0.5;  // a worker that ends with an error before is a failed start
  double disturbed_seconds =
      60;                    // failures of other workers so soon after a change are its effect, not failures
  double stale_seconds = 8;  // what training gets to notice that members of its group have left
  std::int64_t log_bytes = std::int64_t{64} << 20;  // kept per worker, the newest
  double judge_seconds = 5;  // what worker 0 gets to end well, too, before the failure of another is judged
};

// What happened to a job that the scheduler's events cannot say.
struct LocalNotice {
  std::string job;
  std::string gpu_type;
  enum class Kind { kWorkerFailed, kWorkerRestarted } kind = Kind::kWorkerFailed;
  std::string message;
  int failures = 0;  // so far, counted against backoffLimit
};

class LocalCluster {
 public:
  struct Callbacks {
    // Both are called from the cluster's thread and must not block for long.
    std::function<void(const std::string& gpu_type, Event event)> post;
    std::function<void(const LocalNotice&)> notice;
  };

  static Result<std::unique_ptr<LocalCluster>> Open(LocalConfig config, Callbacks callbacks);
  virtual ~LocalCluster() = default;  // leaves everything running

  // The devices of a node by GPU index; empty: slots without a device. Announced before its NodeAdded.
  virtual void AddNode(const std::string& name, std::vector<int> devices) = 0;

  // Before any action about the job. `known` says that the job was accepted by an earlier run: what still
  // runs of it is adopted and returned as the node of each worker ("" where that worker is down; empty:
  // nothing runs). Anything that ended meanwhile is posted after Run(). A job that was added before is
  // described anew: what starts from then on follows the new description.
  virtual std::vector<std::string> AddJob(const LocalJob& job, bool known) = 0;
  // The job has ended in the store: its processes are gone or are stopped now, its logs stay.
  virtual void ForgetJob(const std::string& name) = 0;
  // Removes logs and files of a job that is no longer kept.
  virtual void EraseJob(std::int64_t id) = 0;
  // Processes below the data folder that belong to no job that was added: stops them. Then starts the thread.
  virtual void Run() = 0;

  // The port for the scheduler of one GPU type: action ids are unique only within one.
  virtual Cluster& PortFor(const std::string& gpu_type) = 0;

  // Files with what the worker printed, oldest first: one for each time it was started, two where that was
  // much. Only the last one grows, until there is another behind it; none is renamed.
  virtual std::vector<std::string> LogFiles(std::int64_t id, int worker) const = 0;
  virtual int Failures(const std::string& job) const = 0;
};

}  // namespace voda
