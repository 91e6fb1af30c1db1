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

TEST(Round, TheFirstChangeAfterAQuietTimeIsNotDelayed) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 2);
  core.now = 100;
  core.Advance();  // there is nothing to change
  core.now = 108;
  core.Arrive(JobBuilder("a").Sizes(1, 1, 1));
  EXPECT_EQ(View(core.state, core.now).next_round(), 108);
  EXPECT_EQ(core.Advance().size(), 1U);
  core.DoneAll().Advance();
  core.now = 110;
  core.Arrive(JobBuilder("b").Sizes(1, 1, 1));
  EXPECT_EQ(NextWake(core.state, core.now), 138) << "changes are kept apart";
  core.now = 138;
  EXPECT_EQ(core.Advance().size(), 1U);
  core.DoneAll().Advance();
  core.now = 170;
  core.Event(JobCompleted{"a"}).Advance();
  core.now = 170.5;
  core.Arrive(JobBuilder("c").Sizes(1, 1, 1));
  EXPECT_EQ(NextWake(core.state, core.now), 171) << "a storm of events does not make a storm of rounds";
  core.now = 171;
  EXPECT_EQ(core.Advance().size(), 1U);
}

// One that cannot be scheduled, whoever submitted it, is in nobody's way.
TEST(Round, AJobThatWaitsDelaysNobodyElse) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 2).Arrive(JobBuilder("huge").Sizes(8, 8, 8));
  core.now = 100;
  EXPECT_TRUE(core.Advance().empty());
  core.now = 108;
  core.Arrive(JobBuilder("a").Sizes(1, 1, 1).Submit(1));
  EXPECT_EQ(NextWake(core.state, core.now), 108);
  EXPECT_EQ(core.Advance().size(), 1U);
  core.DoneAll().Advance();
  core.now = 110;
  core.Arrive(JobBuilder("b").Sizes(1, 1, 1).Submit(2));
  EXPECT_EQ(NextWake(core.state, core.now), 138) << "changes are kept apart";
}

// A full cluster decides hardly more often than the limit says, whatever comes.
TEST(Round, EventsThatChangeNothingMakeFewRounds) {
  CoreHarness core("FIFO", {.rate_limit = 30});
  core.Nodes(1, 1).Arrive(JobBuilder("a").Sizes(1, 1, 1));
  core.Advance();
  core.DoneAll();
  std::vector<double> rounds;
  for (int second = 100; second < 300; ++second) {
    core.now = second;
    core.Arrive(JobBuilder("b" + std::to_string(second)).Sizes(1, 1, 1).Submit(second));
    const std::int64_t before = core.state.rounds;
    EXPECT_TRUE(core.Advance().empty());
    if (core.state.rounds > before) rounds.push_back(core.now);
  }
  EXPECT_EQ(rounds, (std::vector<double>{100, 101, 103, 107, 115, 131, 161, 191, 221, 251, 281}));
  core.now = 400;  // after a quiet time
  core.Event(Wake{});
  EXPECT_EQ(NextWake(core.state, core.now), 400);
  core.Advance();
  core.now = 401;
  core.Event(JobCompleted{"a"});
  EXPECT_EQ(core.Advance().size(), 1U) << "the next waiting job starts";
}

TEST(Round, TheRateLimitDelaysARoundAndNeverLosesIt) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 4).Arrive(JobBuilder("first"));
  core.Advance();
  core.DoneAll().Advance();
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

// The reference deadlocks on the 102nd event of a window.
TEST(Round, TenThousandEventsInAWindowCostOneRound) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(2, 8).Node("more", 1).Arrive(JobBuilder("first").Submit(-1));
  core.Advance();
  core.DoneAll().Advance();
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
  core.Nodes(1, 4).Arrive(JobBuilder("a"));
  core.Advance();
  core.DoneAll().Advance();
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

// What is due in the past and has nothing left to do must not keep the loop awake.
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

// In-flight actions are part of the observed state.
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
  void Execute(const Action&, const PerNode<Node>&) override { ++executed; }
  int executed = 0;
};

TEST(Round, AnotherPolicyTakesEffectWithTheNextRound) {
  NoCluster cluster;
  Scheduler scheduler({.rate_limit = 30}, PolicyNamed("FIFO"), cluster);
  scheduler.Handle(NodeAdded{{"n0", 4}}, 0);
  scheduler.Handle(JobArrived{JobBuilder("a").Sizes(1, 1, 4).Build(), "", {}}, 0);
  auto plan = scheduler.Advance(0).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->allocation.workers[0], 1);
  scheduler.SetPolicy(PolicyNamed("ElasticFIFO"));
  EXPECT_FALSE(scheduler.Advance(1).plan);
  EXPECT_EQ(scheduler.NextWake(1), 30);
  plan = scheduler.Advance(30).plan;
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->allocation.workers[0], 4);
  EXPECT_EQ(cluster.executed, 1);  // the start is still in flight
}

// A scheduler whose policy answers later than it is asked.
class LateAnswer : public ::testing::Test {
 protected:
  explicit LateAnswer(double rate_limit = 0)
      : scheduler_({.rate_limit = rate_limit}, PolicyNamed("ElasticFIFO"), cluster_) {}

  void Tell(const Event& event) { scheduler_.Handle(event, now_); }
  void Arrive(const JobBuilder& job) { Tell(JobArrived{job.Build(), "", {}}); }
  // The policy is asked.
  View Begin() {
    Tell(Tick{});
    EXPECT_TRUE(scheduler_.BeginRound(now_));
    scheduler_.Send(now_);
    return View(scheduler_.state(), now_);
  }
  // It answers.
  bool Answer(const View& view) {
    const bool taken = scheduler_.FinishRound(view, Decide(view, *scheduler_.policy()), now_);
    scheduler_.Send(now_);
    CheckInvariants(scheduler_.state());
    return taken;
  }
  void DoneAll() {
    for (const ActionId id : std::exchange(cluster_.sent, {})) Tell(ActionDone{id});
  }
  // Rounds without delay until nothing is left to do.
  void Settle() {
    for (int i = 0; i < 20; ++i) {
      scheduler_.Advance(now_);
      DoneAll();
    }
  }
  const ActiveJob& active(const std::string& name) const {
    return scheduler_.state().active[FindJob(scheduler_.state(), name)];
  }

  struct Recorder final : Cluster {
    void Execute(const Action& action, const PerNode<Node>&) override { sent.push_back(action.id); }
    std::vector<ActionId> sent;
  } cluster_;
  Scheduler scheduler_;
  double now_ = 0;
};

TEST_F(LateAnswer, CountsWhenNothingHappenedMeanwhile) {
  Tell(NodeAdded{{"n0", 4}});
  Arrive(JobBuilder("a").Sizes(1, 1, 4));
  const View view = Begin();
  EXPECT_EQ(view.next_round(), 0);
  EXPECT_TRUE(cluster_.sent.empty());
  now_ = 5;
  EXPECT_EQ(scheduler_.NextWake(now_), kNever) << "there is nothing to do but to wait for the answer";
  EXPECT_TRUE(Answer(view));
  EXPECT_EQ(active("a").desired.size(), 4u);
  EXPECT_EQ(active("a").last_change->time, 5);
  EXPECT_NE(active("a").last_change->trigger.find("job a arrived"), std::string::npos);
  EXPECT_EQ(cluster_.sent.size(), 1u);
  EXPECT_EQ(scheduler_.state().rounds, 1);
  EXPECT_FALSE(scheduler_.state().dirty);
  EXPECT_FALSE(Answer(view)) << "twice is once";
}

TEST_F(LateAnswer, NoOtherRoundBeginsMeanwhileAndOneFollows) {
  Tell(NodeAdded{{"n0", 4}});
  Arrive(JobBuilder("a").Sizes(1, 1, 2));
  const View view = Begin();
  Arrive(JobBuilder("b").Sizes(1, 1, 2).Submit(1));
  now_ = 5;
  EXPECT_FALSE(scheduler_.BeginRound(now_));
  EXPECT_EQ(scheduler_.NextWake(now_), kNever);
  EXPECT_TRUE(Answer(view));
  EXPECT_EQ(active("a").desired.size(), 2u);
  EXPECT_TRUE(active("b").desired.empty()) << "nobody has decided about it";
  EXPECT_EQ(scheduler_.NextWake(now_), now_);
  Settle();
  EXPECT_EQ(active("b").observed.size(), 2u);
}

TEST_F(LateAnswer, JobsThatChangedKeepWhatTheyHold) {
  Tell(NodeAdded{{"n0", 8}});
  for (const char* name : {"a", "b", "c", "d"}) Arrive(JobBuilder(name).Sizes(1, 1, 2));
  Settle();
  Arrive(JobBuilder("late").Sizes(4, 4, 4).Priority(1));
  const View view = Begin();  // a to d have to shrink
  Tell(JobChanged{.job = "a", .priority = 2});
  Tell(WorkersObserved{"b", {"n0"}});
  Tell(JobCompleted{"c"});
  EXPECT_TRUE(Answer(view));
  EXPECT_EQ(active("a").desired.size(), 2u);
  EXPECT_EQ(active("b").desired.size(), 2u);
  EXPECT_EQ(active("d").desired.size(), 1u);
  EXPECT_EQ(active("late").desired.size(), 4u);
  EXPECT_TRUE(scheduler_.state().dirty);
  Settle();
  EXPECT_EQ(active("a").observed.size(), 2u);
  EXPECT_EQ(active("b").observed.size(), 1u);
  EXPECT_EQ(active("late").observed.size(), 4u);
}

TEST_F(LateAnswer, AJobThatIsHeldOrDeletedMeanwhileIsNotStarted) {
  Tell(NodeAdded{{"n0", 4}});
  Arrive(JobBuilder("held"));
  Arrive(JobBuilder("deleted"));
  const View view = Begin();
  Tell(JobHeld{"held"});
  Tell(JobDeleted{"deleted"});
  Arrive(JobBuilder("deleted"));  // another one of that name
  EXPECT_TRUE(Answer(view));
  EXPECT_TRUE(active("held").desired.empty());
  EXPECT_TRUE(active("deleted").desired.empty());
  EXPECT_TRUE(cluster_.sent.empty());
}

// What an action leads to is what the decision saw.
TEST_F(LateAnswer, AnOutcomeThatComesMeanwhileChangesAJobOnlyIfItIsAFailure) {
  Tell(NodeAdded{{"n0", 4}});
  Arrive(JobBuilder("a").Sizes(1, 1, 4));
  scheduler_.Advance(now_);  // its start is in flight
  Arrive(JobBuilder("b").Submit(1));
  View view = Begin();
  DoneAll();
  EXPECT_TRUE(Answer(view));
  EXPECT_EQ(active("a").desired.size(), 3u);
  EXPECT_FALSE(scheduler_.state().dirty);

  ASSERT_EQ(cluster_.sent.size(), 1u);  // the shrink is in flight
  Arrive(JobBuilder("c").Submit(2));
  view = Begin();
  Tell(ActionFailed{cluster_.sent[0], "busy"});
  EXPECT_TRUE(Answer(view));
  EXPECT_EQ(active("a").desired.size(), 3u);
  EXPECT_TRUE(scheduler_.state().dirty) << "another round must look at it";
}

TEST_F(LateAnswer, NodesAreFoundByTheirNames) {
  for (const char* name : {"n0", "n1", "n2"}) Tell(NodeAdded{{name, 1}});
  Tell(JobArrived{JobBuilder("a").Build(), "", {"n1"}});
  scheduler_.Advance(now_);
  Arrive(JobBuilder("b").Submit(1));
  Arrive(JobBuilder("c").Submit(2));
  const View view = Begin();
  const Plan plan = Decide(view, *scheduler_.policy());
  ASSERT_EQ(view.world().node(plan.placement.workers(1)[0]).name, "n0");
  ASSERT_EQ(view.world().node(plan.placement.workers(2)[0]).name, "n2");
  Tell(NodeRemoved{"n0"});
  Tell(Tick{});  // drops it: the positions of the others change
  EXPECT_TRUE(Answer(view));
  const State& state = scheduler_.state();
  ASSERT_EQ(state.world.nodes.size(), 2u);
  EXPECT_EQ(state.world.node(active("a").desired[0]).name, "n1");
  EXPECT_TRUE(active("b").desired.empty());
  EXPECT_EQ(state.world.node(active("c").desired[0]).name, "n2");
  EXPECT_TRUE(state.dirty);
}

TEST_F(LateAnswer, AnotherPolicyGivesUpTheRoundUnderWay) {
  Tell(NodeAdded{{"n0", 4}});
  Arrive(JobBuilder("a").Sizes(1, 1, 4));
  const View view = Begin();
  scheduler_.SetPolicy(PolicyNamed("FIFO"));
  EXPECT_FALSE(Answer(view));
  EXPECT_TRUE(active("a").desired.empty());
  const View again = Begin();
  EXPECT_FALSE(Answer(view));
  EXPECT_TRUE(Answer(again));
  EXPECT_EQ(active("a").desired.size(), 1u);
  EXPECT_NE(active("a").last_change->trigger.find("job a arrived"), std::string::npos);
}

TEST(Round, AClockThatStepsBackDelaysNoRound) {
  NoCluster cluster;
  Scheduler scheduler({.rate_limit = 30}, PolicyNamed("FIFO"), cluster);
  scheduler.Handle(NodeAdded{{"n0", 4}}, 1000);
  ASSERT_TRUE(scheduler.Advance(1000).plan);
  scheduler.Handle(JobArrived{JobBuilder("a").Build(), "", {}}, 100);
  EXPECT_EQ(scheduler.NextWake(100), 100);
  EXPECT_TRUE(scheduler.Advance(100).plan);
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
