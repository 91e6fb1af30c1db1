#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "model/guess.h"
#include "model/reason.h"
#include "support/builders.h"

namespace voda {
namespace {

using testing::JobBuilder;
using testing::SnapshotBuilder;

Job Silent(double work_done) {
  Job job = JobBuilder("a").Sizes(1, 1, 8).Build();
  job.guessed = true;
  job.measured = std::make_shared<const std::vector<int>>();
  job.work_done = work_done;
  return job;
}

std::string Believed(Job job) {
  GuessAnew(job);
  return DescribeBelief(job);
}

TEST(ReasonText, WhatIsGuessedOfASilentJobIsSaidWithItsGround) {
  constexpr const char* kFirst = "No progress has been reported. Voda assumes ";
  constexpr const char* kLast = "; report progress to replace the guess.";
  const auto sentence = [&](const std::string& guess) { return kFirst + guess + kLast; };
  EXPECT_EQ(Believed(Silent(0)), sentence("1 h of work left on one worker, as for every new category"));
  EXPECT_EQ(Believed(Silent(7200)),
            sentence("2 h of work left on one worker, as much as it has done so far"));
  Job compared = Silent(600);
  compared.finished = std::make_shared<const FinishedWork>(FinishedWork{1200, 1800, 5000});
  EXPECT_EQ(Believed(compared),
            sentence("20 min of work left on one worker, judging by its category and by what it has done"));
  compared.finished = std::make_shared<const FinishedWork>();
  EXPECT_EQ(Believed(compared), sentence("1 h of work left on one worker, as for every new category"));
}

TEST(ReasonText, WhatIsAssumedOfAJobWhoseCategoryIsNotMeasuredIsSaid) {
  Job job = JobBuilder("a").Remaining(100).Build();
  EXPECT_EQ(DescribeBelief(job), "") << "it was told";
  job.measured = std::make_shared<const std::vector<int>>();
  EXPECT_EQ(DescribeBelief(job),
            "No epoch of its category is measured yet. Voda assumes that it gets as much faster as it gets "
            "workers, and takes the length of an epoch from other categories.");
  job.measured = std::make_shared<const std::vector<int>>(std::vector<int>{1});
  EXPECT_EQ(DescribeBelief(job), "");
}

class SentenceTest : public ::testing::Test {
 protected:
  // A job of 6000 s on one worker that holds four of eight GPUs, under Price.
  SentenceTest() {
    snapshot_ =
        SnapshotBuilder()
            .Nodes(1, 8)
            .Add(JobBuilder("a").Sizes(1, 1, 8).Remaining(6000).Costs(0, 60, 60).On({"n0", "n0", "n0", "n0"}))
            .Build();
    reason_.code = ReasonCode::kPriced;
    reason_.jobs = 3;
    reason_.gpus = 8;
  }
  std::string Says(int workers) { return Describe(reason_, snapshot_, 0, workers); }

  Snapshot snapshot_;
  Reason reason_;
};

TEST_F(SentenceTest, AJobThatShrinksLearnsWhatItGivesUp) {
  reason_.larger = 3;
  reason_.price = 1;
  EXPECT_EQ(
      Says(2),
      "shrinks from 4 to 2 workers (2 GPUs): 3 jobs share 8 GPUs, all in use; the 2 GPUs that it gives up "
      "would save this job 26 min, but jobs that go before it have them");
  EXPECT_EQ(Says(3),
            "shrinks from 4 to 3 workers (3 GPUs): 3 jobs share 8 GPUs, all in use; the GPU that it gives up "
            "would save this job 9 min 20 s, but jobs that go before it have them");
  reason_.code = ReasonCode::kGrew;
  reason_.larger = 8;
  snapshot_.jobs[0].curve = Curve::Of({1, 2, 4, 8}, {1, 1.9, 2.1, 2.2});
  EXPECT_EQ(
      Says(2),
      "shrinks from 4 to 2 workers (2 GPUs): 3 jobs share 8 GPUs, all in use; the 2 GPUs that it gives up "
      "would save this job 6 min and cost the others about 1 h 23 min");
  EXPECT_EQ(
      Says(4),
      "runs on 4 workers (4 GPUs): 3 jobs share 8 GPUs, all in use; 4 GPUs more would save this job 70 s "
      "and cost the others about 3 h 1 min");
  reason_.idle = 6;
  reason_.ceiling = Ceiling::kNotFaster;
  EXPECT_EQ(Says(2),
            "shrinks from 4 to 2 workers (2 GPUs): 3 jobs share 8 GPUs, 6 idle; no larger size that fits is "
            "enough faster to be worth it");
}

TEST_F(SentenceTest, MovesAreToldInSpokenTimes) {
  reason_.code = ReasonCode::kRunsAtNum;
  reason_.moved = true;
  reason_.move_saves = 5400;
  reason_.move_costs = 150;
  EXPECT_TRUE(Says(4).ends_with("; moved onto fewer nodes: that saves 1 h 30 min and stalls 2 min 30 s"))
      << Says(4);
  reason_.repacked = true;
  EXPECT_TRUE(Says(4).ends_with(": it takes 1 h 30 min less there and stalls 2 min 30 s")) << Says(4);
  reason_.move_saves = -90;
  EXPECT_TRUE(Says(4).ends_with(": it takes 90 s more there and stalls 2 min 30 s")) << Says(4);
}

TEST_F(SentenceTest, AJobThatWaitsLearnsWhoGoesFirst) {
  reason_.code = ReasonCode::kPricedOut;
  reason_.needs = 2;
  reason_.free = 1;
  reason_.seconds = 12'000;
  EXPECT_EQ(
      Says(0),
      "waits: it needs 2 GPUs, and 1 was free when its turn came; no job before it in the order got any. "
      "Jobs go first that have a higher priority, that are long overdue, that run already, or that need "
      "less GPU time until they end than its 3 h 20 min");
}

}  // namespace
}  // namespace voda
