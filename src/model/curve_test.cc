#include "model/curve.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/check.h"
#include "support/generators.h"

namespace voda::testing {
namespace {

std::vector<int> SizesOf(const Curve& curve) {
  std::vector<int> sizes;
  for (int i = 0; i < curve.count(); ++i) sizes.push_back(curve.size(i));
  return sizes;
}

TEST(Curve, Linear) {
  const auto curve = Curve::Linear(2, 5);
  EXPECT_EQ(SizesOf(*curve), (std::vector<int>{2, 3, 4, 5}));
  EXPECT_EQ(curve->min(), 2);
  EXPECT_EQ(curve->max(), 5);
  EXPECT_TRUE(curve->linear());
  EXPECT_TRUE(curve->concave());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(curve->speedup(i), i + 2);
  EXPECT_EQ(curve->NextBetter(0), 1);
  EXPECT_EQ(curve->NextBetter(3), -1);
}

TEST(Curve, OneSize) {
  for (const auto& curve : {Curve::Linear(3, 3), Curve::LinearOver({3}), Curve::Of({3}, {0.25})}) {
    EXPECT_EQ(SizesOf(*curve), (std::vector<int>{3}));
    EXPECT_EQ(curve->NextBetter(0), -1);
    EXPECT_TRUE(curve->concave());
  }
}

TEST(Curve, LinearOverSparseSizes) {
  const auto curve = Curve::LinearOver({1, 2, 4, 8});
  EXPECT_EQ(SizesOf(*curve), (std::vector<int>{1, 2, 4, 8}));
  EXPECT_EQ(curve->speedup(3), 8);
  EXPECT_EQ(curve->NextBetter(1), 2);
  EXPECT_EQ(curve->NextBetter(3), -1);
  EXPECT_TRUE(curve->linear());
}

TEST(Curve, IndexAndFloor) {
  const auto sparse = Curve::Of({2, 4, 8}, {2, 3, 4});
  EXPECT_EQ(sparse->IndexOf(4), 1);
  for (const int size : {-1, 0, 1, 3, 9, 65536}) EXPECT_EQ(sparse->IndexOf(size), -1) << size;
  EXPECT_EQ(sparse->FloorIndex(0), -1);
  EXPECT_EQ(sparse->FloorIndex(1), -1);
  EXPECT_EQ(sparse->FloorIndex(2), 0);
  EXPECT_EQ(sparse->FloorIndex(7), 1);
  EXPECT_EQ(sparse->FloorIndex(100), 2);
  const auto dense = Curve::Linear(2, 5);
  EXPECT_EQ(dense->IndexOf(1), -1);
  EXPECT_EQ(dense->IndexOf(5), 3);
  EXPECT_EQ(dense->IndexOf(6), -1);
  EXPECT_EQ(dense->FloorIndex(1), -1);
  EXPECT_EQ(dense->FloorIndex(9), 3);
}

// A step skips the sizes that gain nothing.
TEST(Curve, NextBetterSkipsWhatGainsNothing) {
  const auto curve = Curve::Of({1, 2, 3, 4, 5}, {1, 1, 0.5, 2, 2});
  EXPECT_EQ(curve->NextBetter(0), 3);
  EXPECT_EQ(curve->NextBetter(1), 3);
  EXPECT_EQ(curve->NextBetter(2), 3);
  EXPECT_EQ(curve->NextBetter(3), -1);
  EXPECT_EQ(curve->NextBetter(4), -1);
}

TEST(Curve, Concave) {
  EXPECT_TRUE(Curve::Of({1, 2, 3}, {1, 1.8, 2.5})->concave());
  EXPECT_TRUE(Curve::Of({1, 2, 3}, {1, 2, 1})->concave());
  EXPECT_FALSE(Curve::Of({1, 2, 3}, {1, 1.5, 2.5})->concave());
  EXPECT_FALSE(Curve::Of({1, 2, 4}, {1, 1.8, 2.5})->concave());  // sizes are not consecutive
  EXPECT_TRUE(Curve::Of({1, 2, 3, 4}, {0.1, 0.2, 0.30000000000000004, 0.4})->concave());  // up to rounding
}

TEST(CurveDeathTest, RefusesWhatIsNotACurve) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_DEATH(Curve::Linear(0, 2), "invariant");
  EXPECT_DEATH(Curve::Linear(3, 2), "invariant");
  EXPECT_DEATH(Curve::Of({}, {}), "invariant");
  EXPECT_DEATH(Curve::LinearOver({}), "invariant");
  EXPECT_DEATH(Curve::Of({1, 2}, {1}), "invariant");
  EXPECT_DEATH(Curve::Of({2, 1}, {1, 2}), "invariant");
  EXPECT_DEATH(Curve::Of({1, 1}, {1, 2}), "invariant");
  EXPECT_DEATH(Curve::LinearOver({1, 4, 2}), "invariant");
  EXPECT_DEATH(Curve::LinearOver({1, 1, 3}), "invariant");  // must not become 1, 2, 3
  EXPECT_DEATH(Curve::Of({1, 2}, {1, 0}), "invariant");
  EXPECT_DEATH(Curve::Of({1, 2}, {1, -1}), "invariant");
  EXPECT_DEATH(Curve::Of({1, 2}, {1, inf}), "invariant");
  EXPECT_DEATH(Curve::Of({1, 2}, {1, std::nan("")}), "invariant");
}

TEST(Curve, EqualsTheDefinitions) {
  Check([] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const int min = rng.Int(1, 4);
    const int max = rng.Int(min, min + 20);
    const CurvePtr curve = RandomCurve(rng, min, max, {.dyadic_speedups = rng.Chance(0.5)});
    RC_ASSERT(curve->min() == min);
    RC_ASSERT(curve->max() == max);
    const auto sizes = SizesOf(*curve);
    RC_ASSERT(std::is_sorted(sizes.begin(), sizes.end()));
    for (int i = 0; i < curve->count(); ++i) {
      int next = i + 1;
      while (next < curve->count() && curve->speedup(next) <= curve->speedup(i)) ++next;
      RC_ASSERT(curve->NextBetter(i) == (next < curve->count() ? next : -1));
    }
    for (int size = -1; size <= max + 2; ++size) {
      const auto at = std::find(sizes.begin(), sizes.end(), size);
      RC_ASSERT(curve->IndexOf(size) == (at == sizes.end() ? -1 : static_cast<int>(at - sizes.begin())));
      const auto above = std::count_if(sizes.begin(), sizes.end(), [&](int other) { return other <= size; });
      RC_ASSERT(curve->FloorIndex(size) == static_cast<int>(above) - 1);
    }
  });
}

}  // namespace
}  // namespace voda::testing
