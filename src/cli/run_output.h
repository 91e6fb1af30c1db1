// The runs of `voda simulate` as a table for people, and as JSON and CSV for programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/bound.h"
#include "sim/result.h"

namespace voda {

std::string RunsAsTable(const std::vector<sim::RunResult>& runs);
// Says how far each run is above the bound that no schedule can beat.
std::string BoundAsText(const std::vector<sim::RunResult>& runs, const sim::LowerBound& bound);
// Writes {"runs": [...]}. With `jobs` each run has its jobs; with `bound` the bound is added, and how far
// each run is above it.
std::string RunsAsJson(const std::vector<sim::RunResult>& runs, bool jobs,
                       const std::optional<sim::LowerBound>& bound);
// Writes a row per run, or with `jobs` a row per job and run.
std::string RunsAsCsv(const std::vector<sim::RunResult>& runs, bool jobs);

}  // namespace voda
