#include "model/snapshot.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace voda {

namespace {

// GPUs held on each cordoned node; empty when no node is cordoned.
PerNode<std::int64_t> HeldOnCordoned(const Snapshot& snapshot) {
  const bool any = std::any_of(snapshot.nodes.begin(), snapshot.nodes.end(),
                               [](const Node& node) { return node.state == NodeState::kCordoned; });
  if (!any) return {};
  PerNode<std::int64_t> held(snapshot.nodes.size(), 0);
  for (const Job& job : snapshot.jobs) {
    for (const NodeIndex at : job.workers) {
      if (at != kNoNode && snapshot.node(at).state == NodeState::kCordoned) {
        held[at] += job.gpus_per_worker;
      }
    }
  }
  return held;
}

}  // namespace

int Capacity(const Snapshot& snapshot) {
  std::int64_t total = 0;
  for (const Node& node : snapshot.nodes) {
    if (node.state == NodeState::kReady) total += node.gpus;
  }
  const auto held = HeldOnCordoned(snapshot);
  for (const NodeIndex i : held.indices()) total += std::min<std::int64_t>(held[i], snapshot.nodes[i].gpus);
  return static_cast<int>(total);
}

int SeatsWhenEmpty(const Snapshot& snapshot, const Job& job) {
  std::int64_t seats = 0;
  for (const Node& node : snapshot.nodes) {
    if (node.state == NodeState::kReady) seats += node.gpus / job.gpus_per_worker;
  }
  std::vector<NodeIndex> cordoned;
  for (const NodeIndex at : job.workers) {
    if (at != kNoNode && snapshot.node(at).state == NodeState::kCordoned) cordoned.push_back(at);
  }
  std::sort(cordoned.begin(), cordoned.end());
  for (std::size_t i = 0; i < cordoned.size();) {
    const NodeIndex node = cordoned[i];
    std::int64_t here = 0;
    for (; i < cordoned.size() && cordoned[i] == node; ++i) ++here;
    seats +=
        std::min<std::int64_t>(here, snapshot.node(node).gpus / job.gpus_per_worker);  // it may have shrunk
  }
  return static_cast<int>(std::min<std::int64_t>(seats, kMaxWorkers));
}

bool Earlier(const Job& a, const Job& b) {
  if (a.submit_time != b.submit_time) return a.submit_time < b.submit_time;
  return a.name < b.name;
}

}  // namespace voda
