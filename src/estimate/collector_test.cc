#include "estimate/collector.h"

#include <gtest/gtest.h>

#include <algorithm>
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
  EXPECT_TRUE(collector.Epoch("a", "job", 1, 1, 100));
  EXPECT_TRUE(collector.Epoch("a", "job", 2, 1, 60));
  EXPECT_TRUE(collector.Epoch("a", "job", 4, 1, 40));
  const auto speedup = Speedups(collector, "a", {1, 2, 4});
  EXPECT_DOUBLE_EQ(speedup[0], 1);
  EXPECT_DOUBLE_EQ(speedup[1], 100.0 / 60);
  EXPECT_DOUBLE_EQ(speedup[2], 2.5);
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 100);
}

TEST(Collector, JobsWithEpochsOfOtherLengthsAreNotTakenForOtherSpeeds) {
  Collector collector;
  collector.Epoch("a", "long", 1, 1, 1000);
  collector.Epoch("a", "short", 2, 1, 1);  // so far it looks as if two workers were 1000 times as fast
  collector.Epoch("a", "long", 2, 1, 600);
  EXPECT_TRUE(collector.Epoch("a", "short", 1, 1, 1000.0 / 600));
  EXPECT_NEAR(Speedups(collector, "a", {1, 2})[1], 1000.0 / 600, 1e-9);
  EXPECT_EQ(*collector.MeasuredOf("a"), (std::vector<int>{1, 2}));
  EXPECT_NEAR(collector.EpochSeconds("a", "long"), 1000, 1e-6);
  EXPECT_NEAR(collector.EpochSeconds("a", "short"), 1000.0 / 600, 1e-6);
  // Of a job that has reported nothing yet, the typical length is expected.
  EXPECT_NEAR(collector.EpochSeconds("a", "new"), 1000 / std::sqrt(600), 1e-6);
}

TEST(Collector, ASizeThatOneJobWasSeenAtCountsAsMeasuredThoughItComparesNothing) {
  Collector collector;
  collector.Epoch("a", "long", 1, 1, 1000);
  collector.Epoch("a", "short", 1, 1, 1);
  collector.Epoch("a", "other", 4, 1, 77);
  EXPECT_EQ(*collector.MeasuredOf("a"), (std::vector<int>{1, 4}));
  EXPECT_NEAR(Speedups(collector, "a", {4})[0], std::pow(4, 0.8), 1e-9);
  EXPECT_NEAR(collector.EpochSeconds("a", "other"), 77 * std::pow(4, 0.8), 1e-6);
}

TEST(Collector, BetweenMeasuredSizesItIsLinear) {
  Collector collector;
  collector.Epoch("a", "job", 1, 1, 100);
  collector.Epoch("a", "job", 4, 1, 40);
  const auto speedup = Speedups(collector, "a", {1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(speedup[1], 1.5);
  EXPECT_DOUBLE_EQ(speedup[2], 2);
}

TEST(Collector, BelowTheSmallestMeasuredSizeItIsLinear) {
  Collector collector;
  collector.Epoch("a", "job", 4, 1, 25);
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 100);
  const auto speedup = Speedups(collector, "a", {1, 2, 4});
  for (int i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(speedup[i], 1 << i);
}

TEST(Collector, BeyondTheLargestMeasuredSizeItGrowsWithTheExponentOfThePrior) {
  Collector collector;
  collector.Epoch("a", "job", 1, 1, 100);
  collector.Epoch("a", "job", 4, 1, 50);
  EXPECT_NEAR(Speedups(collector, "a", {16})[0], 2 * std::pow(4, 0.8), 1e-12);
  collector.Epoch("falls", "job", 1, 1, 100);
  collector.Epoch("falls", "job", 2, 1, 200);
  EXPECT_NEAR(Speedups(collector, "falls", {8})[0], 0.5 * std::pow(4, 0.8), 1e-12);
}

TEST(Collector, KnowsWhatWasMeasuredAndWhatSpreadingCosts) {
  Collector collector;
  EXPECT_TRUE(collector.MeasuredOf("a")->empty());
  EXPECT_EQ(collector.SpansOf("a"), nullptr);
  collector.Epoch("a", "job", 1, 1, 100);
  collector.Epoch("a", "job", 4, 2, 50);
  EXPECT_EQ(*collector.MeasuredOf("a"), (std::vector<int>{1, 4}));
  EXPECT_EQ(collector.SpansOf("a"), nullptr);  // it was seen on only one number of nodes
  collector.Epoch("a", "job", 4, 1, 25);
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
  EXPECT_TRUE(collector.Epoch("a", "job", 1, 1, 100));
  EXPECT_FALSE(collector.Epoch("a", "job", 1, 1, 100));
  EXPECT_TRUE(collector.Epoch("a", "job", 1, 1, 130));
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 110);
}

TEST(Collector, OldEpochsFadeOut) {
  Collector collector;
  for (int i = 0; i < 5000; ++i) collector.Epoch("a", "job", 1, 1, 100);
  for (int i = 0; i < 10'000; ++i) collector.Epoch("a", "job", 1, 1, 200);
  EXPECT_NEAR(collector.EpochSeconds("a"), 200, 1);
}

TEST(Collector, WhatCannotBeIsRefused) {
  Collector collector;
  collector.Epoch("a", "job", 1, 1, 100);
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {0.0, -1.0, inf, -inf, std::nan("")})
    EXPECT_FALSE(collector.Epoch("a", "job", 1, 1, bad));
  for (const int workers : {0, -3}) EXPECT_FALSE(collector.Epoch("a", "job", workers, 1, 100));
  EXPECT_FALSE(collector.Epoch("b", "job", 0, 1, 100));
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("a"), 100);
  EXPECT_EQ(Speedups(collector, "b", {1, 2}), (std::vector<double>{1, 2}));
}

// Metrics come from outside: absurd ones must not put a value into a curve that is not finite and positive,
// which would stop the process.
TEST(Collector, AbsurdEpochsStillGiveAUsableCurve) {
  EXPECT_EXIT(
      {
        for (const double tiny : {5e-324, 1e-300, 1e-9}) {
          for (const double huge : {1e9, 1e300, 1.7e308}) {
            Collector falling;
            falling.Epoch("a", "job", 1, 1, huge);
            falling.Epoch("a", "job", 2, 1, tiny);
            Speedups(falling, "a", {1, 2, 3, 64});
            Collector rising;
            rising.Epoch("a", "job", 2, 1, tiny);
            rising.Epoch("a", "job", 3, 1, huge);
            Speedups(rising, "a", {1, 2, 3, 64});
          }
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Collector, ANewCategoryLastsAsLongAsTheOthersOnAverage) {
  Collector collector;
  collector.Epoch("a", "job", 1, 1, 100);
  collector.Epoch("b", "job", 2, 1, 100);
  EXPECT_DOUBLE_EQ(collector.EpochSeconds("c"), 150);
}

TEST(Collector, CategoriesDoNotMix) {
  Collector collector;
  collector.Epoch("a", "job", 1, 1, 100);
  collector.Epoch("a", "job", 2, 1, 100);
  EXPECT_EQ(Speedups(collector, "b", {1, 2}), (std::vector<double>{1, 2}));
  EXPECT_EQ(Speedups(collector, "a", {1, 2}), (std::vector<double>{1, 1}));
}

TEST(Collector, TheWorkOfTheLatestFinishedJobsIsKept) {
  Collector collector;
  EXPECT_EQ(collector.FinishedOf("a"), nullptr);
  EXPECT_FALSE(collector.Finished("a", 0));
  EXPECT_FALSE(collector.Finished("a", std::nan("")));
  for (int i = 0; i < 250; ++i) EXPECT_TRUE(collector.Finished("a", 1000 - i));
  const auto finished = collector.FinishedOf("a");
  ASSERT_EQ(finished->size(), static_cast<std::size_t>(kFinishedKept));
  EXPECT_TRUE(std::is_sorted(finished->begin(), finished->end()));
  EXPECT_EQ(finished->front(), 751);
  EXPECT_EQ(finished->back(), 850);
  EXPECT_EQ(collector.FinishedOf("b"), nullptr);
}

TEST(Collector, AJobThatSaysNothingIsGuessedUntilItsCategoryIsMeasured) {
  Collector collector;
  const CurvePtr sizes = Curve::Linear(1, 4);
  EXPECT_DOUBLE_EQ(collector.GuessedCurveFor("a", *sizes)->speedup(3), GuessedSpeedup(4));
  collector.Epoch("a", "job", 1, 1, 10);
  collector.Epoch("a", "job", 4, 1, 5);
  EXPECT_DOUBLE_EQ(collector.GuessedCurveFor("a", *sizes)->speedup(3), 2);
}

TEST(Collector, JobsOfACategoryShareWhatIsSaidOfIt) {
  Collector collector;
  const CurvePtr sizes = Curve::Linear(1, 4);
  EXPECT_EQ(collector.CurveFor("a", *sizes), collector.CurveFor("b", *sizes));
  const CurvePtr unknown = collector.GuessedCurveFor("a", *sizes);
  EXPECT_EQ(unknown, collector.GuessedCurveFor("b", *sizes));
  EXPECT_EQ(collector.MeasuredOf("a"), collector.MeasuredOf("b"));
  collector.Epoch("a", "job", 2, 1, 10);
  collector.Epoch("a", "job", 2, 2, 12);
  const CurvePtr curve = collector.CurveFor("a", *sizes);
  const auto spans = collector.SpansOf("a");
  EXPECT_EQ(curve, collector.GuessedCurveFor("a", *Curve::Linear(1, 4)));
  EXPECT_EQ(spans, collector.SpansOf("a"));
  EXPECT_NE(curve, collector.CurveFor("a", *Curve::Linear(1, 5)));
  EXPECT_FALSE(collector.Epoch("a", "job", 2, 1, 10.01)) << "not worth telling";
  EXPECT_EQ(curve, collector.CurveFor("a", *sizes));
  EXPECT_TRUE(collector.Epoch("a", "job", 4, 1, 6));
  EXPECT_NE(curve, collector.CurveFor("a", *sizes));
  EXPECT_EQ(collector.MeasuredOf("a")->size(), 2U);
}

}  // namespace
}  // namespace voda
