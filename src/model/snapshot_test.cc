#include "model/snapshot.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/allocation.h"
#include "support/builders.h"
#include "support/check.h"
#include "support/generators.h"
#include "support/oracles.h"

namespace voda::testing {
namespace {

TEST(Capacity, CountsReadyNodesAndWhatIsHeldOnCordonedOnes) {
  SnapshotBuilder builder;
  builder.Node("ready", 4).Node("cordoned", 8, NodeState::kCordoned).Node("lost", 16, NodeState::kLost);
  EXPECT_EQ(Capacity(builder.Build()), 4);
  builder.Add(JobBuilder("a").Sizes(1, 1, 4).On({"ready", "cordoned", "cordoned", "lost"}));
  EXPECT_EQ(Capacity(builder.Build()), 6);
  builder.Add(JobBuilder("b").Sizes(1, 1, 4).GpusPerWorker(2).On({"cordoned", "down"}));
  EXPECT_EQ(Capacity(builder.Build()), 8);
  EXPECT_EQ(Capacity(Snapshot{}), 0);
}

// An observation that breaks the rules does not make GPUs that are not there.
TEST(Capacity, ANodeDoesNotHoldMoreThanItHas) {
  EXPECT_EQ(Capacity(SnapshotBuilder()
                         .Node("cordoned", 2, NodeState::kCordoned)
                         .Add(JobBuilder("a").Sizes(1, 1, 4).On({"cordoned", "cordoned", "cordoned"}))
                         .Build()),
            2);
}

TEST(SeatsWhenEmpty, CountsWholeWorkersOnEachNode) {
  SnapshotBuilder builder;
  builder.Node("a", 3).Node("b", 5).Node("c", 1).Node("lost", 8, NodeState::kLost);
  const Snapshot snapshot = builder.Build();
  EXPECT_EQ(SeatsWhenEmpty(snapshot, JobBuilder("j").Build()), 9);
  EXPECT_EQ(SeatsWhenEmpty(snapshot, JobBuilder("j").GpusPerWorker(2).Build()), 3);
  EXPECT_EQ(SeatsWhenEmpty(snapshot, JobBuilder("j").GpusPerWorker(4).Build()), 1);
  EXPECT_EQ(SeatsWhenEmpty(snapshot, JobBuilder("j").GpusPerWorker(6).Build()), 0);
}

TEST(SeatsWhenEmpty, OnCordonedNodesOnlyItsOwnSeats) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("ready", 2)
                                .Node("cordoned", 8, NodeState::kCordoned)
                                .Add(JobBuilder("there").Sizes(1, 1, 8).On({"cordoned", "cordoned", "ready"}))
                                .Add(JobBuilder("new").Sizes(1, 1, 8))
                                .Build();
  EXPECT_EQ(SeatsWhenEmpty(snapshot, snapshot.job(0)), 4);
  EXPECT_EQ(SeatsWhenEmpty(snapshot, snapshot.job(1)), 2);
}

// Three workers observed on a cordoned node of two GPUs: only two of them can stay.
TEST(SeatsWhenEmpty, ACordonedNodeSeatsNoMoreThanItHas) {
  const Snapshot snapshot =
      SnapshotBuilder()
          .Node("cordoned", 2, NodeState::kCordoned)
          .Add(JobBuilder("a").Sizes(3, 3, 4).On({"cordoned", "cordoned", "cordoned"}))
          .Add(JobBuilder("b").Sizes(1, 1, 4).GpusPerWorker(2).On({"cordoned", "cordoned"}))
          .Build();
  EXPECT_EQ(SeatsWhenEmpty(snapshot, snapshot.job(0)), 2);
  EXPECT_EQ(SeatsWhenEmpty(snapshot, snapshot.job(1)), 1);
}

TEST(SnapshotProperties, EqualTheOracles) {
  Check([] {
    const Snapshot snapshot = *ArbitrarySnapshot();
    RC_ASSERT(Capacity(snapshot) == OracleCapacity(snapshot));
    for (const Job& job : snapshot.jobs) {
      RC_ASSERT((SeatsWhenEmpty(snapshot, job) >= job.min) == OracleSeatable(snapshot, job));
    }
  });
}

TEST(SnapshotProperties, EqualTheOraclesWhateverIsObserved) {
  Check([] {
    const Snapshot snapshot = *ArbitrarySnapshot({.broken_observations = true});
    RC_ASSERT(Capacity(snapshot) == OracleCapacity(snapshot));
    for (const Job& job : snapshot.jobs) {
      RC_ASSERT((SeatsWhenEmpty(snapshot, job) >= job.min) == OracleSeatable(snapshot, job));
    }
  });
}

TEST(Earlier, BySubmitTimeThenName) {
  const Job a = JobBuilder("a").Submit(2).Build();
  const Job b = JobBuilder("b").Submit(2).Build();
  const Job c = JobBuilder("c").Submit(1).Build();
  EXPECT_TRUE(Earlier(a, b));
  EXPECT_FALSE(Earlier(b, a));
  EXPECT_TRUE(Earlier(c, a));
  EXPECT_FALSE(Earlier(a, a));
}

TEST(Valid, SaysWhatAnAllocationMayBe) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Nodes(1, 4)
                                .Add(JobBuilder("a").Allowed({1, 2, 4}))
                                .Add(JobBuilder("b").Sizes(1, 1, 2).GpusPerWorker(2))
                                .Build();
  const auto valid = [&](PerJob<int> workers) {
    Allocation allocation;
    allocation.workers = std::move(workers);
    allocation.reasons.resize(allocation.workers.size());
    return Valid(snapshot, allocation);
  };
  EXPECT_TRUE(valid({0, 0}));
  EXPECT_TRUE(valid({2, 1}));
  EXPECT_TRUE(valid({4, 0}));
  EXPECT_TRUE(valid({0, 2}));
  EXPECT_FALSE(valid({3, 0}));  // not an allowed size
  EXPECT_FALSE(valid({-1, 0}));
  EXPECT_FALSE(valid({4, 1}));  // more than there is
  EXPECT_FALSE(valid({0, 3}));
  EXPECT_FALSE(valid({0}));  // not every job
}

}  // namespace
}  // namespace voda::testing
