// What a simulation of one workload under one algorithm gave.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace voda::sim {

// From this time on the job held so many workers, on so many nodes (0: it waited or had ended).
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
  std::optional<double> end;   // absent: it never completed (its minimum can never be seated)
  double waiting_seconds = 0;  // holding nothing, between submission and end
  double gpu_seconds = 0;
  int rescales = 0;
  int preemptions = 0;
  int migrated_workers = 0;
  std::vector<Segment> history;  // only when the run was asked to keep it
};

// GPUs of ready and cordoned nodes, and those allocated, from this time on.
struct UsagePoint {
  double from = 0;
  int capacity = 0;
  int used = 0;
};

struct RunResult {
  std::string algorithm;
  std::vector<JobResult> jobs;    // in the workload's order
  std::vector<UsagePoint> usage;  // only when the run was asked to keep history
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
  double decision_ms_p50 = 0;  // wall-clock cost of a round; the only figures that differ between equal runs
  double decision_ms_p99 = 0;
};

}  // namespace voda::sim
