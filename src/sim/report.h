// The report of `voda simulate --report`: one HTML file that compares the runs, for people. It needs no
// network and no other file, so it can be mailed, archived or opened from disk years later.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/bound.h"
#include "sim/result.h"

namespace voda::sim {

struct ReportInput {
  std::string title;
  std::string description;  // cluster, workload, seed, placement, command; one or a few lines
  std::vector<RunResult> runs;
  std::optional<LowerBound> bound = std::nullopt;  // compared with runs that completed its jobs
};

// The same input gives the same bytes. Names are untrusted: no text of the input can become markup or script.
std::string RenderReport(const ReportInput& input);

}  // namespace voda::sim
