// Workload: the jobs that a simulation submits, as they truly are. Policies see only what the estimates say.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  std::shared_ptr<const SpanTable> spans;  // null: spreading over nodes costs nothing
  double work_seconds = 0;                 // on one worker, without stalls
  int epochs = 1;  // equal pieces of the work; progress is reported at the end of each
  // Seconds without progress per change; where absent the simulation's own.
  std::optional<double> start_cost;
  std::optional<double> rescale_cost;
  std::optional<double> migration_cost;
};

struct Workload {
  std::vector<WorkloadJob> jobs;  // sorted by (submit_time, name)
};

}  // namespace voda::sim
