// Readers of public traces, in the CSV forms described in docs/WORKLOADS.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/profile.h"
#include "sim/workload.h"

namespace voda::sim {

// workload_run_*.csv of the reference's experiments; speedup.csv stands beside it.
Result<Workload> ReadThesis(const std::string& path);

struct ClusterTraceOptions {
  std::string_view select;                 // only this virtual cluster (philly) or cluster (itp); empty: all
  std::string_view curve = "power:0.8";    // of every job: the traces know none
  const ProfileTable* profiles = nullptr;  // for a curve that names one
  std::vector<std::string>* notes = nullptr;  // told what was left out
};
Result<Workload> ReadPhilly(const std::string& path, const ClusterTraceOptions& options);
Result<Workload> ReadItp(const std::string& path, const ClusterTraceOptions& options);

// workloads.csv of the Pollux artifact; job_time_vs_gpus.csv, and profiles_placements.csv where there is one,
// stand beside it. `select` is SET/NUMBER, "1.0/3"; empty: "1.0/1".
Result<Workload> ReadPollux(const std::string& path, std::string_view select);

}  // namespace voda::sim
