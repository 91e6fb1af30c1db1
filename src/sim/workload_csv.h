// The project's own workload format, `--format voda`: one job per row (docs/WORKLOADS.md).
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sim/profile.h"
#include "sim/workload.h"

namespace voda::sim {

// `default_curve` is the curve of rows without one, unless a profile has the name of the row's category.
Result<Workload> ReadWorkloadCsv(const std::string& path, const ProfileTable& profiles,
                                 std::string_view default_curve = "linear");
// Does the same from memory; `name` stands for the file in messages.
Result<Workload> ParseWorkloadCsv(std::string name, std::string_view text, const ProfileTable& profiles,
                                  std::string_view default_curve = "linear");

// Writes the workload so that ReadWorkloadCsv reads the same one back without a table of profiles.
void WriteWorkloadCsv(const Workload& workload, std::ostream& out);

}  // namespace voda::sim
