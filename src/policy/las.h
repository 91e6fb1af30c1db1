// Least attained service, discretised and in two dimensions (workers and time): the part that Tiresias and
// ElasticTiresias share.
//
// A job's queue is the number of thresholds (GPU-seconds) that its attained service has reached. A job that
// started before, holds nothing and has waited `knob` times as long as it ran is promoted: it goes to the
// first queue, and its counters start anew.
#pragma once

#include <vector>

#include "policy/accounts.h"

namespace voda {

struct LasOptions {
  std::vector<double> thresholds = {3600};  // ascending
  double knob = 8;
};

struct LasPass {
  std::vector<JobIndex> order;  // queue, first start (never started last), submit time; priority before all
  PerJob<int> queue;
  std::vector<JobIndex> promoted;  // in (submit time, name) order
};

LasPass RankByService(const Accounts& accounts, const Snapshot& snapshot, const LasOptions& options);

// When the queues may change without an event if the jobs hold what the allocation says: the next demotion of
// a running job or promotion of a waiting one.
double NextQueueChange(const Snapshot& snapshot, const Allocation& allocation, const LasPass& pass,
                       const LasOptions& options);

}  // namespace voda
