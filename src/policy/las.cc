#include "policy/las.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace voda {

LasPass RankByService(const Ledger& ledger, const Snapshot& snapshot, const LasOptions& options) {
  LasPass pass;
  pass.queue.assign(snapshot.jobs.size(), 0);
  for (const JobIndex i : ledger.jobs()) {
    const Job& job = snapshot.job(i);
    if (job.first_start && job.workers.empty() && job.waiting_seconds >= options.knob * job.running_seconds) {
      pass.promoted.push_back(i);
      continue;
    }
    const auto reached =
        std::upper_bound(options.thresholds.begin(), options.thresholds.end(), job.attained_gpu_seconds) -
        options.thresholds.begin();
    pass.queue[static_cast<std::size_t>(i)] = static_cast<int>(reached);
  }
  pass.order = ledger.Admission([&](JobIndex i) {
    const Job& job = snapshot.job(i);
    return Ledger::Keys{.first = static_cast<double>(pass.queue[static_cast<std::size_t>(i)]),
                        .second = job.first_start.value_or(std::numeric_limits<double>::infinity())};
  });
  return pass;
}

double NextQueueChange(const Snapshot& snapshot, const Allocation& allocation, const LasPass& pass,
                       const LasOptions& options) {
  std::vector<bool> promoted(snapshot.jobs.size(), false);
  for (const JobIndex i : pass.promoted) promoted[static_cast<std::size_t>(i)] = true;
  double wait = kNever;
  for (const JobIndex i : pass.order) {
    const auto at = static_cast<std::size_t>(i);
    const Job& job = snapshot.job(i);
    const int gpus = job.gpus(allocation.workers[at]);
    if (gpus > 0) {
      const double attained = promoted[at] ? 0 : job.attained_gpu_seconds;
      const auto queue = static_cast<std::size_t>(pass.queue[at]);
      if (queue < options.thresholds.size())
        wait = std::min(wait, (options.thresholds[queue] - attained) / gpus);
    } else if (!promoted[at] && (job.first_start || !job.workers.empty())) {
      const double due = options.knob * job.running_seconds - job.waiting_seconds;
      if (due > 0) wait = std::min(wait, due);
    }
  }
  // Whole milliseconds, upwards: a wake that comes a rounding error early would change nothing and be asked
  // for again.
  return wait == kNever ? kNever : (std::ceil((snapshot.now + wait) * 1000) + 1) / 1000;
}

}  // namespace voda
