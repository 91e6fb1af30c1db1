// The runs of `voda simulate` as a table for people, and as JSON and CSV for programs.
#pragma once

#include <string>
#include <vector>

#include "sim/result.h"

namespace voda {

std::string RunsAsTable(const std::vector<sim::RunResult>& runs);
// {"runs": [...]}; with `jobs` each run carries its jobs.
std::string RunsAsJson(const std::vector<sim::RunResult>& runs, bool jobs);
// A row per run, or with `jobs` a row per job and run.
std::string RunsAsCsv(const std::vector<sim::RunResult>& runs, bool jobs);

}  // namespace voda
