#include "core/diff.h"

#include <gtest/gtest.h>

#include "support/core_harness.h"

namespace voda {
namespace {

using testing::CoreHarness;
using testing::JobBuilder;

// Sets what a job should hold, as a round does.
void Want(CoreHarness& core, const std::string& job, std::vector<NodeIndex> seats) {
  core.state.active[FindJob(core.state, job)].desired = std::move(seats);
  core.state.undispatched = true;
  core.state.dirty = false;
}

const Action* Find(const std::vector<Action>& actions, const std::string& job) {
  for (const Action& action : actions) {
    if (action.job == job) return &action;
  }
  return nullptr;
}

TEST(Diff, AReachedPlanGivesNothing) {
  CoreHarness core;
  core.Nodes(2, 4).Arrive(JobBuilder("a").Sizes(1, 2, 6)).Arrive(JobBuilder("b").Sizes(1, 1, 2));
  EXPECT_GT(core.Settle(), 0);
  for (int i = 0; i < 3; ++i) {
    core.now += 1000;
    EXPECT_TRUE(core.Round().empty());
    EXPECT_TRUE(core.Send().empty());
  }
}

// After a restart the jobs that run already are left alone, and those that wait are started.
TEST(Diff, ARestartTouchesNothingThatRunsAndStartsWhatWaits) {
  CoreHarness core;
  core.Nodes(2, 4);
  core.Arrive(JobBuilder("a").Sizes(1, 2, 4), {"n1", "n1", "n1", "n1"});
  core.Arrive(JobBuilder("b").Sizes(2, 2, 2).Submit(1), {"n0", "n0"});
  core.Arrive(JobBuilder("c").Sizes(2, 2, 2).Submit(2));
  const auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].job, "c");
  EXPECT_EQ(actions[0].kind, ActionKind::kStart);
}

TEST(Diff, ShrinkIsConfirmedBeforeItsGpusAreGivenOn) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(1, 1, 4), {"n0", "n0", "n0", "n0"});
  core.Arrive(JobBuilder("b").Sizes(2, 2, 2).Submit(1));
  auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(actions[0].workers, (std::vector<NodeIndex>{0, 0}));
  EXPECT_TRUE(core.Advance().empty());
  core.Event(ActionDone{actions[0].id});
  actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kStart);
  EXPECT_EQ(actions[0].job, "b");
}

TEST(Diff, AHaltThatFailsKeepsItsGpusFromOthers) {
  CoreHarness core;
  core.Nodes(1, 1).Arrive(JobBuilder("a").Submit(1), {"n0"}).Arrive(JobBuilder("b"));
  auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kHalt);
  core.Event(ActionFailed{actions[0].id, ""});
  EXPECT_TRUE(core.Advance().empty());
  core.now = NextWake(core.state, core.now);
  actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kHalt);
}

TEST(Diff, SeatsThatAnActionInFlightLeadsToAreTaken) {
  CoreHarness core;
  core.Nodes(1, 2).Arrive(JobBuilder("a").Sizes(2, 2, 2)).Arrive(JobBuilder("b").Submit(1));
  core.Round();
  Want(core, "b", {0});
  EXPECT_TRUE(core.Send().empty());
  core.DoneAll();
  EXPECT_TRUE(core.Send().empty());
}

TEST(Diff, AJobInFlightIsLeftAlone) {
  CoreHarness core;
  core.Nodes(2, 4).Arrive(JobBuilder("a").Sizes(1, 2, 4));
  core.Round();
  for (const auto& seats :
       {std::vector<NodeIndex>{}, std::vector<NodeIndex>{1}, std::vector<NodeIndex>{0, 0, 0}}) {
    Want(core, "a", seats);
    EXPECT_TRUE(core.Send().empty());
  }
}

TEST(Diff, TwoJobsThatSwapAreOpenedByAVacate) {
  CoreHarness core;
  core.Nodes(2, 2);
  core.Arrive(JobBuilder("a").Sizes(2, 2, 2), {"n0", "n0"})
      .Arrive(JobBuilder("b").Sizes(2, 2, 2), {"n1", "n1"});
  Want(core, "a", {1, 1});
  Want(core, "b", {0, 0});
  auto actions = core.Send();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kVacate);
  EXPECT_TRUE(core.Send().empty());
  int vacates = 0;
  for (int i = 0; i < 10 && !actions.empty(); ++i) {
    for (const Action& action : actions) vacates += action.kind == ActionKind::kVacate ? 1 : 0;
    core.DoneAll();
    core.state.dirty = false;
    actions = core.Send();
  }
  EXPECT_EQ(vacates, 1);
  EXPECT_EQ(core.On("a"), (std::vector<std::string>{"n1", "n1"}));
  EXPECT_EQ(core.On("b"), (std::vector<std::string>{"n0", "n0"}));
}

TEST(Diff, ARingOfManyIsOpenedToo) {
  CoreHarness core;
  const int ring = 6;
  core.Nodes(ring, 1);
  for (int i = 0; i < ring; ++i) core.Arrive(JobBuilder("j" + std::to_string(i)), {"n" + std::to_string(i)});
  for (int i = 0; i < ring; ++i) Want(core, "j" + std::to_string(i), {NodeIndex((i + 1) % ring)});
  for (int i = 0; i < 20; ++i) {
    core.Send();
    core.DoneAll();
    core.state.dirty = false;
  }
  for (int i = 0; i < ring; ++i) {
    EXPECT_EQ(core.On("j" + std::to_string(i)),
              std::vector<std::string>{"n" + std::to_string((i + 1) % ring)});
  }
}

TEST(Diff, WorkersWithinOneJobMaySwap) {
  CoreHarness core;
  core.Nodes(2, 1).Arrive(JobBuilder("a").Sizes(2, 2, 2), {"n0", "n1"});
  Want(core, "a", {1, 0});
  for (int i = 0; i < 10; ++i) {
    core.Send();
    core.DoneAll();
    core.state.dirty = false;
  }
  EXPECT_EQ(core.On("a"), (std::vector<std::string>{"n1", "n0"}));
}

TEST(Diff, AFailedStartIsTriedAgainLaterEachTime) {
  CoreHarness core;
  core.Nodes(1, 1).Arrive(JobBuilder("a"));
  core.Advance();
  double waited = 0;
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(core.active("a").in_flight) << i;
    core.Event(ActionFailed{core.active("a").in_flight->action.id, "image pull"});
    const double at = core.now;
    for (int k = 0; k < 10 && !core.active("a").in_flight; ++k) {
      core.now = NextWake(core.state, core.now);
      core.Advance();
    }
    ASSERT_TRUE(core.active("a").in_flight) << "never tried again after " << i + 1 << " failures";
    EXPECT_GE(core.now - at, waited);
    EXPECT_GT(core.now - at, 0);
    EXPECT_LE(core.now - at, 600);
    waited = core.now - at;
  }
  core.DoneAll();
  EXPECT_EQ(core.job("a").held(), 1);
  EXPECT_EQ(core.active("a").failures, 0);
}

TEST(Diff, AJobThatCannotStartDoesNotBlockOthersForEver) {
  CoreHarness core;
  core.Nodes(1, 1).Arrive(JobBuilder("a")).Arrive(JobBuilder("b").Submit(1));
  for (int i = 0; i < 40 && core.job("b").held() == 0; ++i) {
    core.Advance();
    if (core.active("a").in_flight)
      core.Event(ActionFailed{core.active("a").in_flight->action.id, "image pull"});
    core.DoneAll();
    core.now = std::max(core.now, std::min(NextWake(core.state, core.now), core.now + 60));
  }
  EXPECT_EQ(core.job("b").held(), 1);
}

TEST(Diff, NothingNewGoesToANodeCordonedOrLostSinceThePlan) {
  for (const NodeState state : {NodeState::kCordoned, NodeState::kLost}) {
    CoreHarness core("FIFO", {.rate_limit = 30});
    core.Nodes(2, 1);
    core.Arrive(JobBuilder("low").Submit(5), {"n1"}).Arrive(JobBuilder("x"), {"n0"});
    core.Arrive(JobBuilder("high").Priority(1));
    const auto actions = core.Advance();  // low makes room for high on n1
    ASSERT_EQ(actions.size(), 1u);
    ASSERT_EQ(actions[0].kind, ActionKind::kHalt);
    core.now = 1;
    core.Event(
        NodeChanged{.node = "n1", .state = state});  // the rate limit delays the round that knows of it
    core.Event(ActionDone{actions[0].id});
    for (const Action& action : core.Advance()) {
      for (const NodeIndex at : action.workers) {
        EXPECT_FALSE(action.kind == ActionKind::kStart &&
                     core.state.world.node(at).state != NodeState::kReady)
            << "start of " << action.job << " on a node that is " << Name(state);
      }
    }
  }
}

TEST(Diff, NothingGoesToANodeThatShrankSinceThePlan) {
  CoreHarness core("FIFO", {.rate_limit = 30});
  core.Nodes(1, 2).Arrive(JobBuilder("low").Sizes(2, 2, 2).Submit(5), {"n0", "n0"});
  core.Arrive(JobBuilder("high").Sizes(2, 2, 2).Priority(1));
  const auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  core.now = 1;
  core.Event(NodeChanged{.node = "n0", .gpus = 1}).Event(ActionDone{actions[0].id});
  EXPECT_TRUE(core.Advance().empty());
}

TEST(Diff, ShrinkRemovesTheHighestNumbers) {
  CoreHarness core;
  core.Nodes(2, 4).Arrive(JobBuilder("a").Sizes(1, 2, 4), {"n1", "n0", "n1", "n0"});
  Want(core, "a", {1, 0});
  const auto actions = core.Send();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(actions[0].workers, (std::vector<NodeIndex>{1, 0}));
  EXPECT_EQ(actions[0].moved, 0);
}

TEST(Diff, ReleasesComeBeforeWhatTakes) {
  CoreHarness core;
  core.Nodes(2, 4);
  core.Arrive(JobBuilder("a")).Arrive(JobBuilder("b").Sizes(1, 2, 2), {"n0", "n0"});
  Want(core, "a", {1});
  Want(core, "b", {0});
  const auto actions = core.Send();
  ASSERT_EQ(actions.size(), 2u);
  EXPECT_TRUE(Releases(actions[0].kind));
  EXPECT_EQ(Find(actions, "a")->kind, ActionKind::kStart);
}

}  // namespace
}  // namespace voda
