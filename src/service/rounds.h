// Rounds: has the scheduler of each GPU type decide when it is time, here or on another thread, and writes
// down what each round did.
#pragma once

#include <string>

#include "history/history.h"
#include "metrics/metrics.h"
#include "service/announcer.h"
#include "service/config.h"
#include "service/job_events.h"

namespace voda {

class Rounds {
 public:
  // Everything given outlives it.
  Rounds(const ServiceConfig& config, Jobs& jobs, Pools& pools, JobEvents& events, History& history,
         Announcer& announcer, Metrics& metrics)
      : config_(config),
        jobs_(jobs),
        pools_(pools),
        events_(events),
        history_(history),
        announcer_(announcer),
        metrics_(metrics) {}

  void Advance(double now);
  // The answer of decide_elsewhere. What there is to send now is sent by the next Advance.
  void Finish(const std::string& gpu_type, const Decider& decider, const Decision& decision, double now);
  double NextWake(double now) const;

 private:
  void Advance(Pool& pool, double now);
  void Record(Pool& pool, const std::string& trigger, double seconds, double policy_seconds, double now);
  // A job stalls from the moment it is told to change; it says itself when it goes on.
  void BeginStalls(Pool& pool, double now);

  const ServiceConfig& config_;
  Jobs& jobs_;
  Pools& pools_;
  JobEvents& events_;
  History& history_;
  Announcer& announcer_;
  Metrics& metrics_;
};

}  // namespace voda
