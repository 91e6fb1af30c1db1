// The multiple-choice knapsack behind FfDLOptimizer: one option for each item, the weights together at most
// the capacity, the largest sum of values; among equal sums the least weight, then more weight to the earlier
// item.
//
// How: an exact dynamic programme where that is cheap. Otherwise the linear relaxation (concave hulls,
// largest slope first) gives an upper bound and, at its price per unit of weight, the loss of every option
// that deviates from it; no option whose loss exceeds bound minus incumbent can be part of an optimum. The
// programme then runs over the few items that are left (the core), which grows until nothing outside it can
// matter: an exact answer with its proof. Work is bounded; where the bound is reached first, `gap` says how
// far from the optimum the answer can be. Sums are doubles compared as they are; the bound's own rounding is
// covered by a margin of 1e-9.
#pragma once

#include <cstdint>
#include <vector>

namespace voda {

struct KnapsackOption {
  int weight = 0;
  double value = 0;
};

// Options of one item: weights and values strictly ascending, the first of weight 0.
using KnapsackItem = std::vector<KnapsackOption>;

struct KnapsackAnswer {
  std::vector<int> choice;  // per item
  double gap = 0;           // 0: optimal
};

inline constexpr std::int64_t kKnapsackWork = 200'000'000;

KnapsackAnswer SolveKnapsack(const std::vector<KnapsackItem>& items, int capacity,
                             std::int64_t work = kKnapsackWork);

}  // namespace voda
