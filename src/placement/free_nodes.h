// FreeNodes: nodes by how many GPUs they have free, for best fit and emptiest-first in about constant time.
// Among equals the node with the lowest rank is taken, so results depend on ranks only, never on history.
#pragma once

#include <cstdint>
#include <vector>

#include "placement/rank.h"

namespace voda {

class FreeNodes {
 public:
  // Takes the number of free GPUs of each node; a negative number keeps a node out for good.
  explicit FreeNodes(PerRank<int> free);

  int free(NodeRank node) const { return free_[node]; }
  // The node with the fewest free GPUs that still has `gpus` (>= 1), or kNoRank.
  NodeRank BestFit(int gpus);
  // The node with most free GPUs, or kNoRank when all are full.
  NodeRank Emptiest();
  void Take(NodeRank node, int gpus);

 private:
  void List(NodeRank node);
  // The lowest rank on a level, or kNoRank when the level is empty. Drops stale entries.
  NodeRank Top(int level);

  PerRank<int> free_;
  // By free GPUs: a min-heap of ranks, whose entries are checked against free_ when they are read.
  std::vector<std::vector<NodeRank>> levels_;
  std::vector<std::uint64_t> occupied_;  // bit per level: its heap may hold something
};

}  // namespace voda
