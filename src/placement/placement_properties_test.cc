// What a placement must be, whatever the snapshot: checked on thousands of random snapshots, stable and
// repacked.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "placement/place.h"
#include "support/builders.h"
#include "support/check.h"
#include "support/generators.h"
#include "support/hungarian.h"

namespace voda {
namespace {

using testing::ArbitrarySnapshot;
using testing::Check;
using testing::HungarianMaximum;
using testing::Permuted;
using testing::Rng;
using testing::SnapshotShape;

constexpr SnapshotShape kAnything = {.max_jobs = 12, .max_nodes = 7, .broken_observations = true};

struct Request {
  PerJob<int> workers;
  std::vector<JobIndex> order;
};

// Sizes that fit in total: the size held, another one, or none.
Request RandomRequest(const Snapshot& snapshot, Rng& rng) {
  Request request;
  const auto jobs = snapshot.jobs.indices();
  request.order.assign(jobs.begin(), jobs.end());
  rng.Shuffle(request.order);
  request.workers.assign(snapshot.jobs.size(), 0);
  int free = Capacity(snapshot);
  for (const JobIndex i : request.order) {
    const Job& job = snapshot.job(i);
    int size = rng.Chance(0.5) ? job.held() : job.curve->size(rng.Int(0, job.curve->count() - 1));
    if (rng.Chance(0.1)) size = 0;
    if (job.gpus(size) > free) size = 0;
    request.workers[i] = size;
    free -= job.gpus(size);
  }
  if (rng.Chance(0.2) && !request.order.empty()) request.order.pop_back();
  return request;
}

PerNode<int> HeldBefore(const Snapshot& snapshot) {
  PerNode<int> held(snapshot.nodes.size(), 0);
  for (const Job& job : snapshot.jobs) {
    for (const NodeIndex at : job.workers) {
      if (at != kNoNode) held[at] += job.gpus_per_worker;
    }
  }
  return held;
}

class Placements : public ::testing::TestWithParam<PlacementMode> {
 protected:
  // Calls check(snapshot, request, placement) for random cases in which a seating was found.
  template <class Property>
  void ForPlacements(Property property, SnapshotShape shape = kAnything) {
    Check([&] {
      const Snapshot snapshot = *ArbitrarySnapshot(shape);
      Rng rng(*rc::gen::arbitrary<std::uint64_t>());
      const Request request = RandomRequest(snapshot, rng);
      const auto placement = Place(snapshot, request.workers, request.order, GetParam());
      if (placement) property(snapshot, request, *placement);
    });
  }
};

TEST_P(Placements, EverythingAllocatedIsPlacedAndNoNodeIsOverfilled) {
  ForPlacements([](const Snapshot& snapshot, const Request& request, const Placement& placement) {
    PerNode<int> used(snapshot.nodes.size(), 0);
    RC_ASSERT(placement.first.size() == snapshot.jobs.size() + 1);
    for (const JobIndex i : snapshot.jobs.indices()) {
      RC_ASSERT(static_cast<int>(placement.workers(i).size()) == request.workers[i]);
      for (const NodeIndex at : placement.workers(i)) {
        RC_ASSERT(at > kNoNode && at < snapshot.nodes.end_index());
        used[at] += snapshot.job(i).gpus_per_worker;
      }
    }
    for (const NodeIndex n : used.indices()) RC_ASSERT(used[n] <= snapshot.nodes[n].gpus);
  });
}

TEST_P(Placements, LostNodesHoldNobodyAndCordonedOnesTakeNobodyNew) {
  ForPlacements([](const Snapshot& snapshot, const Request&, const Placement& placement) {
    for (const JobIndex i : snapshot.jobs.indices()) {
      const auto& before = snapshot.job(i).workers;
      const auto seats = placement.workers(i);
      for (std::size_t worker = 0; worker < seats.size(); ++worker) {
        const NodeState state = snapshot.node(seats[worker]).state;
        RC_ASSERT(state != NodeState::kLost);
        if (state == NodeState::kCordoned)
          RC_ASSERT(worker < before.size() && before[worker] == seats[worker]);
      }
    }
  });
}

TEST_P(Placements, CordonedNodesKeepTheWorkersThatStay) {
  ForPlacements([](const Snapshot& snapshot, const Request&, const Placement& placement) {
    const auto held = HeldBefore(snapshot);
    for (const JobIndex i : snapshot.jobs.indices()) {
      const auto& before = snapshot.job(i).workers;
      const auto seats = placement.workers(i);
      for (std::size_t worker = 0; worker < std::min(before.size(), seats.size()); ++worker) {
        const NodeIndex at = before[worker];
        if (at == kNoNode || snapshot.node(at).state != NodeState::kCordoned) continue;
        if (held[at] > snapshot.node(at).gpus) continue;
        RC_ASSERT(seats[worker] == at);
      }
    }
  });
}

TEST_P(Placements, MigrationsAreExactlyTheStayingWorkersThatChangeNode) {
  ForPlacements([](const Snapshot& snapshot, const Request&, const Placement& placement) {
    std::map<std::pair<JobIndex, int>, std::pair<NodeIndex, NodeIndex>> expected, got;
    int across = 0;
    for (const JobIndex i : snapshot.jobs.indices()) {
      const auto& before = snapshot.job(i).workers;
      const auto seats = placement.workers(i);
      for (std::size_t worker = 0; worker < std::min(before.size(), seats.size()); ++worker) {
        // A worker that is down is nowhere: bringing it back moves nobody.
        if (before[worker] != kNoNode && before[worker] != seats[worker]) {
          expected[{i, static_cast<int>(worker)}] = {before[worker], seats[worker]};
        }
      }
      across += std::set<NodeIndex>(seats.begin(), seats.end()).size() > 1 ? 1 : 0;
    }
    for (const Migration& migration : placement.migrations) {
      got[{migration.job, migration.worker}] = {migration.from, migration.to};
    }
    RC_ASSERT(got.size() == placement.migrations.size());
    RC_ASSERT(got == expected);
    RC_ASSERT(placement.jobs_across_nodes == across);
  });
}

TEST_P(Placements, OneGpuPerWorkerWithoutCordonedNodesIsAlwaysSeated) {
  SnapshotShape shape = kAnything;
  shape.one_gpu_per_worker = true;
  shape.cordoned_nodes = false;
  Check([&] {
    const Snapshot snapshot = *ArbitrarySnapshot(shape);
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Request request = RandomRequest(snapshot, rng);
    RC_ASSERT(Place(snapshot, request.workers, request.order, GetParam()).has_value());
  });
}

TEST_P(Placements, TheOrderOfTheSnapshotDoesNotMatter) {
  Check([&] {
    const Snapshot snapshot = *ArbitrarySnapshot(kAnything);
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Request request = RandomRequest(snapshot, rng);
    const Snapshot other = Permuted(snapshot, rng);
    PerJob<JobIndex> there(snapshot.jobs.size());
    Request same;
    same.workers.resize(snapshot.jobs.size());
    for (const JobIndex i : snapshot.jobs.indices()) {
      there[i] = testing::IndexOf(other, snapshot.job(i).name);
      same.workers[there[i]] = request.workers[i];
    }
    for (const JobIndex i : request.order) same.order.push_back(there[i]);
    const auto a = Place(snapshot, request.workers, request.order, GetParam());
    const auto b = Place(other, same.workers, same.order, GetParam());
    RC_ASSERT(a.has_value() == b.has_value());
    if (!a) return;
    for (const JobIndex i : snapshot.jobs.indices()) {
      const auto here = a->workers(i);
      const auto seats = b->workers(there[i]);
      for (std::size_t worker = 0; worker < here.size(); ++worker) {
        RC_ASSERT(snapshot.node(here[worker]).name == other.node(seats[worker]).name);
      }
    }
    RC_ASSERT(a->migrations.size() == b->migrations.size());
  });
}

INSTANTIATE_TEST_SUITE_P(Both, Placements, ::testing::Values(PlacementMode::kStable, PlacementMode::kRepack),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST(Stable, NobodyMovesWhoNeedNot) {
  Check([] {
    const Snapshot snapshot = *ArbitrarySnapshot(kAnything);
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Request request = RandomRequest(snapshot, rng);
    const auto placement = Place(snapshot, request.workers, request.order, PlacementMode::kStable);
    if (!placement) return;
    const auto held = HeldBefore(snapshot);
    for (const Migration& migration : placement->migrations) {
      const Job& job = snapshot.job(migration.job);
      const Node& from = snapshot.node(migration.from);
      const bool must = from.state == NodeState::kLost || held[migration.from] > from.gpus;
      const bool fewer = NodesSpanned(placement->workers(migration.job)) < NodesSpanned(job.workers);
      RC_ASSERT(must || fewer);
    }
  });
}

TEST(Stable, WhatIsPlacedAlreadyStaysAsItIs) {
  Check([] {
    Snapshot snapshot = *ArbitrarySnapshot({.lost_nodes = false});
    Request request;
    for (const Job& job : snapshot.jobs) request.workers.push_back(job.held());
    const auto placement = Place(snapshot, request.workers, request.order, PlacementMode::kStable);
    RC_ASSERT(placement.has_value());
    for (const JobIndex i : snapshot.jobs.indices()) {
      const auto seats = placement->workers(i);
      if (NodesSpanned(seats) < NodesSpanned(snapshot.job(i).workers)) continue;
      RC_ASSERT(std::equal(seats.begin(), seats.end(), snapshot.job(i).workers.begin()));
    }
  });
}

// The packing of repack by its rule: jobs largest first by the GPUs they still need, ties by (submit time,
// name); each goes to the node with the least room that takes all that is left of it, else fills the one with
// most room; among equal nodes the first by name. Where that fails, jobs with wide workers come first.
struct VirtualSeats {
  bool complete = false;
  std::map<std::pair<int, JobIndex>, int> count;  // (node by name, job) -> workers
};

VirtualSeats PackByRule(const Snapshot& snapshot, const std::vector<NodeIndex>& nodes,
                        const PerJob<int>& missing, bool widest_first) {
  std::vector<JobIndex> jobs;
  for (const JobIndex i : snapshot.jobs.indices()) {
    if (missing[i] > 0) jobs.push_back(i);
  }
  std::sort(jobs.begin(), jobs.end(), [&](JobIndex a, JobIndex b) {
    const Job& left = snapshot.job(a);
    const Job& right = snapshot.job(b);
    if (widest_first && left.gpus_per_worker != right.gpus_per_worker)
      return left.gpus_per_worker > right.gpus_per_worker;
    const int l = left.gpus(missing[a]);
    const int r = right.gpus(missing[b]);
    return l != r ? l > r : Earlier(left, right);
  });
  VirtualSeats packed;
  std::vector<int> free;
  for (const NodeIndex n : nodes) free.push_back(snapshot.node(n).gpus);
  for (const JobIndex i : jobs) {
    const int width = snapshot.job(i).gpus_per_worker;
    int left = missing[i];
    while (left > 0) {
      int best = -1;
      for (int n = 0; n < static_cast<int>(free.size()); ++n) {
        const int room = free[n];
        if (room >= left * width && (best < 0 || room < free[best])) best = n;
      }
      if (best < 0) {
        const auto most = std::max_element(free.begin(), free.end());
        if (most == free.end() || *most < width) return packed;
        best = static_cast<int>(most - free.begin());
      }
      const int seats = std::min(left, free[best] / width);
      packed.count[{best, i}] += seats;
      free[best] -= seats * width;
      left -= seats;
    }
  }
  packed.complete = true;
  return packed;
}

TEST(Repack, KeepsAsManyWorkersInPlaceAsThePackingAllows) {
  int tried = 0;
  int found = 0;
  const auto property = [&](const SnapshotShape& shape) {
    ++tried;
    const Snapshot snapshot = *ArbitrarySnapshot(shape);
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Request request = RandomRequest(snapshot, rng);
    const auto placement = Place(snapshot, request.workers, request.order, PlacementMode::kRepack);

    std::vector<NodeIndex> nodes;
    for (const NodeIndex n : snapshot.nodes.indices()) {
      if (snapshot.node(n).state == NodeState::kReady) nodes.push_back(n);
    }
    std::sort(nodes.begin(), nodes.end(),
              [&](NodeIndex a, NodeIndex b) { return snapshot.node(a).name < snapshot.node(b).name; });
    PerJob<int> missing = request.workers;
    if (placement) {
      for (const JobIndex i : snapshot.jobs.indices()) {
        for (const NodeIndex at : placement->workers(i)) {
          if (snapshot.node(at).state == NodeState::kCordoned) --missing[i];
        }
      }
    }
    VirtualSeats packed = PackByRule(snapshot, nodes, missing, false);
    if (!packed.complete) packed = PackByRule(snapshot, nodes, missing, true);
    if (!placement) return;
    RC_ASSERT(packed.complete);
    ++found;

    // Workers that stay, by (node, job).
    std::map<std::pair<NodeIndex, JobIndex>, int> staying;
    int kept = 0;
    for (const JobIndex i : snapshot.jobs.indices()) {
      const auto& before = snapshot.job(i).workers;
      const auto seats = placement->workers(i);
      for (std::size_t worker = 0; worker < std::min(before.size(), seats.size()); ++worker) {
        if (before[worker] == kNoNode || snapshot.node(before[worker]).state != NodeState::kReady) continue;
        ++staying[{before[worker], i}];
        kept += before[worker] == seats[worker] ? 1 : 0;
      }
    }
    std::vector<std::vector<std::int64_t>> overlap(nodes.size(), std::vector<std::int64_t>(nodes.size(), 0));
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      for (std::size_t p = 0; p < nodes.size(); ++p) {
        if (snapshot.node(nodes[v]).gpus != snapshot.node(nodes[p]).gpus) {
          overlap[v][p] = -1'000'000;
          continue;
        }
        for (const auto& [key, count] : packed.count) {
          if (key.first != static_cast<int>(v)) continue;
          const auto there = staying.find({nodes[p], key.second});
          if (there != staying.end()) overlap[v][p] += std::min(count, there->second);
        }
      }
    }
    RC_ASSERT(kept == HungarianMaximum(overlap));
  };
  Check([&] { property(kAnything); });
  Check(
      [&] {
        property({.max_jobs = 30,
                  .max_nodes = 20,
                  .max_gpus_per_node = 4,
                  .one_gpu_per_worker = true,
                  .broken_observations = true});
      },
      1000);
  EXPECT_GT(found, tried / 2);
}

// As few nodes as possible: alone on equal empty nodes, a job spans what its size demands.
TEST(Repack, AJobAloneSpansAsFewNodesAsItsSizeDemands) {
  Check([] {
    const int nodes = *rc::gen::inRange(1, 6);
    const int gpus = *rc::gen::inRange(1, 9);
    const int workers = *rc::gen::inRange(1, nodes * gpus + 1);
    for (const PlacementMode mode : {PlacementMode::kStable, PlacementMode::kRepack}) {
      const Snapshot snapshot = testing::SnapshotBuilder()
                                    .Nodes(nodes, gpus)
                                    .Add(testing::JobBuilder("a").Sizes(1, 1, workers))
                                    .Build();
      const auto placement = Place(snapshot, {workers}, {0}, mode);
      RC_ASSERT(placement.has_value());
      RC_ASSERT(NodesSpanned(placement->workers(0)) == (workers + gpus - 1) / gpus);
    }
  });
}

}  // namespace
}  // namespace voda
