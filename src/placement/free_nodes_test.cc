#include "placement/free_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/check.h"
#include "support/generators.h"

namespace voda {
namespace {

using testing::Check;
using testing::Rng;

// The same by looking at every node.
struct Naive {
  PerRank<int> free;

  NodeRank BestFit(int gpus) const {
    NodeRank best = kNoRank;
    for (const NodeRank node : free.indices()) {
      if (free[node] < gpus) continue;
      if (best == kNoRank || free[node] < free[best]) best = node;
    }
    return best;
  }
  NodeRank Emptiest() const {
    const auto most = std::max_element(free.begin(), free.end());
    return most == free.end() || *most <= 0 ? kNoRank : NodeRank(most - free.begin());
  }
};

TEST(FreeNodes, AgreesWithANaiveModel) {
  Check([] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const int largest = rng.Pick<int>({1, 4, 8, 63, 64, 65, 130});
    Naive naive;
    const int nodes = *rc::gen::inRange(0, 40);
    for (int i = 0; i < nodes; ++i) naive.free.push_back(rng.Int(-1, largest));
    FreeNodes fast(naive.free);
    for (int step = 0; step < 80; ++step) {
      const int gpus = rng.Int(1, largest + 2);
      RC_ASSERT(fast.BestFit(gpus) == naive.BestFit(gpus));
      RC_ASSERT(fast.Emptiest() == naive.Emptiest());
      const NodeRank node = rng.Chance(0.5) ? naive.BestFit(gpus) : naive.Emptiest();
      if (node == kNoRank) continue;
      int& free = naive.free[node];
      const int take = rng.Int(0, free);
      fast.Take(node, take);
      free -= take;
      RC_ASSERT(fast.free(node) == free);
    }
  });
}

TEST(FreeNodes, ANodeKeptOutIsNeverOffered) {
  FreeNodes free({-1, 0, -1});
  EXPECT_EQ(free.Emptiest(), kNoRank);
  EXPECT_EQ(free.BestFit(1), kNoRank);
}

TEST(FreeNodes, TheLowestRankWinsAmongEquals) {
  FreeNodes free({4, 2, 4, 2});
  EXPECT_EQ(free.Emptiest(), NodeRank(0));
  EXPECT_EQ(free.BestFit(1), NodeRank(1));
  free.Take(0, 2);
  EXPECT_EQ(free.BestFit(2), NodeRank(0));  // whatever order it got there in
}

}  // namespace
}  // namespace voda
