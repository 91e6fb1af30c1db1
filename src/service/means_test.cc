#include "service/means.h"

#include <gtest/gtest.h>

namespace voda {
namespace {

TEST(MeansTest, WhatWasLearnedComesBack) {
  Collector learned;
  learned.Epoch("mnist", "job", 2, 1, 10);
  learned.Epoch("mnist", "job", 2, 1, 20);
  learned.Stall("mnist", StallKind::kRescale, 7);
  const MeanRecord epoch = EpochMean(learned, "mnist", 2, 1);
  const MeanRecord stall = StallMean(learned, "mnist", StallKind::kRescale);
  EXPECT_EQ(epoch.kind, "epoch");
  EXPECT_EQ(stall.kind, "rescale");
  Collector restored;
  EXPECT_TRUE(RestoreMean(epoch, restored));
  EXPECT_TRUE(RestoreMean(stall, restored));
  EXPECT_EQ(restored.EpochMean("mnist", 2, 1).value, learned.EpochMean("mnist", 2, 1).value);
  EXPECT_EQ(restored.EpochMean("mnist", 2, 1).count, 2);
  EXPECT_EQ(restored.StallsOf("mnist").rescale, learned.StallsOf("mnist").rescale);
}

// Jobs with epochs of very different length, some of them at two sizes: 4 workers are twice as fast as 1. The
// long job is on one worker and the short ones are on four, so that a mean over jobs would see a speed-up of
// hundreds.
Collector LearnedUneven() {
  Collector collector;
  for (const auto& [job, length] : {std::pair{"a", 10.0}, {"b", 20.0}, {"c", 4000.0}}) {
    collector.Epoch("mixed", job, 1, 1, length);
    if (length < 100) collector.Epoch("mixed", job, 4, 1, length / 2);
  }
  return collector;
}

void RestoreAll(const Collector& learned, Collector& restored) {
  for (const int workers : {1, 4})
    EXPECT_TRUE(RestoreMean(EpochMean(learned, "mixed", workers, 1), restored));
  for (const MeanRecord& mean : FitMeans(learned, "mixed"))
    EXPECT_TRUE(RestoreMean(mean, restored)) << mean.kind;
}

TEST(MeansTest, WhatWasLearnedWithinJobsComesBack) {
  const Collector learned = LearnedUneven();
  ASSERT_TRUE(learned.Uneven("mixed"));
  const auto speedup = [](const Collector& collector) {
    return collector.CurveFor("mixed", *Curve::Linear(1, 4))->speedup(3);
  };
  ASSERT_NEAR(speedup(learned), 2, 1e-9);
  Collector restored;
  RestoreAll(learned, restored);
  EXPECT_TRUE(restored.Uneven("mixed"));
  EXPECT_NEAR(speedup(restored), 2, 1e-9);
  EXPECT_NEAR(restored.EpochSeconds("mixed"), learned.EpochSeconds("mixed"), 1e-6);
  // One report moves the typical job a little and is the length of its own.
  restored.Epoch("mixed", "d", 4, 1, 5000);
  EXPECT_NEAR(speedup(restored), 2, 1e-9);
  EXPECT_NEAR(restored.EpochSeconds("mixed", "d"), 10'000, 1e-6);
  EXPECT_LT(restored.EpochSeconds("mixed"), 4 * learned.EpochSeconds("mixed"));
  // What is kept again says the same.
  Collector again;
  RestoreAll(restored, again);
  EXPECT_NEAR(speedup(again), 2, 1e-9);
  EXPECT_NEAR(again.EpochSeconds("mixed"), restored.EpochSeconds("mixed"), 1e-6);
}

TEST(MeansTest, WhatWasLearnedWithinJobsCountsOnlyAsLongAsTheyDiffer) {
  const Collector learned = LearnedUneven();
  Collector alike;
  alike.Epoch("mixed", "a", 1, 1, 10);
  const std::vector<MeanRecord> no_more = FitMeans(alike, "mixed");
  ASSERT_EQ(no_more.size(), 1U);
  Collector restored;
  RestoreAll(learned, restored);
  EXPECT_TRUE(RestoreMean(no_more.front(), restored));
  EXPECT_FALSE(restored.Uneven("mixed"));
  // Times alone, of a category whose other means were pruned, say nothing.
  Collector pruned;
  for (const MeanRecord& mean : FitMeans(learned, "mixed")) {
    if (mean.workers == 0) continue;
    EXPECT_TRUE(RestoreMean(mean, pruned));
  }
  EXPECT_FALSE(pruned.Measured("mixed"));
  EXPECT_EQ(pruned.EpochSeconds("mixed"), kUnknownEpochSeconds);
}

TEST(MeansTest, WhatCannotBeIsRefused) {
  Collector collector;
  EXPECT_FALSE(RestoreMean({"v100", "mnist", "time", 0, 1, 1, 1}, collector));
  EXPECT_FALSE(RestoreMean({"v100", "mnist", "time", 1, 1, -1, 1}, collector));
  EXPECT_FALSE(RestoreMean({"v100", "mnist", "typical", 0, 0, 0, 1}, collector));
  EXPECT_FALSE(RestoreMean({"v100", "mnist", "typical", 0, 0, 1, -1}, collector));
  EXPECT_FALSE(RestoreMean({"v100", "mnist", "epoch", 2, 1, -1, 1}, collector));
  EXPECT_FALSE(RestoreMean({"v100", "mnist", "nap", 0, 0, 1, 1}, collector));
}

TEST(MeansTest, TheWorkOfFinishedJobsComesBackAsARing) {
  Collector learned;
  Collector restored;
  for (int i = 1; i <= kFinishedKept + 1; ++i) {
    ASSERT_TRUE(learned.Finished("mnist", i));
    const MeanRecord record = FinishedMean(learned, "mnist", i);
    EXPECT_EQ(record.kind, "work");
    EXPECT_TRUE(record.workers >= 0 && record.workers < kFinishedKept);
    EXPECT_TRUE(RestoreMean(record, restored));
  }
  EXPECT_EQ(restored.FinishedCount("mnist"), kFinishedKept + 1);
  EXPECT_EQ(*restored.FinishedOf("mnist"), *learned.FinishedOf("mnist"));
  EXPECT_EQ(restored.FinishedOf("mnist")->front(), 2);
  for (const auto& [value, count] : {std::pair{-1.0, 1}, {1.0, 0}, {1.0, 2'000'000'000}})
    EXPECT_FALSE(RestoreMean({"v100", "mnist", "work", 0, 0, value, count}, restored));
}

}  // namespace
}  // namespace voda
