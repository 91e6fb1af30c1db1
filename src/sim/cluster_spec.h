// The simulated cluster as people write it: "3x4" is 3 nodes of 4 GPUs, "2x8,1x4" adds another kind; and a
// schedule of nodes that come, go or change, as CSV: time_s,node,change with change one of `add:GPUS`,
// `remove`, `cordon`, `uncordon`, `gpus:GPUS`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/simulation.h"

namespace voda::sim {

Result<std::vector<Node>> ParseCluster(std::string_view text);
Result<std::vector<NodeChange>> ReadNodeChanges(const std::string& path);

}  // namespace voda::sim
