// WorkloadBuilder: what all readers and generators of workloads share: the bounds of a job's numbers,
// unique names, and the order of jobs.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "sim/workload.h"

namespace voda::sim {

inline constexpr double kMaxSubmitSeconds = 1e10;  // three hundred years
inline constexpr double kMaxWorkSeconds = 1e12;
inline constexpr double kMaxCostSeconds = 1e7;
inline constexpr int kMaxJobs = 10'000'000;
inline constexpr int kMaxEpochs = 100'000;
inline constexpr int kMaxGpusPerWorker = 1024;
inline constexpr int kMaxPriority = 1'000'000'000;

class WorkloadBuilder {
 public:
  // Returns false and adds nothing if there is a job of that name already.
  bool Add(WorkloadJob job) {
    if (!names_.insert(job.name).second) return false;
    workload_.jobs.push_back(std::move(job));
    return true;
  }

  Workload Finish() && {
    std::sort(workload_.jobs.begin(), workload_.jobs.end(), [](const WorkloadJob& a, const WorkloadJob& b) {
      return std::tie(a.submit_time, a.name) < std::tie(b.submit_time, b.name);
    });
    return std::move(workload_);
  }

 private:
  std::unordered_set<std::string> names_;  // never iterated
  Workload workload_;
};

}  // namespace voda::sim
