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

// Why a running job did not take more although GPUs stayed idle.
enum class Ceiling : std::uint8_t {
  kNone,        // it is at its maximum, or nothing that it could use is idle
  kNotFaster,   // no larger size that fits is enough faster
  kUnmeasured,  // larger sizes are more than twice the largest measured one
  kTrial,       // it has not run long enough to try a size that nobody measured
  kReach,       // nothing is known about how it scales across nodes, and it has not run long enough to try
  kStall,       // the change would take longer than it saves
};

inline constexpr int kCeilings = static_cast<int>(Ceiling::kStall) + 1;

// The word for it in JSON, such as "not_faster"; empty for kNone.
std::string_view Name(Ceiling ceiling);

struct Reason {
  ReasonCode code = ReasonCode::kWaits;
  Ceiling ceiling = Ceiling::kNone;
  int needs = 0;            // GPUs it asked for
  int free = 0;             // GPUs that were free when it was its turn
  int jobs_ahead = 0;       // jobs served before it
  JobIndex ahead = kNoJob;  // the last of them
  // Of the policy Price.
  double price = 0;    // of a GPU-second, in seconds of the other jobs
  double seconds = 0;  // that the job still takes at its size; GPU-seconds left where it waits
  int jobs = 0;        // that share the GPUs, this one among them
  int gpus = 0;        // in all
  int idle = 0;        // that nobody took
  int larger = 0;      // the next larger size that it might have taken, in workers; 0: there is none
  double until = 0;    // when the ceiling rises by itself; 0: it does not
  // Of a job that was moved to save time.
  bool moved = false;
  double move_saves = 0;
  double move_costs = 0;
  bool repacked = false;
};

// The numbers behind a reason of Price, by the names they have in JSON; none of other reasons.
// `visit(name, number)`.
template <class Visit>
void EachNumber(const Reason& reason, Visit&& visit) {
  if (reason.jobs == 0) return;
  visit("price", reason.price);
  visit("seconds", reason.seconds);
  visit("jobs", reason.jobs);
  visit("gpus", reason.gpus);
  visit("idle", reason.idle);
  if (reason.larger > 0) visit("larger", reason.larger);
  if (reason.until > 0) visit("until", reason.until);
}

// One sentence for people: what the job got, why, and what would have to change.
std::string Describe(const Reason& reason, const Snapshot& snapshot, JobIndex job, int workers);
// What is believed of the job where that is not known, and how to tell more; empty where it is known.
std::string DescribeBelief(const Job& job);

}  // namespace voda
