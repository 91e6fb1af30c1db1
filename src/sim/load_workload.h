// LoadWorkload: the one way in which a simulation gets its jobs, whatever their format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/workload.h"

namespace voda::sim {

struct WorkloadSource {
  // A file, or a generator ("gen:poisson?jobs=200"). After '#' philly and itp take a cluster
  // ("jobs.csv.gz#04") and pollux a set and number ("workloads.csv#1.0/3").
  std::string path = {};
  std::string format = "voda";  // ignored for a generator
  // For voda the curve of rows without one, by default linear; for philly and itp that of all jobs, by
  // default power:0.8; for gen that of all jobs, by default that of their category. thesis and pollux bring
  // their own and refuse it.
  std::string curve = {};
  // Table of speed-ups; by default speedups.csv beside a voda workload, else the built-in table.
  std::string profiles = {};
  std::uint64_t seed = 1;  // for a generator that names none
};

// If given, `notes` receives what was left out of a trace.
Result<Workload> LoadWorkload(const WorkloadSource& source, std::vector<std::string>* notes = nullptr);

}  // namespace voda::sim
