#include "core/round.h"

#include <gtest/gtest.h>

#include "core/scheduler.h"
#include "support/core_harness.h"

namespace voda {
namespace {

using testing::CoreHarness;
using testing::JobBuilder;
using testing::PolicyNamed;

TEST(Round, TheFirstEventIsServedAtOnce) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.now = 5;
  core.Nodes(1, 4);
  EXPECT_EQ(NextWake(core.state, core.now), 5);
  core.Advance();
  EXPECT_EQ(core.state.rounds, 1);
}

TEST(Round, TheRateLimitDelaysARoundAndNeverLosesIt) {  // C2
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 4);
  core.Advance();
  for (const double at : {0.0, 10.0, 29.999}) {
    core.now = at;
    core.Arrive(JobBuilder("j" + std::to_string(at)));
    EXPECT_TRUE(core.Advance().empty());
    EXPECT_EQ(core.state.rounds, 1);
    EXPECT_EQ(NextWake(core.state, core.now), 30);
  }
  core.now = 30;
  EXPECT_EQ(core.Advance().size(), 3u);
  EXPECT_EQ(core.state.rounds, 2);
  EXPECT_FALSE(core.state.dirty);
}

// C1: the reference deadlocks on the 102nd.
TEST(Round, TenThousandEventsInAWindowCostOneRound) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(2, 8);
  core.Advance();
  core.now = 1;
  for (int i = 0; i < 10'000; ++i) {
    Reduce(core.state, JobArrived{JobBuilder("j" + std::to_string(i)).Submit(i).Build(), "", {}}, core.now);
    if (i % 100 == 0) core.Advance();
  }
  EXPECT_EQ(core.state.rounds, 1);
  EXPECT_LE(core.state.triggers.size(), 10u);
  core.now = NextWake(core.state, core.now);
  EXPECT_EQ(core.now, 30);
  EXPECT_EQ(core.Advance().size(), 16u);
  EXPECT_EQ(core.state.rounds, 2);
}

TEST(Round, AQuietStateAsksForNothing) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(1, 1, 2));
  core.Advance();
  core.DoneAll().Advance();
  EXPECT_EQ(NextWake(core.state, core.now), kNever);
}

TEST(Round, APolicyIsWokenWhenItAskedTo) {
  CoreHarness core("Tiresias", {.rate_limit = 30});
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(4, 4, 4));
  core.Advance();
  core.DoneAll().Advance();
  // 3600 GPU-seconds on 4 GPUs.
  const double wake = NextWake(core.state, core.now);
  EXPECT_NEAR(wake, 900, 1);
  const auto rounds = core.state.rounds;
  core.now = wake;
  core.Advance();
  EXPECT_EQ(core.state.rounds, rounds + 1);
  EXPECT_GE(core.job("a").attained_gpu_seconds, 3600);
  EXPECT_GT(NextWake(core.state, core.now), core.now);
}

TEST(Round, AWakeDuringTheRateLimitIsDelayedAndNotLost) {
  CoreHarness core("FIFO", {.rate_limit = 30});
  core.Nodes(1, 4);
  core.Advance();
  core.state.wake_at = 10;
  core.now = 10;
  core.Advance();
  EXPECT_EQ(core.state.rounds, 1);
  EXPECT_EQ(NextWake(core.state, core.now), 30);
  core.now = 30;
  core.Advance();
  EXPECT_EQ(core.state.rounds, 2);
}

TEST(Round, PromotionsResetTheCountersPoliciesSeeAndNotTheTotals) {
  CoreHarness core("Tiresias", {.rate_limit = 0});
  core.Nodes(1, 1).Arrive(JobBuilder("a").Submit(0).Priority(-1));
  core.Settle();
  core.now = 10;
  core.Arrive(JobBuilder("b").Submit(1));  // takes the GPU
  core.Settle();
  ASSERT_EQ(core.job("a").held(), 0);
  core.now = 10 + 8 * 10 - 1;
  core.Event(Wake{});
  core.Settle();
  EXPECT_EQ(core.job("a").attained_gpu_seconds, 10);
  core.now += 2;
  core.Event(Wake{});
  core.Settle();
  EXPECT_EQ(core.job("a").attained_gpu_seconds, 0);
  EXPECT_EQ(core.job("a").waiting_seconds, 0);
  EXPECT_EQ(core.job("a").running_seconds, 0);
  EXPECT_EQ(core.active("a").ran, 10);
  EXPECT_EQ(core.active("a").waited, 81);
}

TEST(Round, ChangedSizesRememberWhyAndWhatLedToIt) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(1, 1, 4));
  core.Settle();
  ASSERT_TRUE(core.active("a").last_change);
  EXPECT_EQ(core.active("a").last_change->from, 0);
  EXPECT_EQ(core.active("a").last_change->to, 4);
  EXPECT_NE(core.active("a").last_change->trigger.find("job a arrived"), std::string::npos);
  EXPECT_FALSE(core.active("a").last_change->reason.empty());
  core.now = 50;
  core.Arrive(JobBuilder("b").Submit(1));
  core.Settle();
  EXPECT_EQ(core.active("a").last_change->from, 4);
  EXPECT_EQ(core.active("a").last_change->to, 3);
  EXPECT_EQ(core.active("a").last_change->time, 50);
  EXPECT_NE(core.active("a").last_change->trigger.find("job b arrived"), std::string::npos);
}

// What is due in the past and has nothing left to do must not keep the loop awake (C6).
TEST(Round, AFailureThatNoLongerMattersKeepsNobodyAwake) {
  CoreHarness core;
  core.Nodes(1, 1).Arrive(JobBuilder("a").Submit(5));
  const auto actions = core.Advance();
  core.Event(ActionFailed{actions[0].id, "busy"});
  core.Arrive(JobBuilder("b"));  // earlier in the order: a has to wait now
  core.Advance();
  core.DoneAll();
  core.Advance();
  core.now = 10;
  core.Advance();
  ASSERT_EQ(core.job("b").held(), 1);
  EXPECT_GT(NextWake(core.state, core.now), core.now);
}

TEST(Round, AStartThatTimedOutAndHappenedAfterAllKeepsNobodyAwake) {
  CoreHarness core;
  core.Nodes(1, 1).Arrive(JobBuilder("a"));
  const auto actions = core.Advance();
  core.now = 300;
  core.Advance();  // times out
  core.Event(WorkersObserved{"a", {"n0"}});
  core.Advance();
  core.now = 400;
  core.Advance();
  EXPECT_EQ(core.job("a").held(), 1);
  EXPECT_GT(NextWake(core.state, core.now), core.now);
}

TEST(Round, AnActionWithoutAnOutcomeTimesOut) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 0, .action_timeout = 300});
  core.Nodes(1, 1).Arrive(JobBuilder("a"));
  core.Advance();
  EXPECT_EQ(NextWake(core.state, core.now), 300);
  core.now = 299;
  core.Advance();
  EXPECT_TRUE(core.active("a").in_flight);
  core.now = 300;
  core.Advance();
  EXPECT_FALSE(core.active("a").in_flight);
  core.now = NextWake(core.state, core.now);
  EXPECT_EQ(core.Advance().size(), 1u);
}

// design.md 2: in-flight actions are part of the observed state.
TEST(Round, AJobThatIsBeingStartedKeepsTheSeatsItIsStartedOn) {
  CoreHarness core;
  core.Nodes(2, 4).Arrive(JobBuilder("a").Sizes(2, 2, 2));
  auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  core.Arrive(JobBuilder("b").Sizes(4, 4, 4).Submit(1));
  core.Advance();
  core.DoneAll();
  core.Settle();
  EXPECT_EQ(core.job("b").held(), 4);
  for (const Action& action : core.sent) EXPECT_EQ(action.kind, ActionKind::kStart) << Name(action.kind);
}

TEST(Round, AJobThatIsBeingGrownKeepsTheSeatsItGrowsOnto) {
  CoreHarness core;
  core.Nodes(3, 4);
  core.Arrive(JobBuilder("a").Sizes(1, 1, 6), {"n0", "n0", "n0", "n0"});
  auto actions = core.Advance();  // grows onto n1
  ASSERT_EQ(actions.size(), 1u);
  core.Arrive(JobBuilder("b").Sizes(4, 4, 4).Submit(1));
  core.Advance();
  core.DoneAll();
  core.Settle();
  EXPECT_EQ(core.job("b").held(), 4);
  for (const Action& action : core.sent) EXPECT_EQ(action.moved, 0) << Name(action.kind);
}

class NoCluster final : public Cluster {
 public:
  void Execute(const Action&, const std::vector<Node>&) override { ++executed; }
  int executed = 0;
};

TEST(Round, AnotherPolicyTakesEffectWithTheNextRound) {
  NoCluster cluster;
  Scheduler scheduler({.rate_limit = 30}, PolicyNamed("FIFO"), cluster, nullptr);
  scheduler.Handle(NodeAdded{{"n0", 4}}, 0);
  scheduler.Handle(JobArrived{JobBuilder("a").Sizes(1, 1, 4).Build(), "", {}}, 0);
  auto plan = scheduler.Advance(0);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->allocation.workers[0], 1);
  scheduler.SetPolicy(PolicyNamed("ElasticFIFO"));
  EXPECT_FALSE(scheduler.Advance(1));
  EXPECT_EQ(scheduler.NextWake(1), 30);
  plan = scheduler.Advance(30);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->allocation.workers[0], 4);
  EXPECT_EQ(cluster.executed, 1);  // the start is still in flight
}

TEST(Round, AClockThatStepsBackDelaysNoRound) {
  NoCluster cluster;
  Scheduler scheduler({.rate_limit = 30}, PolicyNamed("FIFO"), cluster, nullptr);
  scheduler.Handle(NodeAdded{{"n0", 4}}, 1000);
  ASSERT_TRUE(scheduler.Advance(1000));
  scheduler.Handle(JobArrived{JobBuilder("a").Build(), "", {}}, 100);
  EXPECT_EQ(scheduler.NextWake(100), 100);
  EXPECT_TRUE(scheduler.Advance(100));
}

TEST(Round, NoNodesAndNoJobsAreFine) {
  for (const PolicyInfo& info : Policies()) {
    CoreHarness core(info.name);
    core.Event(Wake{});
    EXPECT_EQ(core.Settle(), 0);
    core.Arrive(JobBuilder("a"));
    EXPECT_EQ(core.Settle(), 0);
    core.Node("n0", 0);
    EXPECT_EQ(core.Settle(), 0);
    core.Node("n0", 1);
    EXPECT_EQ(core.Settle(), 1);
  }
}

}  // namespace
}  // namespace voda
