#include "estimate/collector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace voda {
namespace {

std::vector<double> Speedups(const Collector& collector, const std::string& category,
                             std::vector<int> sizes) {
  const CurvePtr curve = collector.CurveFor(category, *Curve::LinearOver(std::move(sizes)));
  std::vector<double> values;
  for (int i = 0; i < curve->count(); ++i) values.push_back(curve->speedup(i));
  return values;
}

TEST(Collector, AnUnknownCategoryIsLinear) {
  const Collector collector;
  EXPECT_EQ(Speedups(collector, "new", {1, 2, 4, 8}), (std::vector<double>{1, 2, 4, 8}));
  EXPECT_EQ(collector.EpochSeconds("new"), kUnknownEpochSeconds);
}

TEST(Collector, WhatWasMeasuredIsWhatIsBelieved) {
  Collector collector;
  EXPECT_TRUE(collector.Epoch("a", 1, 1, 100));
  EXPECT_TRUE(collector.Epoch("a", 2, 1, 60));
  EXPECT_TRUE(collector.Epoch("a", 4, 1, 40));
  const auto speedup = Speedups(collector, "a", {1, 2, 4});
  EXPECT_DOUBLE_EQ(speedup[0], 1);
  EXPECT_DOUBLE_EQ(speedup[1], 100.0 / 60);
  EXPECT_DOUBLE_EQ(speedup[2], 2.5);
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 100);
}

TEST(Collector, BetweenMeasuredSizesItIsLinear) {
  Collector collector;
  collector.Epoch("a", 1, 1, 100);
  collector.Epoch("a", 4, 1, 40);
  const auto speedup = Speedups(collector, "a", {1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(speedup[1], 1.5);
  EXPECT_DOUBLE_EQ(speedup[2], 2);
}

TEST(Collector, BelowTheSmallestMeasuredSizeItIsLinear) {
  Collector collector;
  collector.Epoch("a", 4, 1, 25);
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 100);
  const auto speedup = Speedups(collector, "a", {1, 2, 4});
  for (int i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(speedup[static_cast<std::size_t>(i)], 1 << i);
}

TEST(Collector, BeyondTheLargestMeasuredSizeItGrowsWithTheExponentOfThePrior) {
  Collector collector;
  collector.Epoch("a", 1, 1, 100);
  collector.Epoch("a", 4, 1, 50);
  EXPECT_NEAR(Speedups(collector, "a", {16})[0], 2 * std::pow(4, 0.8), 1e-12);
  collector.Epoch("falls", 1, 1, 100);
  collector.Epoch("falls", 2, 1, 200);
  EXPECT_NEAR(Speedups(collector, "falls", {8})[0], 0.5 * std::pow(4, 0.8), 1e-12);
}

TEST(Collector, KnowsWhatWasMeasuredAndWhatSpreadingCosts) {
  Collector collector;
  EXPECT_TRUE(collector.MeasuredOf("a")->empty());
  EXPECT_EQ(collector.SpansOf("a"), nullptr);
  collector.Epoch("a", 1, 1, 100);
  collector.Epoch("a", 4, 2, 50);
  EXPECT_EQ(*collector.MeasuredOf("a"), (std::vector<int>{1, 4}));
  EXPECT_EQ(collector.SpansOf("a"), nullptr);  // seen on one number of nodes only
  collector.Epoch("a", 4, 1, 25);
  EXPECT_DOUBLE_EQ(Speedups(collector, "a", {4})[0], 4);  // the curve is the best placement's
  const auto spans = collector.SpansOf("a");
  ASSERT_NE(spans, nullptr);
  ASSERT_EQ(spans->size(), 2u);
  EXPECT_EQ((*spans)[1].nodes, 2);
  EXPECT_DOUBLE_EQ((*spans)[1].speedup, 2);
}

TEST(Collector, StallsAreThoseObserved) {
  Collector collector;
  EXPECT_EQ(collector.StallsOf("a").start, 40);
  EXPECT_EQ(collector.StallsOf("a").rescale, 60);
  EXPECT_TRUE(collector.Stall("a", StallKind::kStart, 10));
  EXPECT_FALSE(collector.Stall("a", StallKind::kStart, 10));
  EXPECT_TRUE(collector.Stall("a", StallKind::kStart, 20));
  EXPECT_DOUBLE_EQ(collector.StallsOf("a").start, 40.0 / 3);
  EXPECT_EQ(collector.StallsOf("b").start, 40);
  EXPECT_FALSE(collector.Stall("a", StallKind::kRescale, std::nan("")));
  EXPECT_FALSE(collector.Stall("a", StallKind::kRescale, -1));
  EXPECT_EQ(collector.StallsOf("a").rescale, 60);
}

TEST(Collector, EpochsAreAveragedAndNewsIsNews) {
  Collector collector;
  EXPECT_TRUE(collector.Epoch("a", 1, 1, 100));
  EXPECT_FALSE(collector.Epoch("a", 1, 1, 100));
  EXPECT_TRUE(collector.Epoch("a", 1, 1, 130));
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 110);
}

TEST(Collector, OldEpochsFadeOut) {
  Collector collector;
  for (int i = 0; i < 5000; ++i) collector.Epoch("a", 1, 1, 100);
  for (int i = 0; i < 10'000; ++i) collector.Epoch("a", 1, 1, 200);
  EXPECT_NEAR(collector.EpochSeconds("a"), 200, 1);
}

TEST(Collector, WhatCannotBeIsRefused) {
  Collector collector;
  collector.Epoch("a", 1, 1, 100);
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, inf, -inf, std::nan("")}) EXPECT_FALSE(collector.Epoch("a", 1, 1, bad));
  for (const int workers : {0, -3}) EXPECT_FALSE(collector.Epoch("a", workers, 1, 100));
  EXPECT_FALSE(collector.Epoch("b", 0, 1, 100));
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 100);
  EXPECT_EQ(Speedups(collector, "b", {1, 2}), (std::vector<double>{1, 2}));
}

// Metrics come from outside: absurd ones must not put anything into a curve that is not finite and positive,
// which would stop the process.
TEST(Collector, AbsurdEpochsStillGiveAUsableCurve) {
  EXPECT_EXIT(
      {
        for (const double tiny : {5e-324, 1e-300, 1e-9}) {
          for (const double huge : {1e9, 1e300, 1.7e308}) {
            Collector falling;
            falling.Epoch("a", 1, 1, huge);
            falling.Epoch("a", 2, 1, tiny);
            Speedups(falling, "a", {1, 2, 3, 64});
            Collector rising;
            rising.Epoch("a", 2, 1, tiny);
            rising.Epoch("a", 3, 1, huge);
            Speedups(rising, "a", {1, 2, 3, 64});
          }
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Collector, ANewCategoryLastsAsLongAsTheOthersOnAverage) {
  Collector collector;
  collector.Epoch("a", 1, 1, 100);
  collector.Epoch("b", 2, 1, 100);
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("c"), 150);
}

TEST(Collector, CategoriesDoNotMix) {
  Collector collector;
  collector.Epoch("a", 1, 1, 100);
  collector.Epoch("a", 2, 1, 100);
  EXPECT_EQ(Speedups(collector, "b", {1, 2}), (std::vector<double>{1, 2}));
  EXPECT_EQ(Speedups(collector, "a", {1, 2}), (std::vector<double>{1, 1}));
}

}  // namespace
}  // namespace voda
