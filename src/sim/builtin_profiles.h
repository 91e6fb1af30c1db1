// The project's own small table of speed-ups, for generated workloads and for those that bring no table.
// Synthetic; examples/workloads/README.md says how it was made.
#pragma once

#include <string_view>

namespace voda::sim {

// As ParseProfiles reads it.
std::string_view BuiltinProfilesCsv();

}  // namespace voda::sim
