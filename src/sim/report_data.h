// What the report's page draws, as JSON. Large runs are thinned to limits that keep the file small enough
// to mail and quick to open; "notes", which the page shows, lists what was left out.
#pragma once

#include <string>

#include "sim/report.h"

namespace voda::sim {

// Limits of one report, over all its runs together unless noted.
struct ReportLimits {
  size_t job_rows = 100'000;
  size_t segments = 240'000;
  size_t usage_points_per_run = 2'000;
  size_t cdf_points_per_run = 400;
  size_t name_bytes = 240;
};

std::string ReportData(const ReportInput& input, const ReportLimits& limits = {});

}  // namespace voda::sim
