// FreeNodes: nodes by how many GPUs they have free, for best fit and emptiest-first in about constant time.
// Among equals the node with the lowest rank is taken, so results depend on ranks only, never on history.
#pragma once

#include <cstdint>
#include <vector>

namespace voda {

class FreeNodes {
 public:
  static constexpr int kNone = -1;

  // Nodes 0 … free.size()-1 with so many free GPUs each; a negative number keeps a node out for good.
  explicit FreeNodes(std::vector<int> free);

  int free(int node) const { return free_[static_cast<std::size_t>(node)]; }
  // The node with the fewest free GPUs that still has `gpus` (>= 1), or kNone.
  int BestFit(int gpus);
  // The node with most free GPUs, or kNone when all are full.
  int Emptiest();
  void Take(int node, int gpus);

 private:
  void List(int node);
  int Top(int level);  // lowest rank on a level, dropping stale entries; kNone when the level is empty

  std::vector<int> free_;
  std::vector<std::vector<int>>
      levels_;  // free GPUs -> min-heap of ranks, entries checked against free_ when read
  std::vector<std::uint64_t> occupied_;  // bit per level: its heap may hold something
};

}  // namespace voda
