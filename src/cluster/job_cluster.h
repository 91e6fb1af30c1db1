// JobCluster: where jobs run, as the service sees it: this machine's processes (src/local) or pods of the
// Kubeflow operators (src/kubeflow). Who keeps the record of jobs is another matter (ledger/ledger.h).
//
// All of it is called on the engine's thread and does not block, unless it says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "core/ports.h"
#include "ledger/ledger.h"
#include "spec/job_spec.h"

namespace voda {

class JobCluster {
 public:
  virtual ~JobCluster() = default;  // leaves everything running

  // Whether it can run anything at all; if not, the reason, which ends with what to do.
  virtual Status CanStart() const { return Ok{}; }

  // ---- What runs.
  // How many of a node's GPUs one worker takes on nodes of this type.
  virtual Result<int> GpusPerWorker(const JobSpec& spec, const std::string& gpu_type) const = 0;
  // The devices of a node by GPU index; empty: slots without a device. Announced before its NodeAdded.
  virtual void AddNode(const std::string& name, const std::vector<int>& devices) = 0;
  // Before any action about the job. A job that was found without a token gets what Voda needs with the first
  // write that starts it. `known` says that the job was accepted by an earlier run: what still
  // runs of it is adopted and returned as the node of each worker ("" where that worker is down; empty:
  // nothing runs). Anything that ended meanwhile is posted after Run(). A job that was added before is
  // described anew: what starts from then on follows the new description.
  virtual std::vector<std::string> AddJob(const AcceptedJob& job, bool known) = 0;
  // The job has ended for the service: nothing of it runs any more or is stopped now, its logs stay.
  virtual void ForgetJob(const std::string& name) = 0;
  // Removes logs and files of a job that is no longer kept. Files under its number that are another job's, by
  // its token, stay.
  virtual void EraseJob(std::int64_t id, const std::string& token) = 0;
  virtual int Failures(const std::string& job) const = 0;
  // Of a job that was added as known: how many seconds its latest workers ran, if they ended and no run of
  // Voda has told of it; else 0.
  virtual double RanUnheard(const std::string& /*job*/) const { return 0; }
  // The highest id that had files here when Voda started, also of jobs that nobody knows any more; 0: none.
  // New jobs get higher ones, so that none of them finds the files of another.
  virtual std::int64_t LastId() const { return 0; }
  // The port for the scheduler of one GPU type: action ids are unique only within one.
  virtual Cluster& PortFor(const std::string& gpu_type) = 0;

  // ---- What it printed.
  // Files of a worker, oldest first: one for each time it was started, two where that was much. Only the last
  // one grows, until there is another behind it; none is renamed. None of another job, by its token. Any
  // thread.
  virtual std::vector<std::string> LogFiles(std::int64_t id, const std::string& token, int worker) const = 0;
  // Where there are no files: pieces in order, then once the end, with a refusal where nothing could be read;
  // both on any thread. False: there are files.
  struct LogRequest {
    std::string job;
    int worker = 0;
    std::int64_t tail = -1;  // lines; -1: all that is kept
    bool follow = false;
    std::size_t bytes = 0;                            // at most, where it does not follow
    std::function<bool(std::string_view text)> data;  // false: nobody reads any more
    std::function<void(std::optional<Refusal>)> end;
  };
  virtual bool ReadLogs(const LogRequest& request) = 0;
};

}  // namespace voda
