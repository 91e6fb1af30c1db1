#include "policy/las.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace voda {

LasPass RankByService(const Accounts& accounts, const Snapshot& snapshot, const LasOptions& options) {
  LasPass pass;
  pass.queue.assign(snapshot.jobs.size(), 0);
  for (const JobIndex i : accounts.jobs()) {
    const Job& job = snapshot.job(i);
    if (job.first_start && job.workers.empty() && job.waiting_seconds >= options.knob * job.running_seconds) {
      pass.promoted.push_back(i);
      continue;
    }
    const auto reached =
        std::upper_bound(options.thresholds.begin(), options.thresholds.end(), job.attained_gpu_seconds) -
        options.thresholds.begin();
    pass.queue[i] = static_cast<int>(reached);
  }
  pass.order = accounts.Admission([&](JobIndex i) {
    const Job& job = snapshot.job(i);
    return Accounts::Keys{.first = static_cast<double>(pass.queue[i]),
                          .second = job.first_start.value_or(std::numeric_limits<double>::infinity())};
  });
  return pass;
}

double NextQueueChange(const Snapshot& snapshot, const Allocation& allocation, const LasPass& pass,
                       const LasOptions& options) {
  PerJob<bool> promoted(snapshot.jobs.size(), false);
  for (const JobIndex i : pass.promoted) promoted[i] = true;
  double wait = kNever;
  for (const JobIndex i : pass.order) {
    const Job& job = snapshot.job(i);
    const int gpus = job.gpus(allocation.workers[i]);
    if (gpus > 0) {
      const double attained = promoted[i] ? 0 : job.attained_gpu_seconds;
      const int queue = pass.queue[i];
      if (queue < std::ssize(options.thresholds))
        wait = std::min(wait, (options.thresholds[queue] - attained) / gpus);
    } else if (!promoted[i] && (job.first_start || !job.workers.empty())) {
      const double due = options.knob * job.running_seconds - job.waiting_seconds;
      if (due > 0) wait = std::min(wait, due);
    }
  }
  // Whole milliseconds, upwards: a wake that comes a rounding error early would change nothing and be asked
  // for again.
  return wait == kNever ? kNever : (std::ceil((snapshot.now + wait) * 1000) + 1) / 1000;
}

}  // namespace voda
