// The defects of the reference (the Go research prototype of Voda that the first design followed) in its
// placement, each as a test of what is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "placement/place.h"
#include "support/builders.h"

namespace voda {
namespace {

using testing::JobBuilder;
using testing::SnapshotBuilder;

constexpr PlacementMode kModes[] = {PlacementMode::kStable, PlacementMode::kRepack};

Placement Placed(const Snapshot& snapshot, const PerJob<int>& workers, PlacementMode mode) {
  std::vector<JobIndex> order;
  for (const JobIndex i : snapshot.jobs.indices()) order.push_back(i);
  auto placement = Place(snapshot, workers, order, mode);
  EXPECT_TRUE(placement.has_value());
  return placement ? *placement : Placement{};
}

std::map<std::string, int> UsedByNode(const Snapshot& snapshot, const Placement& placement) {
  std::map<std::string, int> used;
  for (const JobIndex i : snapshot.jobs.indices()) {
    for (const NodeIndex at : placement.workers(i))
      used[snapshot.node(at).name] += snapshot.job(i).gpus_per_worker;
  }
  return used;
}

// Jobs of the given sizes on equal nodes: all placed, nothing over-filled.
void ExpectFits(int nodes, int gpus, const PerJob<int>& sizes) {
  SnapshotBuilder builder;
  builder.Nodes(nodes, gpus);
  for (const JobIndex i : sizes.indices())
    builder.Add(JobBuilder("j" + std::to_string(static_cast<int>(i))).Sizes(1, 1, sizes[i]));
  const Snapshot snapshot = builder.Build();
  for (const PlacementMode mode : kModes) {
    const Placement placement = Placed(snapshot, sizes, mode);
    for (const JobIndex i : sizes.indices()) EXPECT_EQ(std::ssize(placement.workers(i)), sizes[i]);
    for (const auto& [node, used] : UsedByNode(snapshot, placement)) EXPECT_LE(used, gpus) << node;
  }
}

TEST(PlacementDefects, P1TheRestOfASplitJobIsNotPlacedTwice) {
  ExpectFits(3, 4, {3, 3, 3, 3});
}

TEST(PlacementDefects, P2NoPlacementRunsForEver) {
  ExpectFits(3, 4, {6, 5});
  ExpectFits(2, 4, {5, 3});
}

TEST(PlacementDefects, P3NoJobIsLeftOut) {
  ExpectFits(3, 4, {3, 3, 3, 2, 1});
}

TEST(PlacementDefects, P4NoJobsAndNoNodesAreFine) {
  for (const PlacementMode mode : kModes) {
    const Snapshot empty;
    EXPECT_TRUE(Place(empty, {}, {}, mode));
    const Snapshot jobs = SnapshotBuilder().Add(JobBuilder("a")).Build();
    EXPECT_TRUE(Place(jobs, {0}, {0}, mode));
    EXPECT_FALSE(Place(jobs, {1}, {0}, mode));
  }
}

TEST(PlacementDefects, P5APlanForALargeNodeStaysOnALargeNode) {
  // The job of eight sat on the small nodes; its packing needs the large one.
  const Snapshot snapshot =
      SnapshotBuilder()
          .Node("big", 8)
          .Node("s0", 4)
          .Node("s1", 4)
          .Add(JobBuilder("a").Sizes(1, 8, 8).On({"s0", "s0", "s0", "s0", "s1", "s1", "s1", "s1"}))
          .Add(JobBuilder("b").Sizes(1, 4, 4).On({"big", "big", "big", "big"}))
          .Build();
  for (const PlacementMode mode : kModes) {
    const Placement placement = Placed(snapshot, {8, 4}, mode);
    const auto used = UsedByNode(snapshot, placement);
    for (const auto& [node, gpus] : used) EXPECT_LE(gpus, node == "big" ? 8 : 4);
  }
  EXPECT_EQ(NodesSpanned(Placed(snapshot, {8, 4}, PlacementMode::kRepack).workers(0)), 1);
}

TEST(PlacementDefects, P6AJobShrinksAfterItsNodeWasLost) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("n0", 4, NodeState::kLost)
                                .Node("n1", 4)
                                .Add(JobBuilder("a").Sizes(1, 4, 8).On({"n0", "n0", "n0", "n0", "n1", "n1"}))
                                .Build();
  for (const PlacementMode mode : kModes) {
    for (const int size : {1, 2, 4}) {
      const Placement placement = Placed(snapshot, {size}, mode);
      for (const NodeIndex at : placement.workers(0)) EXPECT_EQ(at, NodeIndex(1));
      EXPECT_EQ(static_cast<int>(placement.migrations.size()), size);
      for (const Migration& migration : placement.migrations) {
        EXPECT_EQ(migration.from, NodeIndex(0));
        EXPECT_EQ(migration.to, NodeIndex(1));
      }
    }
  }
}

TEST(PlacementDefects, P7LostWorkersArePlacedAnewThoughNoSizeChanged) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("n0", 4, NodeState::kLost)
                                .Node("n1", 4)
                                .Node("n2", 4)
                                .Add(JobBuilder("a").Sizes(1, 2, 4).On({"n0", "n1"}))
                                .Add(JobBuilder("b").Sizes(1, 2, 4).On({"n2", "n2"}))
                                .Build();
  for (const PlacementMode mode : kModes) {
    const Placement placement = Placed(snapshot, {2, 2}, mode);
    EXPECT_EQ(NodesSpanned(placement.workers(0)), 1) << Name(mode);
    ASSERT_FALSE(placement.migrations.empty());
    EXPECT_EQ(placement.migrations[0].worker, 0);
    EXPECT_EQ(placement.migrations[0].from, NodeIndex(0));
    EXPECT_NE(placement.migrations[0].to, NodeIndex(0));
    if (mode == PlacementMode::kStable) {
      EXPECT_EQ(placement.workers(0)[0], NodeIndex(1));
      EXPECT_EQ(placement.migrations.size(), 1u);
    }
  }
}

TEST(PlacementDefects, P9NoGratuitousMigrations) {
  // Jobs over several nodes: the same sizes again move nobody, whichever way the nodes are listed.
  for (const PlacementMode mode : kModes) {
    const PerJob<int> sizes = {6, 6, 2};
    Snapshot snapshot = SnapshotBuilder()
                            .Nodes(4, 4)
                            .Add(JobBuilder("a").Sizes(1, 6, 8))
                            .Add(JobBuilder("b").Sizes(1, 6, 8))
                            .Add(JobBuilder("c").Sizes(1, 2, 2))
                            .Build();
    const Placement placement = Placed(snapshot, sizes, mode);
    for (const JobIndex i : snapshot.jobs.indices()) {
      const auto seats = placement.workers(i);
      snapshot.jobs[i].workers.assign(seats.begin(), seats.end());
    }
    EXPECT_TRUE(Placed(snapshot, sizes, mode).migrations.empty()) << Name(mode);
    std::reverse(snapshot.nodes.begin(), snapshot.nodes.end());
    for (Job& job : snapshot.jobs) {
      for (NodeIndex& at : job.workers) at = NodeIndex(3 - static_cast<int>(at));
    }
    EXPECT_TRUE(Placed(snapshot, sizes, mode).migrations.empty()) << Name(mode);
  }
}

TEST(PlacementDefects, P10StableWeighsWhatAMoveCosts) {
  // A hole opens; repack would close it, stable leaves everybody where they are.
  const Snapshot snapshot = SnapshotBuilder()
                                .Nodes(3, 4)
                                .Add(JobBuilder("a").Sizes(1, 3, 4).On({"n0", "n0", "n0"}))
                                .Add(JobBuilder("b").Sizes(1, 3, 4).On({"n1", "n1", "n1"}))
                                .Add(JobBuilder("c").Sizes(1, 1, 4).On({"n2"}))
                                .Build();
  EXPECT_TRUE(Placed(snapshot, {3, 3, 1}, PlacementMode::kStable).migrations.empty());
  const Placement grown = Placed(snapshot, {4, 3, 1}, PlacementMode::kStable);
  EXPECT_TRUE(grown.migrations.empty());
  EXPECT_EQ(grown.workers(0)[3], NodeIndex(0));  // where the job is already
}

TEST(Stable, NewWorkersGoWhereTheJobIsElseOntoAsFewNodesAsPossible) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("n0", 4)
                                .Node("n1", 2)
                                .Node("n2", 4)
                                .Node("n3", 3)
                                .Add(JobBuilder("a").Sizes(1, 4, 8).On({"n0", "n0"}))
                                .Build();
  // Two at home, then best fit: three more fit n3 exactly.
  const Placement placement = Placed(snapshot, {7}, PlacementMode::kStable);
  const auto used = UsedByNode(snapshot, placement);
  EXPECT_EQ(used, (std::map<std::string, int>{{"n0", 4}, {"n3", 3}}));
}

TEST(Stable, AnOverfullNodeIsMendedByTheJobThatDeservesItLeast) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("n0", 2)  // had 4
                                .Node("n1", 4)
                                .Add(JobBuilder("late").Sizes(1, 2, 2).On({"n0", "n0"}))
                                .Add(JobBuilder("first").Sizes(1, 2, 2).On({"n0", "n0"}))
                                .Build();
  const auto placement = Place(snapshot, {2, 2}, {1, 0}, PlacementMode::kStable);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->workers(1)[0], NodeIndex(0));
  EXPECT_EQ(placement->workers(1)[1], NodeIndex(0));
  EXPECT_EQ(placement->workers(0)[0], NodeIndex(1));
  EXPECT_EQ(placement->workers(0)[1], NodeIndex(1));
}

}  // namespace
}  // namespace voda
