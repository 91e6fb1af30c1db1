#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "placement/place.h"
#include "support/builders.h"

namespace voda {
namespace {

using testing::JobBuilder;
using testing::SnapshotBuilder;

// A job with a worker on each of two nodes, each beside a worker of another job; `others` jobs run elsewhere.
// To bring the first together saves it a twentieth of its 1000 s and costs two migrations of 10 s.
Snapshot SpreadJobAmong(int others) {
  SnapshotBuilder builder;
  builder.Nodes(2 + others, 2);
  builder.Add(JobBuilder("spread").Sizes(2, 2, 2).Remaining(2000).Costs(10, 10, 10).On({"n0", "n1"}));
  builder.Add(JobBuilder("x").Remaining(1000).Costs(10, 10, 10).On({"n0"}));
  builder.Add(JobBuilder("y").Remaining(1000).Costs(10, 10, 10).On({"n1"}));
  for (int i = 0; i < others; ++i) {
    const std::string node = "n" + std::to_string(2 + i);
    builder.Add(JobBuilder("other-" + std::to_string(i)).Sizes(2, 2, 2).Costs(10, 10, 10).On({node, node}));
  }
  Snapshot snapshot = builder.Build();
  snapshot.jobs[0].measured = std::make_shared<std::vector<int>>();
  return snapshot;
}

Placement PlaceAsHeld(const Snapshot& snapshot) {
  PerJob<int> workers;
  std::vector<JobIndex> order;
  for (const JobIndex i : snapshot.jobs.indices()) {
    workers.push_back(snapshot.job(i).held());
    order.push_back(i);
  }
  return *Place(snapshot, workers, order, PlacementMode::kCost);
}

TEST(Cost, ASpreadJobIsBroughtTogetherWhereThatSavesMoreThanItCosts) {
  const Snapshot snapshot = SpreadJobAmong(20);
  const Placement placement = PlaceAsHeld(snapshot);
  EXPECT_EQ(NodesSpanned(placement.workers(0)), 1);
  EXPECT_EQ(placement.migrations.size(), 2U);
}

TEST(Cost, WithManyRunningJobsASmallGainIsNotWorthAPacking) {
  const Snapshot snapshot = SpreadJobAmong(300);
  EXPECT_TRUE(PlaceAsHeld(snapshot).migrations.empty());
}

}  // namespace
}  // namespace voda
