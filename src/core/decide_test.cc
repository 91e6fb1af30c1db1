#include "core/decide.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
using testing::ReasonOf;
using testing::Rng;
using testing::Sizes;
using testing::SizesByName;
using testing::SnapshotBuilder;

constexpr PlacementMode kModes[] = {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack};

// What of a plan is wrong; empty when nothing is.
std::string Broken(const Snapshot& snapshot, const Plan& plan) {
  if (!Valid(snapshot, plan.allocation)) return "allocation not valid";
  PerNode<int> used(snapshot.nodes.size(), 0);
  for (const JobIndex i : snapshot.jobs.indices()) {
    const Job& job = snapshot.job(i);
    const auto seats = plan.placement.workers(i);
    if (static_cast<int>(seats.size()) != plan.allocation.workers[i]) {
      return job.name + " is not placed as allocated";
    }
    for (std::size_t worker = 0; worker < seats.size(); ++worker) {
      if (seats[worker] == kNoNode) return job.name + " has a worker without a node";
      const NodeState state = snapshot.node(seats[worker]).state;
      if (state == NodeState::kLost) return job.name + " sits on a lost node";
      const bool stays = worker < job.workers.size() && job.workers[worker] == seats[worker];
      if (state == NodeState::kCordoned && !stays) return job.name + " is new on a cordoned node";
      used[seats[worker]] += job.gpus_per_worker;
    }
  }
  for (const NodeIndex n : used.indices()) {
    if (used[n] > snapshot.nodes[n].gpus) return snapshot.nodes[n].name + " is over-filled";
  }
  return "";
}

Plan DecideBy(const std::string& policy, const Snapshot& snapshot, PlacementMode mode) {
  return Decide(snapshot, *PolicyNamed(policy), mode);
}

// Three jobs of 2-GPU workers fit 2 × 3 GPUs in total; only two can be seated.
TEST(Decide, TheLastJobOfTheOrderGivesWay) {
  for (const PlacementMode mode : kModes) {
    const Snapshot snapshot = SnapshotBuilder()
                                  .Nodes(2, 3)
                                  .Add(JobBuilder("a").GpusPerWorker(2).Submit(2))
                                  .Add(JobBuilder("b").GpusPerWorker(2).Submit(1))
                                  .Add(JobBuilder("c").GpusPerWorker(2).Submit(0))
                                  .Build();
    for (const char* policy : {"FIFO", "ElasticFIFO", "Tiresias", "ElasticTiresias"}) {
      const Plan plan = DecideBy(policy, snapshot, mode);
      EXPECT_EQ(Broken(snapshot, plan), "");
      EXPECT_EQ(SizesByName(snapshot, plan.allocation), (Sizes{{"a", 0}, {"b", 1}, {"c", 1}})) << policy;
      EXPECT_EQ(ReasonOf(snapshot, plan.allocation, "a").code, ReasonCode::kGaveWay) << policy;
      EXPECT_EQ(ReasonOf(snapshot, plan.allocation, "a").needs, 2);
      EXPECT_NE(ReasonOf(snapshot, plan.allocation, "b").code, ReasonCode::kGaveWay) << policy;
    }
  }
}

TEST(Decide, ThePolicysOwnOrderDecidesWhoGivesWay) {
  for (const PlacementMode mode : kModes) {
    const Snapshot snapshot = SnapshotBuilder()
                                  .Nodes(2, 3)
                                  .Add(JobBuilder("a").GpusPerWorker(2).Submit(0).Remaining(300))
                                  .Add(JobBuilder("b").GpusPerWorker(2).Submit(1).Remaining(200))
                                  .Add(JobBuilder("c").GpusPerWorker(2).Submit(2).Remaining(100))
                                  .Build();
    EXPECT_EQ(SizesByName(snapshot, DecideBy("SRJF", snapshot, mode).allocation),
              (Sizes{{"a", 0}, {"b", 1}, {"c", 1}}));
    EXPECT_EQ(SizesByName(snapshot, DecideBy("FIFO", snapshot, mode).allocation),
              (Sizes{{"a", 1}, {"b", 1}, {"c", 0}}));
  }
}

TEST(Decide, AJobGivesWayToTheLargestSizeThatCanBeSeated) {
  for (const PlacementMode mode : kModes) {
    // a: 4 GPUs of the 9; b wants four 2-GPU workers... 3 × 3 GPUs seat one of them per node.
    const Snapshot snapshot = SnapshotBuilder()
                                  .Nodes(3, 3)
                                  .Add(JobBuilder("a").Sizes(1, 1, 1))
                                  .Add(JobBuilder("b").Sizes(1, 4, 4).GpusPerWorker(2).Submit(1))
                                  .Build();
    const Plan plan = DecideBy("FIFO", snapshot, mode);
    EXPECT_EQ(Broken(snapshot, plan), "");
    EXPECT_EQ(SizesByName(snapshot, plan.allocation), (Sizes{{"a", 1}, {"b", 3}}));
    EXPECT_EQ(ReasonOf(snapshot, plan.allocation, "b").code, ReasonCode::kGaveWay);
  }
}

TEST(Decide, SizesThatAreNotAllowedAreSkippedOnTheWayDown) {
  for (const PlacementMode mode : kModes) {
    const Snapshot snapshot =
        SnapshotBuilder()
            .Nodes(3, 3)
            .Add(JobBuilder("b").Allowed({1, 2, 4}).Sizes(1, 4, 4).Allowed({1, 2, 4}).GpusPerWorker(2))
            .Build();
    const Plan plan = DecideBy("FIFO", snapshot, mode);
    EXPECT_EQ(Broken(snapshot, plan), "");
    EXPECT_EQ(SizesByName(snapshot, plan.allocation), (Sizes{{"b", 2}}));
  }
}

TEST(Decide, WhatIsFreedIsOfferedToJobsThatWait) {
  for (const PlacementMode mode : kModes) {
    const Snapshot snapshot = SnapshotBuilder()
                                  .Nodes(2, 3)
                                  .Add(JobBuilder("a").GpusPerWorker(2))
                                  .Add(JobBuilder("b").GpusPerWorker(2).Submit(1))
                                  .Add(JobBuilder("c").GpusPerWorker(2).Submit(2))
                                  .Add(JobBuilder("d").Submit(3))
                                  .Add(JobBuilder("e").Submit(4))
                                  .Add(JobBuilder("f").Submit(5))
                                  .Build();
    const Plan plan = DecideBy("FIFO", snapshot, mode);
    EXPECT_EQ(Broken(snapshot, plan), "");
    EXPECT_EQ(SizesByName(snapshot, plan.allocation),
              (Sizes{{"a", 1}, {"b", 1}, {"c", 0}, {"d", 1}, {"e", 1}, {"f", 0}}));
    EXPECT_EQ(ReasonOf(snapshot, plan.allocation, "d").code, ReasonCode::kSeatedLate);
    EXPECT_EQ(ReasonOf(snapshot, plan.allocation, "f").code, ReasonCode::kWaits);
  }
}

// What is freed is offered again in the policy's order: an elastic policy does not leave GPUs idle that a job
// can use.
TEST(Decide, WhatIsFreedIsOfferedToJobsThatCanGrow) {
  for (const PlacementMode mode : kModes) {
    const Snapshot snapshot = SnapshotBuilder()
                                  .Nodes(2, 3)
                                  .Add(JobBuilder("a").GpusPerWorker(2))
                                  .Add(JobBuilder("b").GpusPerWorker(2).Submit(1))
                                  .Add(JobBuilder("c").GpusPerWorker(2).Submit(2))
                                  .Add(JobBuilder("d").Sizes(1, 1, 4).Submit(3))
                                  .Build();
    const Plan plan = DecideBy("ElasticFIFO", snapshot, mode);
    EXPECT_EQ(Broken(snapshot, plan), "");
    EXPECT_EQ(SizesByName(snapshot, plan.allocation), (Sizes{{"a", 1}, {"b", 1}, {"c", 0}, {"d", 2}}))
        << Name(mode);
  }
}

TEST(Decide, CordonedGpusGoToNobodyElse) {
  for (const PlacementMode mode : kModes) {
    // b's two GPUs count while it runs there; when it is to make room for a, they cannot be a's.
    const Snapshot snapshot = SnapshotBuilder()
                                  .Node("n0", 2)
                                  .Node("n1", 2, NodeState::kCordoned)
                                  .Add(JobBuilder("a").Sizes(2, 2, 4))
                                  .Add(JobBuilder("b").Sizes(1, 1, 2).Submit(1).On({"n1", "n1"}))
                                  .Build();
    const Plan plan = DecideBy("ElasticFIFO", snapshot, mode);
    EXPECT_EQ(Broken(snapshot, plan), "");
    EXPECT_EQ(SizesByName(snapshot, plan.allocation).at("a"), 2);
    EXPECT_GE(SizesByName(snapshot, plan.allocation).at("b"), 1);
  }
}

TEST(Decide, OneGpuPerWorkerOnCordonedNodesGivesWayToo) {
  for (const PlacementMode mode : kModes) {
    // In total a's 3 fit (2 ready + 1 cordoned); a can only have the two.
    const Snapshot snapshot = SnapshotBuilder()
                                  .Node("n0", 2)
                                  .Node("n1", 1, NodeState::kCordoned)
                                  .Add(JobBuilder("a").Sizes(1, 1, 3))
                                  .Add(JobBuilder("b").Submit(1).Priority(-1).On({"n1"}))
                                  .Build();
    const Plan plan = DecideBy("FIFO", snapshot, mode);
    EXPECT_EQ(Broken(snapshot, plan), "");
    EXPECT_EQ(SizesByName(snapshot, plan.allocation), (Sizes{{"a", 1}, {"b", 1}}));
    const Plan elastic = DecideBy("ElasticFIFO", snapshot, mode);
    EXPECT_EQ(Broken(snapshot, elastic), "");
    EXPECT_EQ(SizesByName(snapshot, elastic.allocation), (Sizes{{"a", 2}, {"b", 1}}));
  }
}

TEST(Decide, AnAllocationThatIsSeatableIsThePolicysOwn) {
  for (const PlacementMode mode : kModes) {
    const Snapshot snapshot = SnapshotBuilder()
                                  .Nodes(2, 4)
                                  .Add(JobBuilder("a").Sizes(1, 2, 8))
                                  .Add(JobBuilder("b").Sizes(1, 2, 8))
                                  .Build();
    const Plan plan = DecideBy("ElasticFIFO", snapshot, mode);
    EXPECT_EQ(plan.allocation.workers, PolicyNamed("ElasticFIFO")->Allocate(snapshot).workers);
  }
}

// An allocation that is what runs already is seatable: nobody gives way. (repack may not find it by itself.)
TEST(Decide, WhatSitsAlreadyIsNotMadeToGiveWay) {
  for (const PlacementMode mode : kModes) {
    Check([&] {
      const Snapshot snapshot = *ArbitrarySnapshot({.max_jobs = 8, .max_nodes = 4, .unseatable_jobs = false});
      // A policy that leaves everything as it is.
      struct Keep final : Policy {
        Allocation Allocate(const Snapshot& now) const override {
          Allocation answer;
          for (const JobIndex i : now.jobs.indices()) {
            const auto& workers = now.jobs[i].workers;
            const bool whole = std::none_of(workers.begin(), workers.end(), [&](NodeIndex at) {
              return now.node(at).state == NodeState::kLost;
            });
            answer.workers.push_back(whole ? now.jobs[i].held() : 0);
            answer.reasons.emplace_back();
            answer.order.push_back(i);
          }
          return answer;
        }
      };
      const Keep keep;
      const Allocation before = keep.Allocate(snapshot);
      const Plan plan = Decide(snapshot, keep, mode);
      for (const JobIndex i : snapshot.jobs.indices()) {
        RC_ASSERT(plan.allocation.workers[i] >= before.workers[i]);
      }
    });
  }
}

// The world once a plan has been carried out.
Snapshot Reached(Snapshot snapshot, const Plan& plan) {
  for (const JobIndex i : snapshot.jobs.indices()) {
    const auto seats = plan.placement.workers(i);
    snapshot.jobs[i].workers.assign(seats.begin(), seats.end());
  }
  return snapshot;
}

// No event follows when a plan is reached: what it leaves idle stays idle.
TEST(Decide, APlanThatStopsARunningJobLeavesItNoRoom) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("o0", 7)
                                .Node("n1", 5)
                                .Add(JobBuilder("y").GpusPerWorker(2).Submit(1).On({"n1"}))
                                .Add(JobBuilder("q").Sizes(1, 1, 2).GpusPerWorker(4))
                                .Build();
  for (const PlacementMode mode : kModes) {
    const Plan plan = DecideBy("ElasticFIFO", snapshot, mode);
    const Snapshot reached = Reached(snapshot, plan);
    EXPECT_EQ(SizesByName(snapshot, plan.allocation),
              SizesByName(reached, DecideBy("ElasticFIFO", reached, mode).allocation))
        << Name(mode);
  }
}

TEST(Decide, APlanThatIsReachedIsKept) {
  for (const PlacementMode mode : kModes) {
    for (const char* name : {"FIFO", "ElasticFIFO", "SRJF", "ElasticSRJF", "FfDLOptimizer", "AFS-L"}) {
      const auto policy = PolicyNamed(name);
      Check([&] {
        const Snapshot snapshot = *ArbitrarySnapshot(
            {.one_gpu_per_worker = true, .cordoned_nodes = false, .broken_observations = true});
        const Plan plan = Decide(snapshot, *policy, mode);
        const Snapshot reached = Reached(snapshot, plan);
        const Plan again = Decide(reached, *policy, mode);
        RC_ASSERT(again.allocation.workers == plan.allocation.workers);
        RC_ASSERT(again.placement.seats == plan.placement.seats);
        RC_ASSERT(again.placement.migrations.empty());
      });
    }
  }
}

class DecideAll : public ::testing::TestWithParam<const char*> {};

TEST_P(DecideAll, EverythingReportedIsPlaced) {
  const auto policy = PolicyNamed(GetParam());
  for (const PlacementMode mode : kModes) {
    Check([&] {
      const Snapshot snapshot = *ArbitrarySnapshot({.aside_jobs = true, .broken_observations = true});
      const Allocation wanted = policy->Allocate(snapshot);
      const Plan plan = Decide(snapshot, *policy, mode);
      RC_ASSERT(Broken(snapshot, plan) == "");
      for (const JobIndex i : snapshot.jobs.indices()) {
        const ReasonCode code = plan.allocation.reasons[i].code;
        RC_ASSERT((code == ReasonCode::kGaveWay) == (plan.allocation.workers[i] < wanted.workers[i]));
        RC_ASSERT((code == ReasonCode::kSeatedLate) == (plan.allocation.workers[i] > wanted.workers[i]));
      }
    });
  }
}

TEST_P(DecideAll, TheOrderOfTheSnapshotDoesNotMatter) {
  const auto policy = PolicyNamed(GetParam());
  for (const PlacementMode mode : kModes) {
    Check([&] {
      const Snapshot snapshot = *ArbitrarySnapshot({.broken_observations = true});
      Rng rng(*rc::gen::arbitrary<std::uint64_t>());
      const Snapshot other = Permuted(snapshot, rng);
      const Plan a = Decide(snapshot, *policy, mode);
      const Plan b = Decide(other, *policy, mode);
      RC_ASSERT(SizesByName(snapshot, a.allocation) == SizesByName(other, b.allocation));
      for (const JobIndex i : snapshot.jobs.indices()) {
        const JobIndex j = testing::IndexOf(other, snapshot.job(i).name);
        const auto here = a.placement.workers(i);
        const auto there = b.placement.workers(j);
        RC_ASSERT(here.size() == there.size());
        for (std::size_t worker = 0; worker < here.size(); ++worker) {
          RC_ASSERT(snapshot.node(here[worker]).name == other.node(there[worker]).name);
        }
        RC_ASSERT(a.allocation.reasons[i].code == b.allocation.reasons[j].code);
      }
    });
  }
}

// A job that waited and still waits could not have been seated beside what was placed. (One that ran may have
// to stop although there is room elsewhere: stable does not move it.)
TEST_P(DecideAll, AWaitingMinimumDoesNotFitIntoWhatIsFree) {
  const auto policy = PolicyNamed(GetParam());
  const bool num = std::string(GetParam()) == "FIFO" || std::string(GetParam()) == "SRJF" ||
                   std::string(GetParam()) == "Tiresias";
  for (const PlacementMode mode : kModes) {
    Check([&] {
      const Snapshot snapshot = *ArbitrarySnapshot({.cordoned_nodes = false});
      const Plan plan = Decide(snapshot, *policy, mode);
      PerNode<int> free;
      for (const Node& node : snapshot.nodes) free.push_back(node.state == NodeState::kReady ? node.gpus : 0);
      for (const JobIndex i : snapshot.jobs.indices()) {
        for (const NodeIndex at : plan.placement.workers(i)) {
          free[at] -= snapshot.job(i).gpus_per_worker;
        }
      }
      for (const JobIndex i : snapshot.jobs.indices()) {
        if (plan.allocation.workers[i] > 0 || !snapshot.jobs[i].workers.empty()) continue;
        const Job& job = snapshot.jobs[i];
        int seats = 0;
        for (const int gpus : free) seats += gpus / job.gpus_per_worker;
        RC_ASSERT((num ? job.num : job.min) > seats);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, DecideAll,
                         ::testing::Values("FIFO", "ElasticFIFO", "SRJF", "ElasticSRJF", "Tiresias",
                                           "ElasticTiresias", "FfDLOptimizer", "AFS-L", "Price"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace voda
