// LoadWorkload: the one door through which a simulation gets its jobs, whatever they are written in.
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
  // voda: of rows that give none, else linear. philly, itp: of all jobs, else power:0.8. gen: of all jobs,
  // else by category. thesis and pollux bring their own and refuse it.
  std::string curve = {};
  // Table of speed-ups. Else speedups.csv beside a voda workload, else the table built in.
  std::string profiles = {};
  std::uint64_t seed = 1;  // of a generator that names none
};

// `notes`, where given, are told what was left out of a trace.
Result<Workload> LoadWorkload(const WorkloadSource& source, std::vector<std::string>* notes = nullptr);

}  // namespace voda::sim
