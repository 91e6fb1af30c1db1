#include "model/allocation.h"

#include <cstdint>

namespace voda {

bool Valid(const Snapshot& snapshot, const Allocation& allocation) {
  if (allocation.workers.size() != snapshot.jobs.size()) return false;
  if (allocation.reasons.size() != snapshot.jobs.size()) return false;
  std::int64_t used = 0;
  for (const JobIndex i : snapshot.jobs.indices()) {
    const Job& job = snapshot.jobs[i];
    const int workers = allocation.workers[i];
    if (workers != 0 && job.curve->IndexOf(workers) < 0) return false;
    used += static_cast<std::int64_t>(workers) * job.gpus_per_worker;
  }
  return used <= Capacity(snapshot);
}

}  // namespace voda
