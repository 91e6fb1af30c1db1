#include "core/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "model/guess.h"
#include "support/core_harness.h"

namespace voda {
namespace {

using testing::CoreHarness;
using testing::JobBuilder;

// One node of four GPUs and job a that runs on it with two workers.
CoreHarness Running() {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(1, 2, 2));
  core.Settle();
  return core;
}

TEST(Reduce, AJobWaitsUntilItsStartIsConfirmed) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(1, 2, 2));
  EXPECT_EQ(core.active("a").status, JobStatus::kWaiting);
  const auto actions = core.Round();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(core.active("a").status, JobStatus::kWaiting);
  EXPECT_FALSE(core.job("a").first_start);
  core.now = 7;
  core.Event(ActionDone{actions[0].id});
  EXPECT_EQ(core.active("a").status, JobStatus::kRunning);
  EXPECT_EQ(core.job("a").first_start, 7);
}

TEST(Reduce, ARunThatEndsBeforeItsStartIsConfirmedCounts) {
  for (const bool completed : {false, true}) {
    CoreHarness core;
    core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(2, 2, 2));
    core.now = 10;
    auto actions = core.Round();
    ASSERT_EQ(actions.size(), 1u);
    core.now = 12;
    core.Event(ActionFailed{actions[0].id, "exited with code 1", 0.5});
    EXPECT_EQ(core.active("a").starts, 1);
    EXPECT_EQ(core.job("a").first_start, 11.5);
    EXPECT_EQ(core.active("a").ran, 0.5);
    EXPECT_EQ(core.active("a").waited, 11.5);
    core.now = 20;
    actions = core.Advance();
    ASSERT_EQ(actions.size(), 1u);
    core.now = 21;
    completed ? core.Event(JobCompleted{"a", 0.25}) : core.Event(JobFailed{"a", "again", 0.25});
    const EndedJob& ended = core.ended.back();
    EXPECT_EQ(ended.starts, 2);
    EXPECT_EQ(ended.first_start, 11.5);
    EXPECT_EQ(ended.ran, 0.75);
    EXPECT_EQ(ended.waited, 20.25);
    EXPECT_EQ(ended.gpu_seconds, 1.5);
  }
}

TEST(Reduce, RunningGoesBackToWaitingWhenItsHaltIsConfirmed) {
  CoreHarness core = Running();
  core.Event(JobHeld{"a"});
  EXPECT_EQ(core.active("a").status, JobStatus::kRunning);
  const auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kHalt);
  EXPECT_EQ(core.active("a").status, JobStatus::kRunning);
  core.DoneAll();
  EXPECT_EQ(core.active("a").status, JobStatus::kWaiting);
}

TEST(Reduce, CompletionAndFailureEndAJobWhateverItWasDoing) {
  for (const bool running : {false, true}) {
    for (const bool completed : {false, true}) {
      CoreHarness core = Running();
      if (!running) {
        core.Event(JobHeld{"a"});
        core.Settle();
      }
      if (completed) core.Event(JobCompleted{"a"});
      if (!completed) core.Event(JobFailed{"a", "out of memory"});
      EXPECT_FALSE(core.Knows("a"));
      EXPECT_EQ(core.Ended("a"), completed ? JobStatus::kCompleted : JobStatus::kFailed);
      EXPECT_EQ(core.ended.back().message, completed ? "" : "out of memory");
    }
  }
}

// The reference dies when a job is reported failed after it completed.
TEST(Reduce, TerminalStatesAbsorb) {
  CoreHarness core = Running();
  core.Event(JobCompleted{"a"});
  const auto ignored = core.state.ignored_events;
  core.Event(JobFailed{"a", "late"}).Event(JobDeleted{"a"}).Event(JobHeld{"a"}).Event(JobResumed{"a"});
  core.Event(JobChanged{.job = "a", .priority = 3}).Event(JobCompleted{"a"});
  core.Event(WorkersObserved{"a", {"n0"}});
  EXPECT_EQ(core.state.ignored_events, ignored + 7);
  EXPECT_FALSE(core.Knows("a"));
  EXPECT_EQ(core.Ended("a"), JobStatus::kCompleted);
  EXPECT_EQ(core.ended.size(), 1u);
  core.Settle();
  EXPECT_FALSE(core.Knows("a"));
}

// On Kubernetes a user deletes a job and applies another of the same name.
TEST(Reduce, ANameMayComeAgainForAnotherJob) {
  CoreHarness core = Running();
  core.Event(JobCompleted{"a"});
  JobArrived again;
  again.job = JobBuilder("a").Build();
  core.Event(again);
  ASSERT_TRUE(core.Knows("a"));
  core.Settle();
  EXPECT_EQ(core.active("a").status, JobStatus::kRunning);
  const auto ignored = core.state.ignored_events;
  core.Event(again);
  EXPECT_EQ(core.state.ignored_events, ignored + 1) << "twice is once";
  core.Event(JobFailed{"a", "x"});
  EXPECT_EQ(core.Ended("a"), JobStatus::kFailed);
}

TEST(Reduce, EventsAboutTheUnknownAreIgnoredAndCounted) {
  CoreHarness core = Running();
  core.Settle();
  const State before = core.state;
  core.Event(JobCompleted{"x"}).Event(JobFailed{"x", ""}).Event(JobDeleted{"x"}).Event(JobHeld{"x"});
  core.Event(JobResumed{"x"}).Event(JobChanged{.job = "x", .priority = 1}).Event(NodeRemoved{"x"});
  core.Event(NodeChanged{.node = "x", .gpus = 3}).Event(WorkersObserved{"x", {}}).Event(ActionDone{77});
  core.Event(ActionFailed{78, ""}).Event(ActionTimedOut{79});
  core.Event(MetricsUpdated{{{.job = "x", .remaining_seconds = 3}}});
  EXPECT_EQ(core.state.ignored_events, before.ignored_events + 13);
  EXPECT_FALSE(core.state.dirty);
  EXPECT_EQ(core.state.world.nodes.size(), before.world.nodes.size());
  EXPECT_EQ(core.Settle(), 0);
}

TEST(Reduce, TheSameJobTwiceIsOneJob) {
  CoreHarness core = Running();
  core.Arrive(JobBuilder("a").Sizes(1, 1, 4));
  EXPECT_EQ(core.state.world.jobs.size(), 1u);
  EXPECT_EQ(core.job("a").max, 2);
  EXPECT_EQ(core.Settle(), 0);
}

TEST(Reduce, TheSameOutcomeTwiceCountsOnce) {
  CoreHarness core = Running();
  const ActionId id = core.sent.back().id;
  core.Event(ActionFailed{id, "late"}).Event(ActionTimedOut{id}).Event(ActionDone{id});
  EXPECT_EQ(core.job("a").held(), 2);
  EXPECT_EQ(core.active("a").failures, 0);
}

TEST(Reduce, AHeldJobStaysOutUntilResumed) {
  CoreHarness core = Running();
  core.Event(JobHeld{"a"});
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 0);
  core.now = 1000;
  core.Event(Wake{});
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 0);
  core.Event(JobResumed{"a"});
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 2);
}

TEST(Reduce, AJobHeldWhileItStartsIsStoppedOnceItHasStarted) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a"));
  core.Round();
  core.Event(JobHeld{"a"});
  EXPECT_TRUE(core.Advance().empty());
  core.DoneAll();
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 0);
}

TEST(Reduce, AWaitingJobThatIsDeletedEndsAtOnce) {
  CoreHarness core;
  core.Arrive(JobBuilder("a")).Event(JobDeleted{"a"});
  EXPECT_FALSE(core.Knows("a"));
  EXPECT_EQ(core.Ended("a"), JobStatus::kCanceled);
}

TEST(Reduce, ARunningJobThatIsDeletedEndsWhenItsHaltIsConfirmed) {
  CoreHarness core = Running();
  core.Event(JobDeleted{"a"}).Event(JobDeleted{"a"});
  ASSERT_TRUE(core.Knows("a"));
  const auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kHalt);
  EXPECT_TRUE(core.Knows("a"));
  core.Event(JobResumed{"a"}).Event(JobHeld{"a"});  // too late
  core.Event(ActionDone{actions[0].id});
  EXPECT_EQ(core.Ended("a"), JobStatus::kCanceled);
}

TEST(Reduce, ADeletedJobThatCompletesMeanwhileIsCompleted) {
  CoreHarness core = Running();
  core.Event(JobDeleted{"a"});
  const auto actions = core.Advance();
  core.Event(JobCompleted{"a"}).Event(ActionDone{actions[0].id});
  EXPECT_EQ(core.Ended("a"), JobStatus::kCompleted);
  EXPECT_EQ(core.ended.size(), 1u);
}

TEST(Reduce, ADeletedJobWhoseHaltFailsIsHaltedAgain) {
  CoreHarness core = Running();
  core.Event(JobDeleted{"a"});
  core.Event(ActionFailed{core.Advance()[0].id, "busy"});
  EXPECT_TRUE(core.Knows("a"));
  for (int i = 0; i < 5 && !core.active("a").in_flight; ++i) {
    core.now = NextWake(core.state, core.now);
    core.Advance();
  }
  ASSERT_TRUE(core.active("a").in_flight);
  EXPECT_LE(core.now, 10);
  core.DoneAll();
  EXPECT_EQ(core.Ended("a"), JobStatus::kCanceled);
}

TEST(Reduce, AJobDeletedWhileItsStartIsInFlightEndsWhenTheStartFails) {
  for (const bool timed_out : {false, true}) {
    CoreHarness core;
    core.Nodes(1, 4).Arrive(JobBuilder("a"));
    const auto actions = core.Round();
    core.Event(JobDeleted{"a"});
    if (timed_out) core.Event(ActionTimedOut{actions[0].id});
    if (!timed_out) core.Event(ActionFailed{actions[0].id, "no such image"});
    core.Settle();
    for (int i = 0; i < 5 && core.Knows("a"); ++i) {
      core.now += 300;
      core.Advance();
      core.DoneAll();
    }
    EXPECT_FALSE(core.Knows("a")) << (timed_out ? "timed out" : "failed");
  }
}

TEST(Reduce, ADeletedJobEndsWhenItIsSeenToHoldNothing) {
  CoreHarness core = Running();
  core.Event(JobDeleted{"a"});
  core.Event(ActionTimedOut{core.Advance()[0].id});  // carried out, but nobody said so
  core.Event(WorkersObserved{"a", {}});
  for (int i = 0; i < 5 && core.Knows("a"); ++i) {
    core.now += 300;
    core.Advance();
    core.DoneAll();
  }
  EXPECT_FALSE(core.Knows("a"));
}

TEST(Reduce, OutcomesOfActionsOfEndedJobsChangeNothing) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a")).Arrive(JobBuilder("b").Submit(1));
  const auto actions = core.Round();
  ASSERT_EQ(actions.size(), 2u);
  core.Event(JobFailed{"a", ""});
  core.Event(ActionDone{actions[0].id})
      .Event(ActionFailed{actions[0].id, ""})
      .Event(ActionTimedOut{actions[0].id});
  EXPECT_EQ(core.state.ignored_events, 3);
  core.Event(ActionDone{actions[1].id});
  EXPECT_EQ(core.On("b"), std::vector<std::string>{"n0"});
  EXPECT_TRUE(core.state.action_owner.empty());
}

TEST(Reduce, NodesComeGoAndChange) {
  CoreHarness core;
  core.Node("n0", 4);
  core.Node("n0", 8);  // twice is an update
  ASSERT_EQ(core.state.world.nodes.size(), 1u);
  EXPECT_EQ(Capacity(core.state.world), 8);
  core.Event(NodeChanged{.node = "n0", .gpus = 2});
  EXPECT_EQ(Capacity(core.state.world), 2);
  core.Event(NodeChanged{.node = "n0", .state = NodeState::kCordoned});
  EXPECT_EQ(Capacity(core.state.world), 0);
  core.Event(NodeChanged{.node = "n0", .state = NodeState::kReady});
  EXPECT_EQ(Capacity(core.state.world), 2);
  core.Event(NodeRemoved{"n0"}).Event(NodeRemoved{"n0"});
  EXPECT_EQ(Capacity(core.state.world), 0);
  core.Node("n0", 4);
  EXPECT_EQ(Capacity(core.state.world), 4);
}

// The order of node events does not matter, each says what is.
TEST(Reduce, ANodeRemovedAndAddedAgainCountsOnce) {
  CoreHarness core;
  core.Node("n0", 4).Node("n1", 4);
  core.Event(NodeRemoved{"n0"}).Event(NodeRemoved{"n0"}).Node("n0", 4).Node("n0", 4);
  EXPECT_EQ(Capacity(core.state.world), 8);
}

// A cluster that is scaled by names that are new each time.
TEST(Reduce, NodesThatAreGoneLeaveTheState) {
  CoreHarness core;
  core.Nodes(2, 4).Arrive(JobBuilder("a").Sizes(2, 2, 2));
  core.Settle();
  for (int i = 0; i < 5000; ++i) {
    const std::string name = "auto-" + std::to_string(i);
    core.now += 10;
    core.Node(name, 8);
    core.Advance();
    core.Event(NodeRemoved{name});
    core.Advance();
    ASSERT_LE(core.state.world.nodes.size(), 3u) << i;
  }
  core.Settle();
  EXPECT_EQ(core.state.world.nodes.size(), 2u);
  EXPECT_EQ(core.state.node_index.size(), 2u);
  EXPECT_TRUE(core.state.removed.empty());
  EXPECT_EQ(core.On("a"), (std::vector<std::string>{"n0", "n0"}));
}

TEST(Reduce, ARemovedNodeStaysUntilNothingNamesIt) {
  CoreHarness core;
  core.Nodes(3, 4);
  core.Arrive(JobBuilder("a").Sizes(4, 4, 4)).Arrive(JobBuilder("b").Submit(1).Sizes(4, 4, 4));
  core.Settle();
  ASSERT_EQ(core.On("a"), (std::vector<std::string>{"n0", "n0", "n0", "n0"}));
  ASSERT_EQ(core.On("b"), (std::vector<std::string>{"n1", "n1", "n1", "n1"}));
  core.Event(NodeRemoved{"n0"});
  const auto move = core.Advance();
  ASSERT_EQ(move.size(), 1u);
  for (int i = 0; i < 3; ++i) core.Advance();
  EXPECT_EQ(core.On("a").front(), "n0") << "its workers are there until the move is done";
  EXPECT_EQ(core.state.world.nodes.size(), 3u);

  core.Event(NodeRemoved{"n2"}).Advance();
  core.Event(WorkersObserved{"a", {}}).Advance();
  EXPECT_FALSE(core.state.node_index.contains("n0")) << "its workers are gone";
  EXPECT_TRUE(core.state.node_index.contains("n2")) << "the move goes there";
  EXPECT_EQ(core.On("b"), (std::vector<std::string>{"n1", "n1", "n1", "n1"})) << "where it was";

  core.Event(ActionFailed{move[0].id, "no such node"});
  core.Settle();
  EXPECT_EQ(core.state.world.nodes.size(), 1u);
}

TEST(Reduce, ANodeThatComesBackAfterItWasForgottenIsNew) {
  CoreHarness core;
  core.Nodes(2, 4).Arrive(JobBuilder("a").Sizes(4, 4, 4), {"n0", "n0", "n0", "n0"});
  core.Event(NodeRemoved{"n0"}).Event(JobCompleted{"a"}).Advance();
  ASSERT_FALSE(core.state.node_index.contains("n0"));
  core.Node("n0", 2).Arrive(JobBuilder("b").Sizes(6, 6, 6));
  core.Settle();
  EXPECT_EQ(Capacity(core.state.world), 6);
  EXPECT_EQ(core.job("b").held(), 6);
}

TEST(Reduce, NothingIsSaidOfARemovedNodeButThatItIsBack) {
  CoreHarness core = Running();
  core.Event(NodeRemoved{"n0"});
  const auto ignored = core.state.ignored_events;
  core.Event(NodeChanged{.node = "n0", .gpus = 4, .state = NodeState::kReady}).Event(NodeRemoved{"n0"});
  EXPECT_EQ(core.state.ignored_events, ignored + 2);
  EXPECT_EQ(Capacity(core.state.world), 0);
  core.Node("n0", 4);
  core.Settle();
  EXPECT_EQ(core.On("a"), (std::vector<std::string>{"n0", "n0"}));
}

TEST(Reduce, ANodeThatIsNotReadyIsNotForgotten) {
  CoreHarness core;
  core.Nodes(2, 4).Event(NodeChanged{.node = "n0", .state = NodeState::kLost});
  core.Settle();
  EXPECT_EQ(core.state.world.nodes.size(), 2u);
  core.Event(NodeChanged{.node = "n0", .state = NodeState::kReady});
  EXPECT_EQ(Capacity(core.state.world), 8);
}

TEST(Reduce, ALostNodesWorkersArePlacedAnewThoughTheSizeStays) {
  CoreHarness core;
  core.Nodes(2, 4).Arrive(JobBuilder("a").Sizes(2, 2, 2));
  core.Settle();
  ASSERT_EQ(core.On("a"), (std::vector<std::string>{"n0", "n0"}));
  core.Event(NodeRemoved{"n0"});
  const auto actions = core.Advance();
  ASSERT_EQ(actions.size(), 1u);
  EXPECT_EQ(actions[0].kind, ActionKind::kMove);
  EXPECT_EQ(actions[0].moved, 2);
  core.DoneAll();
  EXPECT_EQ(core.On("a"), (std::vector<std::string>{"n1", "n1"}));
}

TEST(Reduce, AWorkerThatDiedIsStartedAgain) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(3, 3, 3));
  core.Settle();
  core.Event(WorkersObserved{"a", {"n0", "", "n0"}});
  core.Settle();
  EXPECT_EQ(core.On("a"), (std::vector<std::string>{"n0", "n0", "n0"}));
  core.Event(WorkersObserved{"a", {}});
  EXPECT_EQ(core.active("a").status, JobStatus::kWaiting);
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 3);
}

TEST(Reduce, WorkersOnANodeNobodyAnnouncedAreOnALostNode) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(2, 2, 2), {"ghost", "n0"});
  EXPECT_EQ(core.active("a").status, JobStatus::kRunning);
  EXPECT_EQ(Capacity(core.state.world), 4);
  core.Settle();
  EXPECT_EQ(core.On("a"), (std::vector<std::string>{"n0", "n0"}));
  EXPECT_EQ(core.state.world.nodes.size(), 1u);
}

TEST(Reduce, MetricsGarbageIsRefused) {
  CoreHarness core;
  core.Arrive(JobBuilder("a").Sizes(1, 2, 4).Remaining(50));
  const double inf = std::numeric_limits<double>::infinity();
  for (const double bad : {std::nan(""), inf, -inf}) {
    core.Event(MetricsUpdated{{{.job = "a", .remaining_seconds = bad}}});
    EXPECT_EQ(core.job("a").remaining_seconds, 50);
  }
  core.Event(MetricsUpdated{{{.job = "a", .remaining_seconds = -3}}});
  EXPECT_EQ(core.job("a").remaining_seconds, 0);
  core.Event(MetricsUpdated{{{.job = "a", .remaining_seconds = 80}, {.job = "x"}, {.job = "a"}}});
  EXPECT_EQ(core.job("a").remaining_seconds, 80);
}

TEST(Reduce, MetricsAskForNoRound) {
  CoreHarness core = Running();
  core.Event(MetricsUpdated{{{.job = "a", .remaining_seconds = 80}}});
  EXPECT_FALSE(core.state.dirty);
  EXPECT_EQ(NextWake(core.state, core.now), kNever);
}

TEST(Reduce, MetricsNeverChangeTheSizesAJobMayRunAt) {
  CoreHarness core;
  core.Arrive(JobBuilder("a").Allowed({1, 2, 4}));
  core.Event(MetricsUpdated{{{.job = "a", .curve = Curve::Of({1, 2, 8}, {1, 2, 3})}}});
  EXPECT_EQ(core.job("a").curve->IndexOf(8), -1);
  core.Event(MetricsUpdated{{{.job = "a", .curve = Curve::Of({1, 2, 4}, {1, 1.5, 2})}}});
  EXPECT_EQ(core.job("a").curve->speedup(2), 2);
  core.Event(MetricsUpdated{{{.job = "a", .curve = Curve::Of({1, 2, 3, 4}, {1, 2, 3, 4})}}});
  EXPECT_EQ(core.job("a").curve->IndexOf(3), -1) << "3 is not an allowed size of this job";
}

TEST(Reduce, ChangedLimitsResizeARunningJob) {
  CoreHarness core = Running();
  core.Event(JobChanged{.job = "a", .sizes = JobChanged::Sizes{{3, 3, 4}, Curve::Linear(3, 4)}});
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 4);
  core.Event(JobChanged{.job = "a", .sizes = JobChanged::Sizes{{1, 1, 1}, Curve::Linear(1, 1)}});
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 1);
}

TEST(Reduce, ChangedPriorityLetsAJobPassAnother) {
  CoreHarness core;
  core.Nodes(1, 1).Arrive(JobBuilder("a")).Arrive(JobBuilder("b").Submit(1));
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 1);
  core.Event(JobChanged{.job = "b", .priority = 1});
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 0);
  EXPECT_EQ(core.job("b").held(), 1);
}

TEST(Reduce, TimesAreCountedOnceAndAClockThatStepsBackAddsNothing) {
  CoreHarness core;
  core.now = 100;
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(2, 2, 2).GpusPerWorker(2));
  core.now = 110;
  core.Settle();
  core.now = 130;
  core.Event(Wake{});
  core.Settle();
  core.now = 120;
  core.Event(JobChanged{.job = "a", .priority = 1});
  AccrueAll(core.state, core.now);
  core.now = 140;
  core.Event(JobHeld{"a"});
  core.Settle();
  core.now = 145;
  AccrueAll(core.state, core.now);
  EXPECT_DOUBLE_EQ(core.active("a").waited, 15);
  EXPECT_DOUBLE_EQ(core.active("a").ran, 30);
  EXPECT_DOUBLE_EQ(core.active("a").gpu_seconds, 120);
  EXPECT_DOUBLE_EQ(core.job("a").attained_gpu_seconds, 120);
  EXPECT_DOUBLE_EQ(core.job("a").running_seconds, 30);
  EXPECT_DOUBLE_EQ(core.job("a").waiting_seconds, 5);  // since the first start
}

TEST(Reduce, ATickThatEndsAJobGoesNoFurtherThanTheJobsThatAreLeft) {
  CoreHarness core;
  core.Nodes(1, 4).Arrive(JobBuilder("a")).Arrive(JobBuilder("b"));
  ASSERT_EQ(core.Advance().size(), 2u);
  core.Event(JobDeleted{"a"});
  core.now = core.state.config.action_timeout;
  core.Event(Tick{});
  EXPECT_FALSE(core.Knows("a"));
  EXPECT_EQ(core.Ended("a"), JobStatus::kCanceled);
  core.Event(Tick{});
  EXPECT_FALSE(core.active("b").in_flight);
  EXPECT_EQ(core.active("b").failures, 1);
}

TEST(Reduce, AJobSeenRunningIsNotStoppedBecauseItsStartsTimedOut) {
  CoreHarness core("ElasticFIFO", {.rate_limit = 30});
  core.Nodes(1, 4).Arrive(JobBuilder("a"));
  core.Advance();
  while (core.active("a").failures < 8) {
    if (core.active("a").in_flight) core.Event(ActionTimedOut{core.active("a").in_flight->action.id});
    core.now += 1;
    core.Advance();
  }
  if (core.active("a").in_flight) core.Event(ActionTimedOut{core.active("a").in_flight->action.id});
  core.Event(WorkersObserved{"a", {"n0"}});  // the last one was carried out after all
  const double retry = core.active("a").retry_at;
  core.now = retry - 10;
  core.Event(Wake{});
  core.Advance();
  core.now = retry;
  core.Advance();
  core.now = retry + 1;
  core.state.undispatched = true;  // the outcome of some other action
  core.Advance();
  core.DoneAll();
  EXPECT_EQ(core.job("a").held(), 1);
  for (const Action& action : core.sent) EXPECT_EQ(action.kind, ActionKind::kStart) << Name(action.kind);
}

TEST(Reduce, NothingIsKeptOfJobsThatEnded) {
  CoreHarness core;
  State& state = core.state;
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::string name = "j" + std::to_string(i);
    EXPECT_TRUE(Reduce(state, JobArrived{JobBuilder(name).Build(), "", {}}, 0).empty());
    const auto ended = Reduce(state, JobCompleted{name}, static_cast<double>(i));
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].name, name);
    EXPECT_EQ(ended[0].status, JobStatus::kCompleted);
    EXPECT_EQ(ended[0].end, static_cast<double>(i));
    EXPECT_TRUE(Reduce(state, JobCompleted{name}, 0).empty());
  }
  EXPECT_EQ(state.world.jobs.size(), 0u);
  EXPECT_EQ(state.active.size(), 0u);
  EXPECT_EQ(state.job_ids.size(), 0u);
}

TEST(Reduce, AGuessedJobIsBelievedToWorkWhileItRunsUntilItReports) {
  CoreHarness core;
  core.Nodes(1, 4);
  Job job = JobBuilder("a").Sizes(4, 4, 4).Build();
  job.guessed = true;
  core.Event(JobArrived{.job = job});
  core.Settle();
  core.now += 1000;
  core.Event(Tick{});
  AccrueAll(core.state, core.now);
  const double done = core.job("a").running_seconds * GuessedSpeedup(4);
  EXPECT_GT(done, 0);
  EXPECT_DOUBLE_EQ(core.job("a").work_done, done);
  EXPECT_DOUBLE_EQ(core.job("a").remaining_seconds, std::max(3600.0, done));
  EXPECT_DOUBLE_EQ(core.job("a").total_seconds, done + core.job("a").remaining_seconds);
  core.Event(
      MetricsUpdated{{{.job = "a", .finished = std::make_shared<const FinishedWork>(FinishedWork{1e6})}}});
  AccrueAll(core.state, core.now);
  EXPECT_DOUBLE_EQ(core.job("a").remaining_seconds, 1e6 - done);
  core.Event(MetricsUpdated{{{.job = "a", .remaining_seconds = 70, .total_seconds = 90, .reported = true}}});
  core.now += 100;
  AccrueAll(core.state, core.now);
  EXPECT_EQ(core.job("a").remaining_seconds, 70);
  EXPECT_EQ(core.job("a").total_seconds, 90);
  EXPECT_DOUBLE_EQ(core.job("a").work_done, done + 100 * GuessedSpeedup(4)) << "for the jobs after it";
}

}  // namespace
}  // namespace voda
