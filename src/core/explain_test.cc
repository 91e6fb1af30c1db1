#include "core/explain.h"

#include <gtest/gtest.h>

#include "support/core_harness.h"

namespace voda {
namespace {

using testing::CoreHarness;
using testing::JobBuilder;

std::optional<Explanation> Ask(const CoreHarness& core, const std::string& job) {
  const View view(core.state, core.now);
  const JobIndex index = view.Find(job);
  if (index == kNoJob) return std::nullopt;
  return Explain(view, Decide(view, core.policy()), index);
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
  EXPECT_EQ(explanation->reason.code, ReasonCode::kWaits);
  EXPECT_NE(explanation->text.find('2'), std::string::npos) << explanation->text;
  EXPECT_NE(explanation->text.find('1'), std::string::npos) << explanation->text;
  EXPECT_NE(explanation->text.find("first"), std::string::npos) << explanation->text;
  EXPECT_FALSE(core.active("second").last_change);
  EXPECT_EQ(explanation->waiting, 1);
  EXPECT_EQ(explanation->needs_gpus, 2);
  EXPECT_EQ(explanation->free_gpus, 1);
  ASSERT_EQ(explanation->ahead.size(), 1u);
  EXPECT_EQ(explanation->ahead[0].name, "first");
  EXPECT_EQ(explanation->ahead[0].status, JobStatus::kRunning);
  EXPECT_EQ(explanation->ahead[0].workers, 3);
  EXPECT_EQ(explanation->ahead[0].gpus, 3);
}

TEST(Explain, AJobThatNoNodeSeatsLearnsOfThoseThatAreDrained) {
  CoreHarness core;
  core.Nodes(2, 2).Arrive(JobBuilder("a").Sizes(4, 4, 4));
  core.Event(NodeChanged{"n1", std::nullopt, NodeState::kLost});
  EXPECT_TRUE(
      Ask(core, "a")->text.ends_with("n1 is cordoned, drained or lost: uncordon it, lower min or add nodes"))
      << Ask(core, "a")->text;
  core.Event(NodeChanged{"n0", std::nullopt, NodeState::kCordoned});
  EXPECT_NE(Ask(core, "a")->text.find("n0, n1 are cordoned, drained or lost: uncordon them"),
            std::string::npos)
      << Ask(core, "a")->text;
  core.Event(NodeRemoved{"n0"}).Event(NodeRemoved{"n1"});
  EXPECT_TRUE(Ask(core, "a")->text.ends_with("; lower min or add nodes")) << Ask(core, "a")->text;
}

TEST(Explain, AJobThatCannotBeStartedLearnsWhy) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a"));
  for (int i = 0; i < 3; ++i) {
    core.now += 300;
    const auto actions = core.Advance();
    ASSERT_EQ(actions.size(), 1u);
    core.Event(ActionFailed{actions[0].id, "cannot make /data/jobs/1: Permission denied\nand more"});
    EXPECT_TRUE(Ask(core, "a")->text.ends_with("failed: cannot make /data/jobs/1: Permission denied"))
        << Ask(core, "a")->text;
  }
  EXPECT_EQ(Ask(core, "a")->reason.code, ReasonCode::kBackingOff);
  core.now += 300;
  core.Settle();
  EXPECT_EQ(Ask(core, "a")->text.find("Permission denied"), std::string::npos);
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
  const auto& last_change = core.active("a").last_change;
  ASSERT_TRUE(last_change);
  EXPECT_EQ(last_change->from, 4);
  EXPECT_EQ(last_change->to, 3);
  EXPECT_NE(last_change->trigger.find('b'), std::string::npos);
}

TEST(Explain, JobsOutsideTheOrderSayWhy) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("huge").Sizes(5, 5, 5)).Arrive(JobBuilder("held"));
  core.Event(JobHeld{"held"});
  core.Settle();
  EXPECT_EQ(Ask(core, "huge")->reason.code, ReasonCode::kNeverFits);
  EXPECT_EQ(Ask(core, "huge")->position, 0);
  EXPECT_EQ(Ask(core, "held")->reason.code, ReasonCode::kHeld);
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

TEST(Explain, WhatIsInFlightCountsAsDoneForTheDecisionAndNotForWhatIsTold) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(3, 3, 3)).Arrive(JobBuilder("b").Sizes(2, 2, 2).Submit(1));
  core.Advance();  // a is being started
  const View view(core.state, core.now);
  EXPECT_EQ(view.world().job(0).held(), 3);
  EXPECT_TRUE(view.job(0).observed.empty());
  EXPECT_EQ(Ask(core, "a")->status, JobStatus::kWaiting);
  EXPECT_EQ(Ask(core, "a")->workers, 0);
  EXPECT_EQ(Ask(core, "a")->planned, 3);
  EXPECT_EQ(Ask(core, "b")->waiting, 2);
  EXPECT_EQ(Ask(core, "b")->free_gpus, 4);
}

TEST(Explain, AViewStaysWhatItWas) {
  CoreHarness core("Tiresias");
  core.Nodes(1, 2).Arrive(JobBuilder("a").Sizes(2, 2, 2)).Arrive(JobBuilder("b").Submit(1));
  core.Settle();
  core.now = 50;
  const View view(core.state, core.now);
  EXPECT_EQ(view.world().job(0).running_seconds, 50);
  EXPECT_EQ(view.world().job(0).attained_gpu_seconds, 100);
  EXPECT_EQ(view.world().job(1).waiting_seconds, 50);
  EXPECT_FALSE(view.next_round());
  const Plan before = Decide(view, core.policy());
  core.now = 60;
  core.Event(JobCompleted{"a"}).Event(NodeRemoved{"n0"});
  core.Settle();
  const Plan after = Decide(view, core.policy());
  EXPECT_EQ(view.jobs().size(), 2u);
  EXPECT_EQ(after.allocation.workers, before.allocation.workers);
  EXPECT_EQ(after.placement.seats, before.placement.seats);
}

TEST(Explain, AViewSaysWhenTheNextRoundComes) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 1).Arrive(JobBuilder("first"));
  core.Advance();
  core.now = 10;
  core.Arrive(JobBuilder("a"));
  EXPECT_EQ(View(core.state, core.now).next_round(), 30);
  core.now = 45;
  EXPECT_EQ(View(core.state, core.now).next_round(), 45);
}

TEST(Explain, ThePlanIsTheLatestOneWithTheReasonsOfNow) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(2, 1).Arrive(JobBuilder("b").Sizes(2, 2, 2)).Arrive(JobBuilder("a").Submit(1));
  core.Advance();
  core.DoneAll();
  const View view(core.state, core.now);
  const auto plan = ExplainPlan(view, Decide(view, core.policy()));
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0].name, "a");
  EXPECT_TRUE(plan[0].nodes.empty());
  EXPECT_EQ(plan[0].code, ReasonCode::kWaits);
  EXPECT_FALSE(plan[0].reason.empty());
  EXPECT_EQ(plan[1].name, "b");
  EXPECT_EQ(plan[1].nodes, (std::vector<std::string>{"n0", "n1"}));
}

TEST(Explain, ADryRunSaysWhatANewJobWouldGet) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(3, 3, 3));
  core.Settle();
  const View view(core.state, core.now);
  EXPECT_EQ(WouldGet(view, core.policy(), JobBuilder("b").Sizes(1, 1, 4).Submit(1).Build()).workers, 1);
  const Prospect none = WouldGet(view, core.policy(), JobBuilder("b").Sizes(2, 2, 2).Submit(1).Build());
  EXPECT_EQ(none.workers, 0);
  EXPECT_NE(none.reason.find('a'), std::string::npos) << none.reason;
  EXPECT_EQ(view.jobs().size(), 1u);
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
