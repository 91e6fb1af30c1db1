// Readers of public traces, in the CSV forms described in docs/WORKLOADS.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/profile.h"
#include "sim/workload.h"

namespace voda::sim {

// Reads a workload_run_*.csv of the experiments with the reference, the Go research prototype whose design
// Voda started from; speedup.csv stands beside it.
Result<Workload> ReadThesis(const std::string& path);

struct ClusterTraceOptions {
  std::string_view select;  // only this virtual cluster (philly) or cluster (itp); empty means all
  std::string_view curve = "power:0.8";       // of every job, since the traces have none
  const ProfileTable* profiles = nullptr;     // for a curve that names one
  std::vector<std::string>* notes = nullptr;  // receives what was left out
};
Result<Workload> ReadPhilly(const std::string& path, const ClusterTraceOptions& options);
Result<Workload> ReadItp(const std::string& path, const ClusterTraceOptions& options);

// Reads the workloads.csv of the Pollux artifact; beside it stand job_time_vs_gpus.csv and optionally
// profiles_placements.csv. `select` is SET/NUMBER, such as "1.0/3"; empty means "1.0/1".
Result<Workload> ReadPollux(const std::string& path, std::string_view select);

}  // namespace voda::sim
