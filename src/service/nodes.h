// Nodes: the nodes as users see them. Some are declared by flags, users add others through the API; where the
// cluster reports its nodes (ServiceConfig::reports_nodes), users declare none.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/job_cluster.h"
#include "ledger/ledger.h"
#include "service/announcer.h"
#include "service/config.h"
#include "service/job_events.h"
#include "service/pools.h"

namespace voda {

// A node as users see it; one that is being drained is lost to its scheduler.
struct NodeEntry {
  DeclaredNode declared;
  NodeState state = NodeState::kReady;
  bool kept = false;  // in the ledger: added through the API
};

// "ready", "cordoned", "draining"
std::string_view ShownName(NodeState state);
NodeState ParseShown(std::string_view name);

// Whether a cluster tells of a node by this event.
bool AboutNode(const Event& event);

class Nodes {
 public:
  using Done = Ledger::Done;

  // Everything given outlives it.
  Nodes(const ServiceConfig& config, Pools& pools, JobEvents& events, Ledger& ledger, JobCluster& cluster,
        Announcer& announcer)
      : config_(config),
        pools_(pools),
        events_(events),
        ledger_(ledger),
        cluster_(cluster),
        announcer_(announcer) {}

  // Those of the flags, those of the ledger, and those that the cluster reports.
  Status Restore(const LedgerContents& contents, const std::vector<TypedEvent>& reported, double now);

  void Add(const DeclaredNode& node, Done done);
  void Remove(const std::string& name, Done done);
  void SetState(const std::string& name, NodeState state, Done done);

  // What the cluster reports of a node.
  void Reported(const TypedEvent& event, double now);

  const std::map<std::string, NodeEntry>& all() const { return nodes_; }
  std::set<std::string> Types() const;     // that some node has
  std::string OfDevice(int device) const;  // empty: of none

 private:
  std::optional<Refusal> RefuseElsewhere(const char* instead) const;
  void Follow(const std::string& gpu_type, const Event& event);
  void Tell(Pool& pool, const NodeEntry& node, bool added, double now);
  void Publish(const char* type, const std::string& gpu_type, const std::string& name);

  const ServiceConfig& config_;
  Pools& pools_;
  JobEvents& events_;
  Ledger& ledger_;
  JobCluster& cluster_;
  Announcer& announcer_;
  std::map<std::string, NodeEntry> nodes_;
  bool restored_ = false;
  // Not durable yet, with those who wait for the outcome.
  std::map<std::string, std::vector<std::function<void()>>> adding_, removing_;
};

}  // namespace voda
