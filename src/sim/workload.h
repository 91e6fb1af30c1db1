// Workload: the jobs that a simulation submits, as they truly are. Policies know only the estimates.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/indexed.h"
#include "model/curve.h"
#include "model/span.h"

namespace voda::sim {

struct WorkloadJob {
  std::string name;      // unique within the workload
  std::string category;  // jobs of one category share history
  double submit_time = 0;
  int min = 1;
  int num = 1;
  int max = 1;
  int gpus_per_worker = 1;
  int priority = 0;
  bool preemptible = true;
  CurvePtr curve;  // allowed sizes and their true speed-up, packed on as few nodes as possible
  std::shared_ptr<const SpanTable> spans;  // null if spreading over nodes costs nothing
  double work_seconds = 0;                 // on one worker, without stalls
  int epochs = 1;  // equal pieces of the work; progress is reported at the end of each
  // Seconds without progress per change; if absent, the simulation's own.
  std::optional<double> start_cost;
  std::optional<double> rescale_cost;
  std::optional<double> migration_cost;
};

// The position of a job in Workload::jobs, and a list with one entry for each job. The scheduler's own
// JobIndex changes as jobs come and end; this one does not.
using JobNumber = Index<struct JobNumberTag>;
template <class T>
using PerWorkloadJob = IndexedVector<JobNumber, T>;

struct Workload {
  PerWorkloadJob<WorkloadJob> jobs;  // sorted by (submit_time, name)
};

}  // namespace voda::sim
