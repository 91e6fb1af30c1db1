#include "placement/max_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "support/check.h"
#include "support/generators.h"
#include "support/hungarian.h"

namespace voda {
namespace {

using testing::Check;
using testing::HungarianMaximum;
using testing::Rng;

using Dense = std::vector<std::vector<std::int64_t>>;  // 0: no edge

OverlapGraph Sparse(const Dense& weight, int columns) {
  OverlapGraph graph;
  graph.columns = columns;
  graph.first.push_back(0);
  for (const auto& row : weight) {
    for (int column = 0; column < columns; ++column) {
      const auto value = row[column];
      if (value > 0) graph.edges.push_back({NodeRank(column), static_cast<int>(value)});
    }
    graph.first.push_back(static_cast<int>(graph.edges.size()));
  }
  return graph;
}

Dense RandomWeights(Rng& rng, int rows, int columns) {
  const double density = rng.Pick<double>({0.02, 0.1, 0.3, 1});
  const int largest = rng.Pick<int>({1, 2, 3, 8, 1000});  // small: ties abound
  Dense weight(rows, std::vector<std::int64_t>(columns, 0));
  for (auto& row : weight) {
    for (auto& value : row) {
      if (rng.Chance(density)) value = rng.Int(1, largest);
    }
  }
  return weight;
}

// The sum of a matching; -1 where it is none.
std::int64_t Sum(const Dense& weight, const PerRow<NodeRank>& columns) {
  std::set<NodeRank> taken;
  std::int64_t sum = 0;
  for (const OverlapRow row : columns.indices()) {
    const NodeRank column = columns[row];
    if (column == kNoRank) continue;
    if (!taken.insert(column).second) return -1;
    const auto value = weight[static_cast<int>(row)][static_cast<int>(column)];
    if (value <= 0) return -1;
    sum += value;
  }
  return sum;
}

std::int64_t BruteForce(const Dense& weight, std::size_t row, std::vector<bool>& taken) {
  if (row == weight.size()) return 0;
  std::int64_t best = BruteForce(weight, row + 1, taken);
  for (std::size_t column = 0; column < taken.size(); ++column) {
    if (taken[column] || weight[row][column] == 0) continue;
    taken[column] = true;
    best = std::max(best, weight[row][column] + BruteForce(weight, row + 1, taken));
    taken[column] = false;
  }
  return best;
}

std::int64_t Optimum(const Dense& weight, int columns) {
  const std::size_t n = std::max<std::size_t>(weight.size(), columns);
  Dense square(n, std::vector<std::int64_t>(n, 0));
  for (std::size_t row = 0; row < weight.size(); ++row)
    std::copy(weight[row].begin(), weight[row].end(), square[row].begin());
  return HungarianMaximum(square);
}

TEST(MaxOverlap, NothingGivesNothing) {
  OverlapGraph graph;
  graph.first = {0};
  EXPECT_TRUE(MaxOverlap(graph).empty());
  graph.first = {0, 0, 0};
  EXPECT_EQ(MaxOverlap(graph), (PerRow<NodeRank>{kNoRank, kNoRank}));
}

TEST(MaxOverlap, GreedyIsNotEnough) {
  // Row 0 likes column 0 best; the optimum gives it to row 1.
  EXPECT_EQ(MaxOverlap(Sparse({{3, 2}, {3, 0}}, 2)), (PerRow<NodeRank>{1, 0}));
  // The optimum leaves a row out.
  EXPECT_EQ(Sum({{5}, {7}, {6}}, MaxOverlap(Sparse({{5}, {7}, {6}}, 1))), 7);
}

TEST(MaxOverlap, TheOracleAgreesWithBruteForce) {
  Check([] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const int columns = rng.Int(1, 6);
    const Dense weight = RandomWeights(rng, rng.Int(1, 6), columns);
    std::vector<bool> taken(columns, false);
    const std::int64_t best = BruteForce(weight, 0, taken);
    RC_ASSERT(best == Optimum(weight, columns));
    RC_ASSERT(best == Sum(weight, MaxOverlap(Sparse(weight, columns))));
  });
}

TEST(MaxOverlap, EqualsTheDenseOptimum) {
  Check([] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const int size = *rc::gen::inRange(1, 61);
    const int columns = rng.Int(1, size);
    const Dense weight = RandomWeights(rng, rng.Int(1, size), columns);
    RC_ASSERT(Sum(weight, MaxOverlap(Sparse(weight, columns))) == Optimum(weight, columns));
  });
}

TEST(MaxOverlap, IsTheSameEveryTime) {
  Rng rng(3);
  const Dense weight = RandomWeights(rng, 50, 50);
  const OverlapGraph graph = Sparse(weight, 50);
  EXPECT_EQ(MaxOverlap(graph), MaxOverlap(graph));
}

}  // namespace
}  // namespace voda
