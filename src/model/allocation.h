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
  PerJob<int> workers;  // 0 or an allowed size
  PerJob<Reason> reasons;
  // The policy's own order, first served first; without jobs that can never be seated.
  std::vector<JobIndex> order;
  Entry entry = Entry::kMin;
  PerJob<int> floor;               // what each job must keep when jobs give way; empty: nobody must
  PerJob<int> most;                // the most that each may get of what that frees; empty: its maximum
  std::vector<JobIndex> promoted;  // jobs whose attained service, waiting and running time start anew
  double wake_at = kNever;         // when the answer may change without an event
  std::string note;                // what the operator should know of this decision; empty mostly
};

// Whether every job has 0 or an allowed size and the sum fits the capacity.
bool Valid(const Snapshot& snapshot, const Allocation& allocation);

}  // namespace voda
