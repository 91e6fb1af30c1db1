#include "model/placement.h"

#include <algorithm>

namespace voda {

int NodesSpanned(std::span<const NodeIndex> seats) {
  if (seats.empty()) return 0;
  if (std::all_of(seats.begin(), seats.end(), [&](NodeIndex at) { return at == seats.front(); })) return 1;
  std::vector<NodeIndex> nodes(seats.begin(), seats.end());
  std::sort(nodes.begin(), nodes.end());
  return static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
}

}  // namespace voda
