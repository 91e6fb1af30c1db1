#include "core/guards.h"

#include <gtest/gtest.h>

#include "core/decide.h"
#include "policy/registry.h"
#include "support/builders.h"
#include "support/check.h"
#include "support/core_harness.h"
#include "support/generators.h"

namespace voda {
namespace {

using testing::ArbitrarySnapshot;
using testing::Check;
using testing::JobBuilder;
using testing::Permuted;
using testing::PolicyNamed;
using testing::Rng;
using testing::SizesByName;
using testing::SnapshotBuilder;

int Workers(const Snapshot& snapshot, const Allocation& allocation, const std::string& job) {
  return allocation.workers[testing::IndexOf(snapshot, job)];
}

// One GPU; b is first in the order, a runs.
Snapshot Contended() {
  return SnapshotBuilder()
      .Now(100)
      .Nodes(1, 1)
      .Add(JobBuilder("a").Submit(5).On({"n0"}))
      .Add(JobBuilder("b"))
      .Build();
}

TEST(Guards, MinRuntimeKeepsAYoungJobRunning) {
  const auto policy = PolicyNamed("FIFO");
  Snapshot snapshot = Contended();
  snapshot.jobs[0].last_start = 50;
  const GuardedPolicy guarded(*policy, {.min_runtime = 60});
  Allocation allocation = guarded.Allocate(snapshot);
  EXPECT_EQ(Workers(snapshot, allocation, "a"), 1);
  EXPECT_EQ(Workers(snapshot, allocation, "b"), 0);
  EXPECT_EQ(allocation.reasons[0].code, ReasonCode::kGuarded);
  EXPECT_EQ(allocation.wake_at, 110);
  snapshot.now = 110;
  allocation = guarded.Allocate(snapshot);
  EXPECT_EQ(Workers(snapshot, allocation, "a"), 0);
  EXPECT_EQ(Workers(snapshot, allocation, "b"), 1);
}

TEST(Guards, OffTheyKeepNobodyThoughTheClockStepsBack) {
  const auto policy = PolicyNamed("FIFO");
  Snapshot snapshot = Contended();
  snapshot.jobs[0].last_start = snapshot.jobs[0].last_change = snapshot.now + 5;
  const Allocation allocation = GuardedPolicy(*policy, {}).Allocate(snapshot);
  EXPECT_EQ(Workers(snapshot, allocation, "a"), 0);
  EXPECT_EQ(Workers(snapshot, allocation, "b"), 1);
}

TEST(Guards, MinRuntimeForbidsShrinkingButNotGrowing) {
  const auto policy = PolicyNamed("ElasticFIFO");
  const GuardedPolicy guarded(*policy, {.min_runtime = 60});
  Snapshot snapshot = SnapshotBuilder()
                          .Now(100)
                          .Nodes(1, 4)
                          .Add(JobBuilder("a").Sizes(1, 1, 4).On({"n0", "n0", "n0"}))
                          .Add(JobBuilder("b").Sizes(2, 2, 2).Submit(1))
                          .Build();
  snapshot.jobs[0].last_start = 90;
  EXPECT_EQ(Workers(snapshot, policy->Allocate(snapshot), "a"), 2);
  EXPECT_EQ(Workers(snapshot, guarded.Allocate(snapshot), "a"), 3);
  snapshot.jobs.pop_back();
  EXPECT_EQ(Workers(snapshot, guarded.Allocate(snapshot), "a"), 4);
}

TEST(Guards, CooldownForbidsAnyOtherSize) {
  const auto policy = PolicyNamed("ElasticFIFO");
  const GuardedPolicy guarded(*policy, {.cooldown = 60});
  Snapshot snapshot =
      SnapshotBuilder().Now(100).Nodes(1, 4).Add(JobBuilder("a").Sizes(1, 1, 4).On({"n0"})).Build();
  snapshot.jobs[0].last_change = 70;
  Allocation allocation = guarded.Allocate(snapshot);
  EXPECT_EQ(allocation.workers[0], 1);
  EXPECT_EQ(allocation.wake_at, 130);
  snapshot.now = 130;
  EXPECT_EQ(guarded.Allocate(snapshot).workers[0], 4);
}

// What is left of two nodes of 8 is no pair of nodes of 7.
TEST(Guards, WhatTheyLeaveOfANodeIsNoWholeNode) {
  const auto policy = PolicyNamed("Price");
  const GuardedPolicy guarded(*policy, {.cooldown = 60});
  Snapshot snapshot = SnapshotBuilder()
                          .Now(100)
                          .Nodes(2, 8)
                          .Add(JobBuilder("a").Sizes(1, 1, 1).Remaining(5000).On({"n0"}))
                          .Add(JobBuilder("b").Sizes(1, 1, 1).Remaining(5000).On({"n1"}))
                          .Add(JobBuilder("c").Sizes(1, 1, 16).Remaining(5000))
                          .Build();
  snapshot.jobs[2].measured = std::make_shared<const std::vector<int>>(std::vector<int>{1, 8});
  const int unguarded = Workers(snapshot, policy->Allocate(snapshot), "c");
  EXPECT_EQ(unguarded, 8);
  snapshot.jobs[0].last_change = snapshot.jobs[1].last_change = 90;
  EXPECT_EQ(Workers(snapshot, guarded.Allocate(snapshot), "c"), unguarded);
}

TEST(Guards, ANonPreemptibleJobIsResizedButNotStopped) {
  const auto policy = PolicyNamed("FIFO");
  const GuardedPolicy guarded(*policy, {});
  const Snapshot snapshot =
      SnapshotBuilder()
          .Nodes(1, 4)
          .Add(JobBuilder("a").Sizes(2, 2, 4).Submit(5).NotPreemptible().On({"n0", "n0", "n0", "n0"}))
          .Add(JobBuilder("b").Sizes(2, 2, 2))
          .Add(JobBuilder("c").Sizes(2, 2, 2).Submit(1))
          .Build();
  EXPECT_EQ(Workers(snapshot, policy->Allocate(snapshot), "a"), 0);
  const Allocation allocation = guarded.Allocate(snapshot);
  EXPECT_EQ(Workers(snapshot, allocation, "a"), 2);
  EXPECT_EQ(Workers(snapshot, allocation, "b"), 2);
  EXPECT_EQ(Workers(snapshot, allocation, "c"), 0);
}

TEST(Guards, AHeldJobIsStoppedWhateverGuardsSay) {
  const auto policy = PolicyNamed("FIFO");
  Snapshot snapshot = Contended();
  snapshot.jobs[0].last_start = snapshot.jobs[0].last_change = 99;
  snapshot.jobs[0].preemptible = false;
  snapshot.jobs[0].aside = Aside::kHeld;
  EXPECT_EQ(GuardedPolicy(*policy, {60, 60}).Allocate(snapshot).workers[0], 0);
}

TEST(Guards, ASizeThatIsNotAllowedIsMendedAllTheSame) {
  const auto policy = PolicyNamed("ElasticFIFO");
  Snapshot snapshot = SnapshotBuilder()
                          .Now(100)
                          .Nodes(1, 4)
                          .Add(JobBuilder("a").Allowed({1, 2, 4}).On({"n0", "n0", "n0"}))
                          .Build();
  snapshot.jobs[0].last_start = snapshot.jobs[0].last_change = 99;
  const Allocation allocation = GuardedPolicy(*policy, {60, 60}).Allocate(snapshot);
  EXPECT_TRUE(Valid(snapshot, allocation));
}

// The node shrank, so that it carries one of two young jobs only: the earlier one, wherever it is listed.
TEST(Guards, WhoKeepsAShrunkenNodeDoesNotDependOnTheOrderOfTheSnapshot) {
  const auto policy = PolicyNamed("FIFO");
  for (const bool swapped : {false, true}) {
    Snapshot snapshot = SnapshotBuilder()
                            .Now(100)
                            .Nodes(1, 1)
                            .Add(JobBuilder(swapped ? "b" : "a").Submit(swapped ? 2 : 1).On({"n0"}))
                            .Add(JobBuilder(swapped ? "a" : "b").Submit(swapped ? 1 : 2).On({"n0"}))
                            .Add(JobBuilder("c"))
                            .Build();
    snapshot.jobs[0].last_start = snapshot.jobs[1].last_start = 90;
    const Allocation allocation = GuardedPolicy(*policy, {.min_runtime = 60}).Allocate(snapshot);
    EXPECT_EQ(Workers(snapshot, allocation, "a"), 1);
    EXPECT_EQ(Workers(snapshot, allocation, "b"), 0);
    EXPECT_EQ(Workers(snapshot, allocation, "c"), 0);
  }
}

// Found by GuardedJobsDoNotGiveWay: e wants six wide workers, which cannot be seated beside the others.
TEST(Guards, WhoeverIsGuardedKeepsASeatHoweverOthersAreSeated) {
  for (const PlacementMode mode : {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack}) {
    for (unsigned guarded_jobs = 1; guarded_jobs < 16; ++guarded_jobs) {
      Snapshot snapshot = SnapshotBuilder()
                              .Node("q0", 5)
                              .Node("q1", 5)
                              .Node("o2", 5)
                              .Node("q3", 5)
                              .Add(JobBuilder("k").On({"q1"}))
                              .Add(JobBuilder("e").Sizes(3, 6, 6).GpusPerWorker(2).On({"o2", "o2", "q3"}))
                              .Add(JobBuilder("l").GpusPerWorker(4).On({"q0"}))
                              .Add(JobBuilder("q").GpusPerWorker(2).On({"q3"}))
                              .Build();
      for (const JobIndex i : snapshot.jobs.indices()) {
        snapshot.jobs[i].preemptible = (guarded_jobs >> static_cast<int>(i) & 1) == 0;
      }
      const auto policy = PolicyNamed("FIFO");
      const Plan plan = Decide(snapshot, GuardedPolicy(*policy, {}), mode);
      for (const JobIndex i : snapshot.jobs.indices()) {
        if (snapshot.jobs[i].preemptible) continue;
        EXPECT_GE(plan.allocation.workers[i], snapshot.jobs[i].min)
            << snapshot.jobs[i].name << " " << Name(mode) << " guarded " << guarded_jobs;
      }
    }
  }
}

// What the guards demand of a job, from the text: exactly its size, at least its size, at least min, or
// nothing.
struct Demanded {
  int at_least = 0;
  bool exactly = false;
};
Demanded DemandedOf(const Snapshot& snapshot, const Job& job, const Guards& guards) {
  Demanded demanded;
  if (job.workers.empty() || job.aside != Aside::kNo || job.curve->IndexOf(job.held()) < 0) return demanded;
  for (const NodeIndex at : job.workers) {
    if (at == kNoNode || snapshot.node(at).state == NodeState::kLost) return demanded;
  }
  if (!job.preemptible) demanded.at_least = job.min;
  if (snapshot.now - job.last_start < guards.min_runtime) demanded.at_least = job.held();
  if (snapshot.now - job.last_change < guards.cooldown) {
    demanded.at_least = job.held();
    demanded.exactly = true;
  }
  return demanded;
}

struct Case {
  Snapshot snapshot;
  Guards guards;
};

// A snapshot that fits its nodes, with recent starts and changes; times on the limits too.
Case RandomCase(const Snapshot& base, Rng& rng) {
  Case made{base, {}};
  static const std::vector<double> kLimits = {0, 60, 60, 300};
  made.guards = {rng.Pick(kLimits), rng.Pick(kLimits)};
  static const std::vector<double> kAges = {0, 10, 59.5, 60, 61, 299, 300, 1e6};
  for (Job& job : made.snapshot.jobs) {
    if (rng.Chance(0.2)) job.preemptible = false;
    if (job.workers.empty()) continue;
    job.last_start = made.snapshot.now - rng.Pick(kAges);
    job.last_change = std::max(job.last_start, made.snapshot.now - rng.Pick(kAges));
  }
  return made;
}

class GuardedPolicies : public ::testing::TestWithParam<const char*> {};

TEST_P(GuardedPolicies, GuardedJobsKeepWhatTheyMust) {
  const auto policy = PolicyNamed(GetParam());
  Check([&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const auto [snapshot, guards] = RandomCase(*ArbitrarySnapshot({.aside_jobs = true}), rng);
    const GuardedPolicy guarded(*policy, guards);
    const Allocation allocation = guarded.Allocate(snapshot);
    RC_ASSERT(Valid(snapshot, allocation));
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Demanded demanded = DemandedOf(snapshot, snapshot.jobs[i], guards);
      RC_ASSERT(allocation.workers[i] >= demanded.at_least);
      if (demanded.exactly) RC_ASSERT(allocation.workers[i] == demanded.at_least);
    }
    RC_ASSERT(allocation.wake_at > snapshot.now);
  });
}

// The whole decision: jobs that give way because they cannot be seated are not the guarded ones, which sit
// already.
TEST_P(GuardedPolicies, GuardedJobsDoNotGiveWay) {
  const auto policy = PolicyNamed(GetParam());
  for (const PlacementMode mode : {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack}) {
    SCOPED_TRACE(Name(mode));
    Check([&] {
      Rng rng(*rc::gen::arbitrary<std::uint64_t>());
      const auto [snapshot, guards] = RandomCase(*ArbitrarySnapshot({.max_jobs = 8, .max_nodes = 4}), rng);
      const GuardedPolicy guarded(*policy, guards);
      const Plan plan = Decide(snapshot, guarded, mode);
      for (const JobIndex i : snapshot.jobs.indices()) {
        const Demanded demanded = DemandedOf(snapshot, snapshot.jobs[i], guards);
        RC_ASSERT(plan.allocation.workers[i] >= demanded.at_least);
        if (demanded.exactly) RC_ASSERT(plan.allocation.workers[i] == demanded.at_least);
      }
    });
  }
}

TEST_P(GuardedPolicies, BrokenObservationsAreStillAnswered) {
  const auto policy = PolicyNamed(GetParam());
  Check([&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const auto [snapshot, guards] =
        RandomCase(*ArbitrarySnapshot({.aside_jobs = true, .broken_observations = true}), rng);
    RC_ASSERT(Valid(snapshot, GuardedPolicy(*policy, guards).Allocate(snapshot)));
  });
}

TEST_P(GuardedPolicies, OffTheyChangeNothing) {
  const auto policy = PolicyNamed(GetParam());
  Check([&] {
    const Snapshot snapshot = *ArbitrarySnapshot({.aside_jobs = true, .broken_observations = true});
    const Allocation bare = policy->Allocate(snapshot);
    const Allocation off = GuardedPolicy(*policy, {}).Allocate(snapshot);
    RC_ASSERT(bare.workers == off.workers);
    RC_ASSERT(bare.order == off.order);
    RC_ASSERT(bare.promoted == off.promoted);
    RC_ASSERT(bare.wake_at == off.wake_at);
    for (const JobIndex i : bare.reasons.indices()) RC_ASSERT(bare.reasons[i].code == off.reasons[i].code);
  });
}

TEST_P(GuardedPolicies, TheOrderOfTheSnapshotDoesNotMatter) {
  const auto policy = PolicyNamed(GetParam());
  Check([&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const auto [snapshot, guards] = RandomCase(*ArbitrarySnapshot(), rng);
    const Snapshot other = Permuted(snapshot, rng);
    const GuardedPolicy guarded(*policy, guards);
    RC_ASSERT(SizesByName(snapshot, guarded.Allocate(snapshot)) ==
              SizesByName(other, guarded.Allocate(other)));
  });
}

INSTANTIATE_TEST_SUITE_P(All, GuardedPolicies,
                         ::testing::Values("FIFO", "ElasticFIFO", "SRJF", "ElasticSRJF", "Tiresias",
                                           "ElasticTiresias", "FfDLOptimizer", "AFS-L", "Price"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace voda
