#include "kubeflow/node_book.h"

#include <algorithm>
#include <limits>

namespace voda::kubeflow {

namespace {

constexpr std::string_view kDefaultResource = "nvidia.com/gpu";

}  // namespace

void NodeBook::Put(const NodeObject& node, double now) {
  const auto [at, added] = nodes_.try_emplace(node.head.name);
  Known& known = at->second;
  if (added) {
    known.not_ready_since = node.not_ready_since;
  } else if (known.object.ready) {
    known.not_ready_since = now;
  }
  known.object = node;
}

bool NodeBook::Silent(const std::string& node, double now) const {
  const auto at = nodes_.find(node);
  return at != nodes_.end() && !at->second.object.ready && now >= LostAt(at->second);
}

void NodeBook::Remove(const std::string& node) {
  nodes_.erase(node);
}

void NodeBook::PutForeign(const PodObject& pod) {
  RemoveForeign(pod.head.uid);
  if (pod.node.empty() || pod.over() || pod.requests.empty()) return;
  for (const auto& [resource, amount] : pod.requests) taken_[pod.node][resource] += amount;
  foreign_[pod.head.uid] = {pod.node, pod.requests};
}

void NodeBook::RemoveForeign(const std::string& uid) {
  const auto at = foreign_.find(uid);
  if (at == foreign_.end()) return;
  for (const auto& [resource, amount] : at->second.requests) taken_[at->second.node][resource] -= amount;
  foreign_.erase(at);
}

std::string NodeRules::ResourceOf(const std::string& gpu_type) const {
  const auto at = resources.find(gpu_type);
  return at == resources.end() ? std::string(kDefaultResource) : at->second;
}

Node NodeBook::Offer(const Known& known, double now, std::optional<double>& next) const {
  const NodeObject& node = known.object;
  const std::string resource = rules_.ResourceOf(node.gpu_type);
  const auto there = node.allocatable.find(resource);
  std::int64_t gpus = there == node.allocatable.end() ? 0 : there->second;
  if (const auto taken = taken_.find(node.head.name); taken != taken_.end()) {
    if (const auto amount = taken->second.find(resource); amount != taken->second.end())
      gpus -= amount->second;
  }
  Node offer;
  offer.name = node.head.name;
  offer.gpus = static_cast<int>(std::clamp<std::int64_t>(gpus, 0, std::numeric_limits<int>::max()));
  offer.state = node.cordoned ? NodeState::kCordoned : NodeState::kReady;
  if (!node.ready) {
    const double lost_at = LostAt(known);
    offer.state = now >= lost_at ? NodeState::kLost : NodeState::kCordoned;
    if (now < lost_at) next = std::min(next.value_or(lost_at), lost_at);
  }
  if (node.leaving || node.deleting) offer.state = NodeState::kLost;
  return offer;
}

std::vector<TypedEvent> NodeBook::Changes(double now, std::optional<double>& next) {
  std::vector<TypedEvent> changes;
  for (auto at = told_.begin(); at != told_.end();) {
    const auto node = nodes_.find(at->first);
    if (node == nodes_.end() || node->second.object.gpu_type != at->second.gpu_type) {
      changes.push_back({at->second.gpu_type, NodeRemoved{at->first}});
      at = told_.erase(at);
    } else {
      ++at;
    }
  }
  for (const auto& [name, known] : nodes_) {
    const NodeObject& node = known.object;
    if (node.gpu_type.empty()) continue;
    const Node offer = Offer(known, now, next);
    const auto [at, added] = told_.try_emplace(name, Told{node.gpu_type, offer});
    if (added) {
      changes.push_back({node.gpu_type, NodeAdded{offer}});
      continue;
    }
    Node& before = at->second.node;
    NodeChanged change{name, std::nullopt, std::nullopt};
    if (before.gpus != offer.gpus) change.gpus = offer.gpus;
    if (before.state != offer.state) change.state = offer.state;
    if (!change.gpus && !change.state) continue;
    before = offer;
    changes.push_back({node.gpu_type, change});
  }
  return changes;
}

}  // namespace voda::kubeflow
