// The runs of `voda simulate` as a table for people, and as JSON and CSV for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/bound.h"
#include "sim/result.h"

namespace voda {

std::string RunsAsTable(const std::vector<sim::RunResult>& runs);
// How far each run is above what no schedule can beat.
std::string BoundAsText(const std::vector<sim::RunResult>& runs, const sim::LowerBound& bound);
// {"runs": [...]}; with `jobs` each run carries its jobs, with `bound` there is that too and how far each run
// is above it.
std::string RunsAsJson(const std::vector<sim::RunResult>& runs, bool jobs,
                       const std::optional<sim::LowerBound>& bound);
// A row per run, or with `jobs` a row per job and run.
std::string RunsAsCsv(const std::vector<sim::RunResult>& runs, bool jobs);

}  // namespace voda
