#include "placement/free_nodes.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/check.h"

namespace voda {

FreeNodes::FreeNodes(std::vector<int> free) : free_(std::move(free)) {
  int most = 0;
  for (const int gpus : free_) most = std::max(most, gpus);
  levels_.resize(static_cast<std::size_t>(most) + 1);
  occupied_.assign(levels_.size() / 64 + 1, 0);
  // Ascending ranks make each level a valid heap as it is filled.
  for (int node = 0; node < static_cast<int>(free_.size()); ++node) {
    if (free_[static_cast<std::size_t>(node)] > 0) List(node);
  }
}

void FreeNodes::List(int node) {
  const auto level = static_cast<std::size_t>(free_[static_cast<std::size_t>(node)]);
  levels_[level].push_back(node);
  std::push_heap(levels_[level].begin(), levels_[level].end(), std::greater<>());
  occupied_[level / 64] |= std::uint64_t{1} << (level % 64);
}

int FreeNodes::Top(int level) {
  auto& heap = levels_[static_cast<std::size_t>(level)];
  while (!heap.empty()) {
    if (free_[static_cast<std::size_t>(heap.front())] == level) return heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
  }
  occupied_[static_cast<std::size_t>(level) / 64] &= ~(std::uint64_t{1} << (level % 64));
  return kNone;
}

int FreeNodes::BestFit(int gpus) {
  if (gpus >= static_cast<int>(levels_.size())) return kNone;
  auto word = static_cast<std::size_t>(gpus) / 64;
  std::uint64_t bits = occupied_[word] & (~std::uint64_t{0} << (gpus % 64));
  while (true) {
    while (bits != 0) {
      const int level = static_cast<int>(word * 64) + std::countr_zero(bits);
      if (const int node = Top(level); node != kNone) return node;
      bits &= bits - 1;
    }
    if (++word == occupied_.size()) return kNone;
    bits = occupied_[word];
  }
}

int FreeNodes::Emptiest() {
  for (std::size_t word = occupied_.size(); word-- > 0;) {
    while (occupied_[word] != 0) {
      const int level = static_cast<int>(word * 64) + 63 - std::countl_zero(occupied_[word]);
      if (const int node = Top(level); node != kNone) return node;  // Top clears the bit of an empty level
    }
  }
  return kNone;
}

void FreeNodes::Take(int node, int gpus) {
  int& free = free_[static_cast<std::size_t>(node)];
  VODA_CHECK(gpus >= 0 && gpus <= free);
  if (gpus == 0) return;
  free -= gpus;
  if (free > 0) List(node);
}

}  // namespace voda
