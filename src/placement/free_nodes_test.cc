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
  std::vector<int> free;

  int BestFit(int gpus) const {
    int best = FreeNodes::kNone;
    for (int node = 0; node < static_cast<int>(free.size()); ++node) {
      if (free[static_cast<std::size_t>(node)] < gpus) continue;
      if (best == FreeNodes::kNone ||
          free[static_cast<std::size_t>(node)] < free[static_cast<std::size_t>(best)])
        best = node;
    }
    return best;
  }
  int Emptiest() const {
    const auto most = std::max_element(free.begin(), free.end());
    return most == free.end() || *most <= 0 ? FreeNodes::kNone : static_cast<int>(most - free.begin());
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
      const int node = rng.Chance(0.5) ? naive.BestFit(gpus) : naive.Emptiest();
      if (node == FreeNodes::kNone) continue;
      int& free = naive.free[static_cast<std::size_t>(node)];
      const int take = rng.Int(0, free);
      fast.Take(node, take);
      free -= take;
      RC_ASSERT(fast.free(node) == free);
    }
  });
}

TEST(FreeNodes, ANodeKeptOutIsNeverOffered) {
  FreeNodes free({-1, 0, -1});
  EXPECT_EQ(free.Emptiest(), FreeNodes::kNone);
  EXPECT_EQ(free.BestFit(1), FreeNodes::kNone);
}

TEST(FreeNodes, TheLowestRankWinsAmongEquals) {
  FreeNodes free({4, 2, 4, 2});
  EXPECT_EQ(free.Emptiest(), 0);
  EXPECT_EQ(free.BestFit(1), 1);
  free.Take(0, 2);
  EXPECT_EQ(free.BestFit(2), 0);  // whatever order it got there in
}

}  // namespace
}  // namespace voda
