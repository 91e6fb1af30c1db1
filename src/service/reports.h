// Reports: what jobs report of their progress, what is learned from it, and what the schedulers are told of
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/refusal.h"
#include "history/history.h"
#include "metrics/metrics.h"
#include "service/announcer.h"
#include "service/job_events.h"
#include "service/thread_pool.h"

namespace voda {

class Reports {
 public:
  // Everything given outlives it.
  Reports(Jobs& jobs, Pools& pools, JobEvents& events, History& history, Announcer& announcer,
          Metrics& metrics)
      : jobs_(jobs),
        pools_(pools),
        events_(events),
        history_(history),
        announcer_(announcer),
        metrics_(metrics) {}

  // A report that comes with the job's token.
  std::optional<Refusal> Take(const std::string& job, std::string_view token, const ProgressReport& report,
                              double now);
  // The progress files of the jobs that run.
  void LookAtFiles(double now);

 private:
  std::optional<std::string> Use(JobEntry& job, const ProgressReport& report, double now);
  void Learn(Pool& pool, JobEntry& job, const ProgressReport& report, const JobProgress::Outcome& outcome,
             double now);
  void Keep(const Pool& pool, MeanRecord mean);

  Jobs& jobs_;
  Pools& pools_;
  JobEvents& events_;
  History& history_;
  Announcer& announcer_;
  Metrics& metrics_;
  ThreadPool readers_{1};  // of progress files
};

}  // namespace voda
