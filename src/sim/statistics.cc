#include "sim/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace voda::sim {

double Percentile(std::vector<double>& values, double percent) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double rank = percent / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(rank));
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (rank - static_cast<double>(below)) * (values[above] - values[below]);
}

void Summarize(RunResult& result, std::vector<float> decision_ms) {
  std::vector<double> jcts;
  double waits = 0;
  double sum = 0;
  double first = std::numeric_limits<double>::infinity();
  double last = -std::numeric_limits<double>::infinity();
  for (const JobResult& job : result.jobs) {
    first = std::min(first, job.submit_time);
    result.rescales += job.rescales;
    result.preemptions += job.preemptions;
    result.migrated_workers += job.migrated_workers;
    if (!job.end) continue;
    last = std::max(last, *job.end);
    jcts.push_back(*job.end - job.submit_time);
    sum += jcts.back();
    waits += job.waiting_seconds;
  }
  result.completed = static_cast<int>(jcts.size());
  if (!jcts.empty()) {
    const auto count = static_cast<double>(jcts.size());
    result.makespan_s = last - first;
    result.avg_jct_s = sum / count;
    result.avg_wait_s = waits / count;
    result.p50_jct_s = Percentile(jcts, 50);
    result.p95_jct_s = Percentile(jcts, 95);
    result.p99_jct_s = Percentile(jcts, 99);
  }
  std::vector<double> times(decision_ms.begin(), decision_ms.end());
  result.decision_ms_p50 = Percentile(times, 50);
  result.decision_ms_p99 = Percentile(times, 99);
}

}  // namespace voda::sim
