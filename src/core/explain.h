// Explain: why a job has what it has. Jobs whose size changed remember the reason of that round; for the rest
// the decision is made again from the state as it is now, which is what makes it exact and free while nobody
// asks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/state.h"
#include "policy/policy.h"

namespace voda {

struct Explanation {
  std::string job;
  JobStatus status = JobStatus::kWaiting;
  int workers = 0;   // held now
  int planned = 0;   // of a plan made now
  int position = 0;  // in the policy's order, 1 is first; 0: not in it
  ReasonCode code = ReasonCode::kWaits;
  std::string text;  // why a plan made now gives it that
  std::optional<SizeChange> last_change;
};

// Nothing for a job that is not active.
std::optional<Explanation> Explain(const State& state, const Policy& policy, const std::string& job,
                                   double now);

}  // namespace voda
