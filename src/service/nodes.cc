#include "service/nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/log.h"
#include "document/json_writer.h"

namespace voda {

namespace {

constexpr int kNodesMax = 10'000;
constexpr int kNodeGpusMax = 1024;
constexpr std::size_t kTypeNameMax = 63;

bool ValidName(const std::string& name) {
  if (name.empty() || name.size() > 253) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           (c >= 'A' && c <= 'Z');
  });
}

std::optional<Refusal> Check(const DeclaredNode& node) {
  if (!ValidName(node.name)) return Invalid("name: give 1 to 253 letters, digits, '-', '.' or '_'");
  if (node.gpus < 1 || node.gpus > kNodeGpusMax)
    return Invalid(fmt::format("gpus: {} is not from 1 to {}", node.gpus, kNodeGpusMax));
  if (!ValidName(node.gpu_type) || node.gpu_type.size() > kTypeNameMax)
    return Invalid("gpu_type: give at most 63 letters, digits, '-', '.' or '_'");
  return std::nullopt;
}

Refusal NoNode(const std::string& name) {
  return NotFound(fmt::format("no node is named \"{:.80}\"", name));
}

NodeRecord RecordOf(const DeclaredNode& node, NodeState state) {
  return {node.name, node.gpu_type, std::string(ShownName(state)), node.gpus};
}

// The state of a node that a flag declares.
std::string StateSetting(const std::string& node) {
  return "node/" + node;
}

}  // namespace

std::string_view ShownName(NodeState state) {
  return state == NodeState::kLost ? "draining" : Name(state);
}

NodeState ParseShown(std::string_view name) {
  for (const NodeState state : {NodeState::kCordoned, NodeState::kLost}) {
    if (name == ShownName(state)) return state;
  }
  return NodeState::kReady;
}

bool AboutNode(const Event& event) {
  return std::holds_alternative<NodeAdded>(event) || std::holds_alternative<NodeChanged>(event) ||
         std::holds_alternative<NodeRemoved>(event);
}

Status Nodes::Restore(const LedgerContents& contents, const std::vector<TypedEvent>& reported, double now) {
  for (const DeclaredNode& node : config_.nodes) {
    NodeEntry entry{node, NodeState::kReady, false};
    if (const auto state = contents.settings.find(StateSetting(node.name)); state != contents.settings.end())
      entry.state = ParseShown(state->second);
    nodes_.emplace(node.name, std::move(entry));
  }
  for (const NodeRecord& node : contents.nodes) {
    nodes_.emplace(node.name,
                   NodeEntry{{node.name, node.gpus, node.gpu_type, {}}, ParseShown(node.state), true});
  }
  for (const auto& [name, node] : nodes_) {
    const auto pool = pools_.For(node.declared.gpu_type);
    if (!pool) return pool.error();
    Tell(**pool, node, true, now);
  }
  for (const TypedEvent& event : reported) Reported(event, now);
  restored_ = true;
  return Ok{};
}

void Nodes::Reported(const TypedEvent& event, double now) {
  Follow(event.gpu_type, event.event);
  if (Pool* pool = pools_.Find(event.gpu_type)) events_.Handle(*pool, event.event, now);
}

std::optional<Refusal> Nodes::RefuseElsewhere(const char* instead) const {
  if (!config_.reports_nodes) return std::nullopt;
  return Conflict(fmt::format("nodes are those of the Kubernetes cluster: {}", instead));
}

void Nodes::Add(const DeclaredNode& node, Done done) {
  if (const auto refusal = RefuseElsewhere("label a node with vodascheduler/accelerator=TYPE to add it"))
    return done(refusal);
  if (const auto refusal = Check(node)) return done(refusal);
  if (const auto adding = adding_.find(node.name); adding != adding_.end()) {
    adding->second.push_back([this, node, done = std::move(done)] { Add(node, done); });
    return;
  }
  if (nodes_.contains(node.name)) return done(Conflict("node " + node.name + " exists"));
  if (nodes_.size() + adding_.size() >= kNodesMax)
    return done(Invalid(fmt::format("at most {} nodes", kNodesMax)));
  adding_[node.name];
  ledger_.PutNode(RecordOf(node, NodeState::kReady),
                  [this, node, done = std::move(done)](const std::optional<Refusal>& failed) {
                    const auto waiting = std::move(adding_.extract(node.name).mapped());
                    if (failed) {
                      done(failed);
                    } else if (const auto pool = pools_.For(node.gpu_type); !pool) {
                      done(Unavailable(pool.error().message));
                    } else {
                      NodeEntry& entry = nodes_[node.name];
                      entry = {node, NodeState::kReady, true};
                      Tell(**pool, entry, true, SteadyWallNow());
                      done(std::nullopt);
                    }
                    for (const auto& again : waiting) again();
                  });
}

void Nodes::Remove(const std::string& name, Done done) {
  if (const auto refusal = RefuseElsewhere("take the label vodascheduler/accelerator away from the node"))
    return done(refusal);
  if (const auto removing = removing_.find(name); removing != removing_.end()) {
    removing->second.push_back([this, name, done = std::move(done)] { Remove(name, done); });
    return;
  }
  if (!nodes_.contains(name)) return done(NoNode(name));
  removing_[name];
  ledger_.RemoveNode(name, [this, name, done = std::move(done)](const std::optional<Refusal>& failed) {
    const auto waiting = std::move(removing_.extract(name).mapped());
    if (const auto node = nodes_.find(name); !failed && node != nodes_.end()) {
      Pool& pool = pools_.At(node->second.declared.gpu_type);
      nodes_.erase(node);
      events_.Handle(pool, NodeRemoved{name}, SteadyWallNow());
      Publish("node.removed", pool.gpu_type, name);
    }
    done(failed);
    for (const auto& again : waiting) again();
  });
}

void Nodes::SetState(const std::string& name, NodeState state, Done done) {
  if (const auto refusal = RefuseElsewhere("use kubectl cordon, uncordon or drain")) return done(refusal);
  if (const auto removing = removing_.find(name); removing != removing_.end()) {
    removing->second.push_back([this, name, state, done = std::move(done)] { SetState(name, state, done); });
    return;
  }
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return done(NoNode(name));
  const auto kept = [this, name, state, done = std::move(done)](const std::optional<Refusal>& failed) {
    const auto entry = nodes_.find(name);
    if (!failed && entry != nodes_.end() && entry->second.state != state) {
      entry->second.state = state;
      Tell(pools_.At(entry->second.declared.gpu_type), entry->second, false, SteadyWallNow());
    }
    done(failed);
  };
  at->second.kept ? ledger_.PutNode(RecordOf(at->second.declared, state), kept)
                  : ledger_.Set({{StateSetting(name), std::string(ShownName(state))}}, kept);
}

void Nodes::Tell(Pool& pool, const NodeEntry& node, bool added, double now) {
  const std::string& name = node.declared.name;
  if (added) {
    cluster_.AddNode(name, node.declared.devices);
    events_.Handle(pool, NodeAdded{{name, node.declared.gpus, node.state}}, now);
  } else {
    events_.Handle(pool, NodeChanged{name, std::nullopt, node.state}, now);
  }
  Publish(added ? "node.added" : "node.changed", pool.gpu_type, name);
}

void Nodes::Publish(const char* type, const std::string& gpu_type, const std::string& name) {
  JsonWriter fields;
  fields.Field("node", name);
  if (const auto node = nodes_.find(name); node != nodes_.end())
    fields.Field("gpus", node->second.declared.gpus).Field("state", ShownName(node->second.state));
  announcer_.Publish(type, gpu_type, {}, fields.Take());
}

void Nodes::Follow(const std::string& gpu_type, const Event& event) {
  const auto has_type = [&](const auto& node) { return node.second.declared.gpu_type == gpu_type; };
  if (const auto* added = std::get_if<NodeAdded>(&event)) {
    if (const auto pool = pools_.For(gpu_type); !pool)
      return Log(LogLevel::kError, "no scheduler", {{"gpu_type", gpu_type}, {"why", pool.error().message}});
    const bool first = restored_ && std::none_of(nodes_.begin(), nodes_.end(), has_type);
    nodes_[added->node.name] = {{added->node.name, added->node.gpus, gpu_type, {}}, added->node.state, false};
    Publish("node.added", gpu_type, added->node.name);
    if (first) ledger_.LookAgain();
  } else if (const auto* changed = std::get_if<NodeChanged>(&event)) {
    NodeEntry& node = nodes_[changed->node];
    if (changed->gpus) node.declared.gpus = *changed->gpus;
    if (changed->state) node.state = *changed->state;
    Publish("node.changed", gpu_type, changed->node);
  } else if (const auto* removed = std::get_if<NodeRemoved>(&event)) {
    const auto node = nodes_.find(removed->node);
    if (node != nodes_.end() && has_type(*node)) nodes_.erase(node);
    Publish("node.removed", gpu_type, removed->node);
  }
}

std::set<std::string> Nodes::Types() const {
  std::set<std::string> types;
  for (const auto& [name, node] : nodes_) types.insert(node.declared.gpu_type);
  return types;
}

std::string Nodes::OfDevice(int device) const {
  for (const auto& [name, node] : nodes_) {
    const auto& devices = node.declared.devices;
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) return name;
  }
  return {};
}

}  // namespace voda
