#include "placement/free_nodes.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/check.h"

namespace voda {

FreeNodes::FreeNodes(PerRank<int> free) : free_(std::move(free)) {
  int most = 0;
  for (const int gpus : free_) most = std::max(most, gpus);
  levels_.resize(most + 1);
  occupied_.assign(levels_.size() / 64 + 1, 0);
  // Ascending ranks make each level a valid heap as it is filled.
  for (const NodeRank node : free_.indices()) {
    if (free_[node] > 0) List(node);
  }
}

void FreeNodes::List(NodeRank node) {
  const int level = free_[node];
  levels_[level].push_back(node);
  std::push_heap(levels_[level].begin(), levels_[level].end(), std::greater<>());
  occupied_[level / 64] |= std::uint64_t{1} << (level % 64);
}

NodeRank FreeNodes::Top(int level) {
  auto& heap = levels_[level];
  while (!heap.empty()) {
    if (free_[heap.front()] == level) return heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
  }
  occupied_[level / 64] &= ~(std::uint64_t{1} << (level % 64));
  return kNoRank;
}

NodeRank FreeNodes::BestFit(int gpus) {
  if (gpus >= std::ssize(levels_)) return kNoRank;
  std::size_t word = gpus / 64;
  std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (gpus % 64));
  while (true) {
    while (bits != 0) {
      const int level = static_cast<int>(word * 64) + std::countr_zero(bits);
      if (const NodeRank node = Top(level); node != kNoRank) return node;
      bits &= bits - 1;
    }
    if (++word == occupied_.size()) return kNoRank;
    bits = occupied_[word];
  }
}

NodeRank FreeNodes::Emptiest() {
  for (std::size_t word = occupied_.size(); word-- > 0;) {
    while (occupied_[word] != 0) {
      const int level = static_cast<int>(word * 64) + 63 - std::countl_zero(occupied_[word]);
      if (const NodeRank node = Top(level); node != kNoRank)
        return node;  // Top clears the bit of an empty level
    }
  }
  return kNoRank;
}

void FreeNodes::Take(NodeRank node, int gpus) {
  int& free = free_[node];
  VODA_CHECK(gpus >= 0 && gpus <= free);
  if (gpus == 0) return;
  free -= gpus;
  if (free > 0) List(node);
}

}  // namespace voda
