// JobEvents: brings events to the scheduler of their GPU type and follows what they make of jobs: their
// records, what streams, logs, metrics and the readers of a job's object are told, and the end of jobs.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "cluster/job_cluster.h"
#include "cluster/sink.h"
#include "history/history.h"
#include "ledger/ledger.h"
#include "metrics/metrics.h"
#include "service/announcer.h"
#include "service/jobs.h"
#include "service/pools.h"

namespace voda {

class JobEvents {
 public:
  // Everything given outlives it.
  struct Parts {
    Jobs& jobs;
    Pools& pools;
    Ledger& ledger;
    History& history;
    JobCluster& cluster;
    Announcer& announcer;
    Metrics& metrics;
  };
  explicit JobEvents(Parts parts) : parts_(parts) {}

  void Handle(Pool& pool, const Event& event, double now);
  // Jobs that the scheduler of the pool has said good-bye to.
  void Ended(Pool& pool, const std::vector<EndedJob>& ended, double now);
  void Notice(const JobNotice& notice);

  // The job's record is gone, and its workers go with it.
  void Gone(const std::string& job, double now);
  // Whether the record of a job that was being accepted went meanwhile.
  bool WentEarly(const std::string& job) { return gone_early_.erase(job) > 0; }

 private:
  void Follow(const Pool& pool, const std::string& name, const std::vector<NodeIndex>& before, double now);
  void TellChange(const Pool& pool, const JobEntry& job, std::size_t from, const ActiveJob& active);
  void Finish(Pool& pool, JobEntry& job, const EndedJob& ended, double now);
  void Learn(Pool& pool, const JobRecord& record, const EndedJob& ended, double now);

  Parts parts_;
  std::unordered_set<std::string> gone_early_;
};

}  // namespace voda
