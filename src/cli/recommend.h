// The end of `voda simulate`: which algorithm would have served this workload best, and by how much.
#pragma once

#include <string>
#include <vector>

#include "sim/result.h"

namespace voda {

// Writes three lines, for average completion time, its 99th percentile and makespan, over the runs that
// completed the most jobs. Empty for fewer than two runs.
std::string Recommend(const std::vector<sim::RunResult>& runs);

}  // namespace voda
