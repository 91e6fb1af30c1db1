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

TEST(MeansTest, WhatCannotBeIsRefused) {
  Collector collector;
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
