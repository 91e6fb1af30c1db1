// Reason: why a job got what it got, as data: a code from a fixed list plus the numbers behind it.
// Text is made from it only when somebody asks (Describe).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/snapshot.h"

namespace voda {

enum class ReasonCode : std::uint8_t {
  kRunsAtNum,       // got the size it asked for
  kRunsAtMin,       // got its minimum; no larger size fitted or helped
  kGrew,            // got more than its minimum from what was spare
  kOptimum,         // its share of the allocation with the largest sum of speed-ups
  kPriced,          // the size whose time and rent together cost least
  kPricedOut,       // jobs with less GPU-time left took what it needs
  kShrankForQueue,  // back to its minimum because many jobs wait
  kWaits,           // what it needs is not free after the jobs ahead of it
  kNeverFits,       // its minimum cannot be seated even on the empty cluster
  kHeld,            // its owner holds it back, or it is being stopped
  kBackingOff,      // starting it failed; it is tried again later
  kGaveWay,         // fitted in GPUs counted together, not on the nodes
  kSeatedLate,      // got what others gave up because they could not be seated
  kGuarded,         // kept its size: min_runtime, cooldown or not preemptible
  kExternal,        // a program of the user's own decided
  kPolicyFailed,    // that program failed: the allocation before it stands
};

inline constexpr int kReasonCodes = static_cast<int>(ReasonCode::kPolicyFailed) + 1;

// The word for a code in JSON and metrics, such as "waits_for_gpus".
std::string_view Name(ReasonCode code);

struct Reason {
  ReasonCode code = ReasonCode::kWaits;
  int needs = 0;            // GPUs it asked for
  int free = 0;             // GPUs that were free when it was its turn
  int jobs_ahead = 0;       // jobs served before it
  JobIndex ahead = kNoJob;  // the last of them
  // Of kPriced and kPricedOut.
  double price = 0;           // of a GPU-second, in job-seconds
  double seconds = 0;         // the job still takes at its size; GPU-seconds left where it waits
  double seconds_at_min = 0;  // the job would take at its minimum
  // Of a job that was moved to save time.
  bool moved = false;
  double move_saves = 0;
  double move_costs = 0;
  bool repacked = false;
};

// One sentence for people: what the job got, why, and what would have to change.
std::string Describe(const Reason& reason, const Snapshot& snapshot, JobIndex job, int workers);

}  // namespace voda
