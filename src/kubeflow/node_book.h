// NodeBook: what the nodes of a cluster offer Voda: their GPUs without those of foreign pods, and whether
// they take workers. Pure; `now` is an argument.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/sink.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

struct NodeRules {
  std::map<std::string, std::string, std::less<>> resources;  // by GPU type; else nvidia.com/gpu
  double not_ready_grace = 60;  // a node that does not answer for this long has lost its workers

  std::string ResourceOf(const std::string& gpu_type) const;
};

class NodeBook {
 public:
  explicit NodeBook(NodeRules rules) : rules_(std::move(rules)) {}

  void Put(const NodeObject& node, double now);
  void Remove(const std::string& node);
  // A foreign pod and its node; a pod that holds nothing any more is removed.
  void PutForeign(const PodObject& pod);
  void RemoveForeign(const std::string& uid);

  // Returns what the schedulers must be told since the last call. `next` gets the time at which something
  // will change by itself.
  std::vector<TypedEvent> Changes(double now, std::optional<double>& next);

  // Whether a node has not answered for so long that its workers are lost. Such a node does not confirm the
  // end of pods, either.
  bool Silent(const std::string& node, double now) const;

 private:
  struct Told {
    std::string gpu_type;
    Node node;
  };
  struct Known {
    NodeObject object;
    // Since when the node has not been ready, by our clock: the clock of the object's writer may differ,
    // and a short absence must not look long. If we find the node so, only the object's time is known.
    double not_ready_since = 0;
  };
  double LostAt(const Known& node) const { return node.not_ready_since + rules_.not_ready_grace; }
  Node Offer(const Known& known, double now, std::optional<double>& next) const;

  NodeRules rules_;
  std::map<std::string, Known> nodes_;
  struct Foreign {
    std::string node;
    std::map<std::string, std::int64_t, std::less<>> requests;
  };
  std::map<std::string, Foreign> foreign_;                            // by uid
  std::map<std::string, std::map<std::string, std::int64_t>> taken_;  // node -> resource -> amount
  std::map<std::string, Told> told_;
};

}  // namespace voda::kubeflow
