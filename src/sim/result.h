// The result of simulating one workload under one algorithm.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/workload.h"

namespace voda::sim {

// From this time on the job held this many workers on this many nodes (0 while it waited or after its end).
struct Segment {
  double from = 0;
  int workers = 0;
  int nodes = 0;
};

struct JobResult {
  std::string name;
  std::string category;
  double submit_time = 0;
  int gpus_per_worker = 1;
  std::optional<double> first_start;
  std::optional<double> end;   // absent if it never completed, because its minimum can never be seated
  double waiting_seconds = 0;  // time without workers, between submission and end
  double gpu_seconds = 0;
  int rescales = 0;
  int preemptions = 0;
  int migrated_workers = 0;
  std::vector<Segment> history;  // only if the run keeps history
};

// The GPUs of ready and cordoned nodes, and those allocated, from this time on.
struct UsagePoint {
  double from = 0;
  int capacity = 0;
  int used = 0;
};

struct RunResult {
  std::string algorithm;
  PerWorkloadJob<JobResult> jobs;
  std::vector<UsagePoint> usage;  // only if the run keeps history
  int completed = 0;
  double makespan_s = 0;  // last end minus first submission
  double avg_jct_s = 0;   // over completed jobs; percentiles by linear interpolation
  double p50_jct_s = 0;
  double p95_jct_s = 0;
  double p99_jct_s = 0;
  double avg_wait_s = 0;
  double gpu_utilization = 0;  // allocated share of capacity over the makespan
  int rescales = 0;
  int preemptions = 0;
  int migrated_workers = 0;
  int rounds = 0;
  double decision_ms_p50 = 0;  // wall-clock cost of a round; only these figures differ between equal runs
  double decision_ms_p99 = 0;
};

}  // namespace voda::sim
