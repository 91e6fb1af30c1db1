#include "core/explain.h"

#include <gtest/gtest.h>

#include "support/core_harness.h"

namespace voda {
namespace {

using testing::CoreHarness;
using testing::JobBuilder;

std::optional<Explanation> Ask(const CoreHarness& core, const std::string& job) {
  return Explain(core.state, core.policy(), job, core.now);
}

TEST(Explain, NothingOfAJobThatIsNotThere) {
  CoreHarness core;
  core.Nodes(1, 1).Arrive(JobBuilder("a"));
  EXPECT_FALSE(Ask(core, "x"));
  core.Event(JobCompleted{"a"});
  EXPECT_FALSE(Ask(core, "a"));
}

TEST(Explain, AWaitingJobLearnsWhatItNeedsWhatIsFreeAndWhoIsAhead) {
  CoreHarness core;
  core.Nodes(1, 4);
  core.Arrive(JobBuilder("first").Sizes(3, 3, 3)).Arrive(JobBuilder("second").Sizes(2, 2, 2).Submit(1));
  core.Settle();
  const auto explanation = Ask(core, "second");
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->status, JobStatus::kWaiting);
  EXPECT_EQ(explanation->workers, 0);
  EXPECT_EQ(explanation->planned, 0);
  EXPECT_EQ(explanation->position, 2);
  EXPECT_EQ(explanation->code, ReasonCode::kWaits);
  EXPECT_NE(explanation->text.find('2'), std::string::npos) << explanation->text;
  EXPECT_NE(explanation->text.find('1'), std::string::npos) << explanation->text;
  EXPECT_NE(explanation->text.find("first"), std::string::npos) << explanation->text;
  EXPECT_FALSE(explanation->last_change);
}

TEST(Explain, ARunningJobLearnsWhatChangedItLast) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(1, 1, 4));
  core.Settle();
  core.now = 60;
  core.Arrive(JobBuilder("b").Submit(1));
  core.Settle();
  const auto explanation = Ask(core, "a");
  ASSERT_TRUE(explanation);
  EXPECT_EQ(explanation->status, JobStatus::kRunning);
  EXPECT_EQ(explanation->workers, 3);
  EXPECT_EQ(explanation->planned, 3);
  EXPECT_EQ(explanation->position, 1);
  ASSERT_TRUE(explanation->last_change);
  EXPECT_EQ(explanation->last_change->from, 4);
  EXPECT_EQ(explanation->last_change->to, 3);
  EXPECT_NE(explanation->last_change->trigger.find("b"), std::string::npos);
}

TEST(Explain, JobsOutsideTheOrderSayWhy) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("huge").Sizes(5, 5, 5)).Arrive(JobBuilder("held"));
  core.Event(JobHeld{"held"});
  core.Settle();
  EXPECT_EQ(Ask(core, "huge")->code, ReasonCode::kNeverFits);
  EXPECT_EQ(Ask(core, "huge")->position, 0);
  EXPECT_EQ(Ask(core, "held")->code, ReasonCode::kHeld);
  EXPECT_EQ(Ask(core, "held")->position, 0);
}

TEST(Explain, ItTellsOfNowAndNotOfTheLatestRound) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 1).Arrive(JobBuilder("a")).Arrive(JobBuilder("b").Submit(1));
  core.Advance();
  core.DoneAll();
  EXPECT_EQ(Ask(core, "b")->planned, 0);
  core.now = 1;
  core.Event(JobCompleted{"a"});  // the rate limit delays the round
  EXPECT_EQ(Ask(core, "b")->planned, 1);
  EXPECT_EQ(Ask(core, "b")->workers, 0);
}

TEST(Explain, AskingChangesNothing) {
  CoreHarness core("Tiresias");
  core.Nodes(1, 2).Arrive(JobBuilder("a").Sizes(2, 2, 2)).Arrive(JobBuilder("b").Submit(1));
  core.Settle();
  core.now = 500;
  const State before = core.state;
  ASSERT_TRUE(Ask(core, "b"));
  EXPECT_EQ(core.state.rounds, before.rounds);
  EXPECT_EQ(core.job("a").running_seconds, before.world.jobs[0].running_seconds);
  EXPECT_EQ(core.state.wake_at, before.wake_at);
  EXPECT_EQ(core.Settle(), 0);
}

TEST(Explain, EveryReasonHasAWordAndASentence) {
  const Snapshot snapshot = testing::SnapshotBuilder().Nodes(1, 4).Add(JobBuilder("a")).Build();
  for (int code = 0; code < kReasonCodes; ++code) {
    const auto reason = static_cast<ReasonCode>(code);
    EXPECT_FALSE(Name(reason).empty());
    for (const int workers : {0, 1}) {
      EXPECT_FALSE(Describe(Reason{.code = reason, .needs = 2, .free = 1}, snapshot, 0, workers).empty());
      EXPECT_FALSE(Describe(Reason{.code = reason, .needs = 2, .free = 1, .jobs_ahead = 1, .ahead = 0},
                            snapshot, 0, workers)
                       .empty());
    }
  }
}

}  // namespace
}  // namespace voda
