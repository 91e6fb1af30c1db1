// Allocation: a policy's answer, how many workers each job of a snapshot gets and why.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "model/reason.h"
#include "model/snapshot.h"

namespace voda {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// The size at which a policy lets a waiting job in.
enum class Entry : std::uint8_t { kMin, kNum };

struct Allocation {
  std::vector<int> workers;     // per job of the snapshot: 0 or an allowed size
  std::vector<Reason> reasons;  // per job of the snapshot
  std::vector<JobIndex>
      order;  // the policy's own order, first served first; without jobs that can never be seated
  Entry entry = Entry::kMin;
  std::vector<int> floor;          // per job: what it must keep when jobs give way; empty: nobody must
  std::vector<JobIndex> promoted;  // jobs whose attained service, waiting and running time start anew
  double wake_at = kNever;         // when the answer may change without an event
  std::string note;                // what the operator should know of this decision; empty mostly
};

// Whether every job has 0 or an allowed size and the sum fits the capacity.
bool Valid(const Snapshot& snapshot, const Allocation& allocation);

}  // namespace voda
