// The figures of a run from its jobs.
#pragma once

#include <vector>

#include "sim/result.h"

namespace voda::sim {

// Percentile by linear interpolation between closest ranks; 0 for no values. Sorts its argument.
double Percentile(std::vector<double>& values, double percent);

// Fills in everything of the result that follows from its jobs, and the decision times.
void Summarize(RunResult& result, std::vector<float> decision_ms);

}  // namespace voda::sim
