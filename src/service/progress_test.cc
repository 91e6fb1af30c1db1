#include "service/progress.h"

#include <gtest/gtest.h>

#include <string>

#include "support/check.h"

namespace voda {
namespace {

ProgressReport Epoch(int epoch) {
  ProgressReport report;
  report.epoch = epoch;
  return report;
}

ProgressReport Begin(int epoch) {
  ProgressReport report = Epoch(epoch);
  report.begin = true;
  return report;
}

TEST(ParseProgress, TakesWhatIsUsableAndNamesTheRest) {
  const auto report = ParseProgress(
      R"({"epoch": 3, "total_epochs": 10, "epoch_seconds": -1, "workers": "two", "loss": 0.5, "phase": "epoch"})");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->epoch, 3);
  EXPECT_EQ(report->total_epochs, 10);
  EXPECT_FALSE(report->epoch_seconds);
  EXPECT_FALSE(report->workers);
  EXPECT_EQ(report->loss, 0.5);
  ASSERT_EQ(report->faults.size(), 2U);
  EXPECT_NE(report->faults[0].find("workers"), std::string::npos) << report->faults[0];
  EXPECT_NE(report->faults[1].find("epoch_seconds: -1"), std::string::npos) << report->faults[1];
}

TEST(ParseProgress, RefusesWhatHasNoEpoch) {
  for (const char* body :
       {"", "[]", "{}", "null", "7", R"({"epoch": -1})", R"({"epoch": 1.5})", R"({"epoch": "3"})",
        R"({"epoch": NaN})", R"({"epoch": 1, "phase": "end"})", R"({"epoch": 1, "epoch": 2})",
        R"({"epoch": 99999999999})", R"({"epoch": 1, "colour": "red"})", "{\"epoch\": 1"}) {
    EXPECT_FALSE(ParseProgress(body)) << body;
  }
}

TEST(JobProgress, StepsShowProgressAndEndAStall) {
  const auto step = ParseProgress(R"({"epoch": 2, "phase": "step", "step": 5, "steps": 20})");
  ASSERT_TRUE(step) << step.error().message;
  EXPECT_DOUBLE_EQ(*step->partly, 0.25);
  EXPECT_FALSE(ParseProgress(R"({"epoch": 2, "phase": "step", "step": 5})"));
  JobProgress progress;
  progress.Restore(2);
  progress.Changed(StallKind::kRescale, 10);
  const auto outcome = progress.Report(*step, 1, 17);
  ASSERT_TRUE(outcome.stall);
  EXPECT_DOUBLE_EQ(outcome.stall->seconds, 7);
  EXPECT_EQ(progress.done(), 2);
}

TEST(JobProgress, MeasuresAnUndisturbedEpoch) {
  JobProgress progress;
  progress.Changed(StallKind::kStart, 100);
  auto outcome = progress.Report(Begin(0), 2, 110);
  ASSERT_TRUE(outcome.stall);
  EXPECT_EQ(outcome.stall->kind, StallKind::kStart);
  EXPECT_DOUBLE_EQ(outcome.stall->seconds, 10);
  EXPECT_FALSE(outcome.epoch);
  outcome = progress.Report(Epoch(0), 2, 115);
  ASSERT_TRUE(outcome.epoch);
  EXPECT_EQ(outcome.epoch->workers, 2);
  EXPECT_DOUBLE_EQ(outcome.epoch->seconds, 5);
  EXPECT_EQ(progress.done(), 1);
}

TEST(JobProgress, AnEpochThatAChangeCutTeachesNothing) {
  JobProgress progress;
  progress.Report(Begin(0), 1, 0);
  progress.Changed(StallKind::kRescale, 4);
  ProgressReport report = Epoch(0);
  report.epoch_seconds = 10;  // began before the change
  const auto outcome = progress.Report(report, 2, 10);
  EXPECT_FALSE(outcome.epoch);
  EXPECT_FALSE(outcome.stall);
  EXPECT_EQ(progress.done(), 1);
}

TEST(JobProgress, WithoutABeginTheStallIsWhatTheEpochIsNot) {
  JobProgress progress;
  progress.Changed(StallKind::kMigration, 100);
  ProgressReport report = Epoch(0);
  report.epoch_seconds = 6;
  const auto outcome = progress.Report(report, 3, 120);
  ASSERT_TRUE(outcome.stall);
  EXPECT_EQ(outcome.stall->kind, StallKind::kMigration);
  EXPECT_DOUBLE_EQ(outcome.stall->seconds, 14);
  ASSERT_TRUE(outcome.epoch);
  EXPECT_DOUBLE_EQ(outcome.epoch->seconds, 6);
}

TEST(JobProgress, IgnoresEpochsThatGoBackwards) {
  JobProgress progress;
  progress.Report(Begin(0), 1, 0);
  progress.Report(Epoch(4), 1, 10);
  EXPECT_EQ(progress.Report(Epoch(4), 1, 11).fault, "epoch_repeated");
  EXPECT_EQ(progress.Report(Epoch(2), 1, 12).fault, "epoch_backwards");
  EXPECT_EQ(progress.done(), 5);
}

TEST(JobProgress, ARestartFromACheckpointMayGoBack) {
  JobProgress progress;
  progress.Report(Epoch(4), 1, 10);
  progress.Changed(StallKind::kStart, 20);
  progress.Report(Begin(3), 1, 25);
  EXPECT_EQ(progress.done(), 3);
  EXPECT_TRUE(progress.Report(Epoch(3), 1, 30).fault.empty());
  EXPECT_EQ(progress.done(), 4);
}

TEST(JobProgress, AnotherNumberOfWorkersTeachesNothing) {
  JobProgress progress;
  progress.Report(Begin(0), 2, 0);
  ProgressReport report = Epoch(0);
  report.workers = 3;
  EXPECT_FALSE(progress.Report(report, 2, 10).epoch);
}

TEST(JobProgress, AJobThatHoldsNothingCannotReport) {
  JobProgress progress;
  EXPECT_EQ(progress.Report(Epoch(0), 0, 10).fault, "not_running");
}

TEST(JobProgress, WhateverIsReportedSamplesArePositiveAndDoneIsNeverNegative) {
  testing::Check([] {
    JobProgress progress;
    double now = 0;
    for (int i = 0; i < 50; ++i) {
      now += *rc::gen::inRange(0, 100) / 10.0;
      const int held = *rc::gen::inRange(0, 5);
      if (*rc::gen::inRange(0, 4) == 0) progress.Changed(StallKind::kRescale, now);
      ProgressReport report = Epoch(*rc::gen::inRange(0, 60));
      report.begin = *rc::gen::arbitrary<bool>();
      if (!report.begin && *rc::gen::arbitrary<bool>()) report.partly = *rc::gen::inRange(0, 100) / 99.0;
      if (*rc::gen::arbitrary<bool>()) report.epoch_seconds = *rc::gen::inRange(1, 500) / 10.0;
      const auto outcome = progress.Report(report, held, now);
      if (outcome.epoch) RC_ASSERT(outcome.epoch->seconds >= 0 && outcome.epoch->workers == held);
      if (outcome.stall) RC_ASSERT(outcome.stall->seconds >= 0);
      RC_ASSERT(progress.done() >= 0);
    }
  });
}

ProgressReport Step(int epoch, double partly) {
  ProgressReport report = Epoch(epoch);
  report.partly = partly;
  return report;
}

TEST(JobProgress, PartsOfAnEpochTellHowLongItTakes) {
  JobProgress progress;
  progress.Report(Begin(0), 2, 0);
  EXPECT_FALSE(progress.Report(Step(0, 0.10), 2, 10).epoch);   // a first mark
  EXPECT_FALSE(progress.Report(Step(0, 0.105), 2, 11).epoch);  // too little
  auto outcome = progress.Report(Step(0, 0.2), 2, 30);
  ASSERT_TRUE(outcome.epoch);
  EXPECT_EQ(outcome.epoch->workers, 2);
  EXPECT_NEAR(outcome.epoch->seconds, 200, 1e-9);
  EXPECT_DOUBLE_EQ(progress.partly(), 0.2);
  progress.Report(Epoch(0), 2, 190);
  EXPECT_EQ(progress.partly(), 0);
  outcome = progress.Report(Step(1, 0.2), 2, 230);  // 0.2 of the first epoch to 0.2 of the second
  ASSERT_TRUE(outcome.epoch);
  EXPECT_NEAR(outcome.epoch->seconds, 200, 1e-9);
}

TEST(JobProgress, PartsThatAChangeCutTeachNothing) {
  JobProgress progress;
  progress.Report(Step(0, 0.1), 2, 10);
  progress.Changed(StallKind::kRescale, 15);
  EXPECT_FALSE(progress.Report(Step(0, 0.2), 4, 40).epoch);
  EXPECT_TRUE(progress.Report(Step(0, 0.3), 4, 45).epoch);
  // Training went on from an older checkpoint.
  EXPECT_FALSE(progress.Report(Step(0, 0.1), 4, 50).epoch);
  EXPECT_DOUBLE_EQ(progress.partly(), 0.1);
  ProgressReport other = Step(0, 0.4);
  other.workers = 3;
  EXPECT_FALSE(progress.Report(other, 4, 60).epoch);
  EXPECT_EQ(progress.Report(Step(0, 0.5), 0, 70).fault, "not_running");
}

}  // namespace
}  // namespace voda
