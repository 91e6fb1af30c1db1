// A size that others wrote is observed and never a claim: no policy decides anything else because of it, and
// it is taken back.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policy/registry.h"
#include "support/core_harness.h"

namespace voda::testing {
namespace {

std::string NameOf(const ::testing::TestParamInfo<std::string_view>& info) {
  return info.param == "AFS-L" ? "AfsL" : std::string(info.param);
}

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  for (const PolicyInfo& policy : Policies()) names.push_back(policy.name);
  return names;
}

class Claims : public ::testing::TestWithParam<std::string_view> {
 protected:
  // Two nodes of eight: victims with eight and seven, and a thief with one.
  CoreHarness Begin() const {
    CoreHarness core(GetParam());
    core.Nodes(2, 8);
    core.Arrive(JobBuilder("a").Sizes(8, 8, 8).Submit(1).Remaining(10'000).Costs(10, 20, 20));
    core.Arrive(JobBuilder("b").Sizes(7, 7, 7).Submit(2).Remaining(10'000).Costs(10, 20, 20));
    core.Arrive(JobBuilder("thief").Sizes(1, 1, 8).Submit(3).Remaining(10'000).Costs(10, 20, 20));
    core.Settle();
    core.now = 600;
    return core;
  }
  static std::vector<std::vector<std::string>> Seats(const CoreHarness& core) {
    return {core.On("a"), core.On("b"), core.On("thief")};
  }
};

TEST_P(Claims, ASizeThatOthersWroteTakesNothingFromAnybody) {
  CoreHarness untouched = Begin();
  ASSERT_EQ(untouched.job("a").held(), 8);
  ASSERT_EQ(untouched.job("b").held(), 7);
  ASSERT_EQ(untouched.job("thief").held(), 1);
  untouched.Event(Wake{}).Settle();

  // Its pods wait for a node, or sit on nodes that they were pinned to by others.
  for (const std::string node : {"", "n0", "n1", "elsewhere"}) {
    CoreHarness core = Begin();
    std::vector<std::string> scaled(8, node);
    scaled[0] = core.On("thief")[0];
    core.Event(WorkersObserved{"thief", scaled});
    ASSERT_EQ(core.On("thief").size(), 8U) << "it is observed";
    core.Settle();
    EXPECT_EQ(Seats(core), Seats(untouched)) << "on \"" << node << '"';
    for (const Action& action : core.sent) {
      EXPECT_TRUE(action.job == "thief" || action.kind == ActionKind::kStart) << action.job;
    }
  }
}

TEST_P(Claims, ItIsTakenBackBeforeTheNextRound) {
  CoreHarness core = Begin();
  core.state.config.rate_limit = 1e6;
  std::vector<std::string> scaled = core.On("thief");
  scaled.resize(8);
  core.Event(WorkersObserved{"thief", scaled});
  const std::int64_t rounds = core.state.rounds;
  const auto actions = core.Advance();
  EXPECT_EQ(core.state.rounds, rounds);
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(actions[0].kind, ActionKind::kShrink);
  EXPECT_EQ(actions[0].job, "thief");
  EXPECT_EQ(actions[0].workers.size(), 1U);
}

// While Voda was away, or with the marks of a job that it knows.
TEST_P(Claims, AJobThatComesWithWorkersOnTakenSeatsClaimsNone) {
  CoreHarness untouched = Begin();
  untouched.Arrive(JobBuilder("late").Sizes(1, 1, 8).Submit(600).Remaining(100).Costs(10, 20, 20));
  untouched.Settle();
  for (const std::string node : {"", "n0", "elsewhere"}) {
    CoreHarness core = Begin();
    core.Arrive(JobBuilder("late").Sizes(1, 1, 8).Submit(600).Remaining(100).Costs(10, 20, 20),
                std::vector<std::string>(8, node));
    core.Settle();
    EXPECT_EQ(core.job("late").held(), untouched.job("late").held()) << "on \"" << node << '"';
    EXPECT_EQ(Seats(core), Seats(untouched)) << "on \"" << node << '"';
  }
}

INSTANTIATE_TEST_SUITE_P(All, Claims, ::testing::ValuesIn(PolicyNames()), NameOf);

TEST(ClaimsOfOrders, WhatWasOrderedIsClaimedAlsoWhenItComesLate) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(1, 8).Arrive(JobBuilder("a").Sizes(4, 4, 4));
  const auto start = core.Round();
  ASSERT_EQ(start.size(), 1U);
  core.Event(ActionFailed{start[0].id, "no answer"});
  core.Event(WorkersObserved{"a", {}});
  core.Event(WorkersObserved{"a", std::vector<std::string>(4, "n0")});
  EXPECT_EQ(core.state.world.job(0).held(), 4) << "it came about after all";
  EXPECT_TRUE(core.Settle() == 0 && core.job("a").held() == 4);
}

TEST(ClaimsOfOrders, WhatWasLostIsNotClaimedAgain) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(1, 8).Arrive(JobBuilder("a").Sizes(2, 2, 8)).Settle();
  core.Event(WorkersObserved{"a", {"n0", "n0"}});
  EXPECT_EQ(core.state.world.job(0).held(), 2);
  core.Event(WorkersObserved{"a", std::vector<std::string>(8, "n0")});
  EXPECT_EQ(core.state.world.job(0).held(), 2);
}

TEST(ClaimsOfOrders, AFailedGrowthThatIsNotPlannedAnyMoreIsNoClaim) {
  for (const bool planned_back_in_flight : {false, true}) {
    CoreHarness core("ElasticFIFO");
    core.Nodes(1, 8).Arrive(JobBuilder("a").Sizes(1, 1, 8).Submit(1)).Arrive(JobBuilder("b").Sizes(7, 7, 7));
    core.Settle();
    ASSERT_EQ(core.job("a").held(), 1);
    core.Event(JobCompleted{"b"});
    const auto grow = core.Advance();
    ASSERT_EQ(grow.size(), 1U);
    ASSERT_EQ(grow[0].workers.size(), 8U);
    const auto others_come = [&] { core.Arrive(JobBuilder("c").Sizes(7, 7, 7)).Round(); };
    if (planned_back_in_flight) others_come();
    core.Event(ActionFailed{grow[0].id, "no answer"});
    if (!planned_back_in_flight) others_come();
    ASSERT_EQ(core.active("a").desired.size(), 1U);
    core.Event(WorkersObserved{"a", std::vector<std::string>(8, "n0")});
    EXPECT_EQ(core.state.world.job(FindJob(core.state, "a")).held(), 1) << "others scaled it";
  }
}

TEST(ClaimsOfOrders, AnotherOrderTakesThePlaceOfOneThatFailed) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(1, 8).Arrive(JobBuilder("a").Sizes(1, 8, 8));
  const auto start = core.Round();
  ASSERT_EQ(start[0].workers.size(), 8U);
  core.Event(ActionFailed{start[0].id, "no answer"});
  core.Arrive(JobBuilder("b").Sizes(6, 6, 6).Submit(-1));
  core.now = 10;
  std::vector<Action> sent = core.Round();
  const auto second =
      std::find_if(sent.begin(), sent.end(), [](const Action& action) { return action.job == "a"; });
  ASSERT_NE(second, sent.end());
  ASSERT_EQ(second->workers.size(), 2U);
  core.Event(ActionFailed{second->id, "no answer"});
  core.Event(WorkersObserved{"a", std::vector<std::string>(8, "n0")});
  EXPECT_EQ(core.state.world.job(0).held(), 2);
}

TEST(ClaimsOfOrders, AtArrivalOnlyWorkersWithAGpuCount) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(2, 8);
  std::vector<std::string> on(8);
  on.front() = "n0";
  on.back() = "n1";
  core.Arrive(JobBuilder("a").Sizes(1, 1, 8), on);
  EXPECT_EQ(core.On("a").size(), 8U);
  EXPECT_EQ(core.state.world.job(0).held(), 2);
}

// A job whose workers find no room holds nothing, and its GPUs are for others until it is tried again.
TEST(NoRoom, TheGpusOfAJobThatFindsNoRoomAreOfferedToOthers) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(1, 4).Arrive(JobBuilder("a").Sizes(4, 4, 4)).Arrive(JobBuilder("b").Sizes(4, 4, 4).Submit(1));
  const auto start = core.Round();
  ASSERT_EQ(start.size(), 1U);
  core.now = 120;
  core.Event(ActionFailed{
      .id = start[0].id, .message = "0/1 nodes are available: 1 Insufficient cpu", .no_room = true});
  EXPECT_EQ(core.state.world.job(0).aside, Aside::kBackingOff);
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 0);
  EXPECT_EQ(core.job("b").held(), 4);
  core.now = 179;
  core.Advance();
  EXPECT_EQ(core.state.world.job(0).aside, Aside::kBackingOff);
  core.now = 180;
  core.Advance();
  EXPECT_EQ(core.state.world.job(0).aside, Aside::kNo);
}

// One that found room for some of them keeps those, and is no larger until it is tried again.
TEST(NoRoom, AJobThatFoundRoomInPartRunsOnAndTheRestIsOfferedToOthers) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(1, 8).Arrive(JobBuilder("a").Sizes(2, 8, 8)).Arrive(JobBuilder("b").Sizes(4, 4, 4).Submit(1));
  const auto start = core.Round();
  ASSERT_EQ(start.size(), 2U);
  ASSERT_EQ(start[0].workers.size() + start[1].workers.size(), 8U);
  core.DoneAll().Event(JobCompleted{"b"});
  const auto grow = core.Round();
  ASSERT_EQ(grow.size(), 1U);
  ASSERT_EQ(grow[0].workers.size(), 8U);
  core.now = 120;
  core.Event(WorkersObserved{"a", std::vector<std::string>(5, "n0")});
  core.Event(ActionFailed{.id = grow[0].id, .message = "Insufficient cpu", .no_room = true});
  EXPECT_EQ(core.state.world.job(0).aside, Aside::kNo);
  EXPECT_EQ(NextWake(core.state, core.now), 120);
  core.Arrive(JobBuilder("c").Sizes(1, 3, 3).Submit(2)).Settle();
  EXPECT_EQ(core.job("a").held(), 5);
  EXPECT_EQ(core.job("c").held(), 3);
  EXPECT_EQ(NextWake(core.state, core.now), 180);

  core.Arrive(JobBuilder("d").Sizes(4, 4, 4).Submit(-1)).Settle();
  EXPECT_EQ(core.job("d").held(), 4);
  EXPECT_LT(core.job("a").held(), 5) << "it may be shrunk meanwhile";
  core.Event(JobCompleted{"c"}).Event(JobCompleted{"d"}).Settle();
  EXPECT_EQ(core.job("a").held(), 5) << "and grows no further than before";

  core.now = 180;
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 8) << "it is tried again";
}

TEST(NoRoom, AJobThatIsHeldMeanwhileIsStoppedAllTheSame) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(1, 8).Arrive(JobBuilder("a").Allowed({1, 2, 4, 8}));
  const auto start = core.Round();
  ASSERT_EQ(start.size(), 1U);
  core.Event(JobHeld{"a"}).Event(WorkersObserved{"a", {"n0", "n0", "n0"}});
  core.Event(ActionFailed{.id = start[0].id, .message = "Insufficient cpu", .no_room = true});
  core.now = 1;
  const auto halt = core.Advance();
  ASSERT_EQ(halt.size(), 1U);
  EXPECT_EQ(halt[0].kind, ActionKind::kHalt);
}

TEST(NoRoom, ASizeThatIsNotAllowedIsRoundedDown) {
  CoreHarness core("ElasticFIFO");
  core.Nodes(1, 8).Arrive(JobBuilder("a").Allowed({1, 2, 4, 8}));
  const auto start = core.Round();
  ASSERT_EQ(start.size(), 1U);
  ASSERT_EQ(start[0].workers.size(), 8U);
  core.Event(WorkersObserved{"a", {"n0", "n0", "n0"}});
  core.Event(ActionFailed{.id = start[0].id, .message = "Insufficient cpu", .no_room = true});
  core.Settle();
  EXPECT_EQ(core.job("a").held(), 2);
}

}  // namespace
}  // namespace voda::testing
