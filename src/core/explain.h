// Explain: why a job has what it has, and what it would get. The decision is made again on a view, which is
// what makes the answer exact and free while nobody asks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/view.h"
#include "model/guess.h"

namespace voda {

struct Explanation {
  JobStatus status = JobStatus::kWaiting;
  int workers = 0;     // observed
  int planned = 0;     // of a plan made now
  int position = 0;    // in the policy's order, 1 is first; 0: not in it
  int waiting = 0;     // jobs that wait for GPUs, it among them
  int needs_gpus = 0;  // what it holds, or its minimum
  int free_gpus = 0;   // on ready nodes, held by nobody
  std::string text;    // why a plan made now gives it that
  Reason reason;       // the same with its numbers
  Estimate estimate = Estimate::kTold;
  double work_left = 0;  // in seconds on one worker, as far as it is known
  std::string belief;    // what is assumed where nothing is known of the job; else empty
  struct Ahead {
    std::string name;
    JobStatus status = JobStatus::kWaiting;
    int workers = 0;  // of a plan made now
    int gpus = 0;
  };
  std::vector<Ahead> ahead;  // the first of those served before it, at most kAheadShown
  static constexpr std::size_t kAheadShown = 10;
};

// `plan` is Decide(view, policy).
Explanation Explain(const View& view, const Plan& plan, JobIndex job);

// One job of the latest plan, with the reason that a plan made now has for it.
struct PlannedJob {
  std::string name;
  std::vector<std::string> nodes;  // of its workers
  ReasonCode code = ReasonCode::kWaits;
  std::string reason;
  bool guessed = false;
};

// By name. `plan` is Decide(view, policy).
std::vector<PlannedJob> ExplainPlan(const View& view, const Plan& plan);

// What a job would get from a round if it came now.
struct Prospect {
  int workers = 0;
  std::string reason;
};

Prospect WouldGet(const View& view, const Policy& policy, const Job& job);

}  // namespace voda
