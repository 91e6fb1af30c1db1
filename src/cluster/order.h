// Order: an action with names instead of indices, as a cluster carries it out. Indices mean something only on
// the engine's thread, at the moment of the action.
#pragma once

#include <string>
#include <vector>

#include "model/action.h"
#include "model/node.h"

namespace voda {

struct Order {
  ActionId id = 0;
  ActionKind kind = ActionKind::kHalt;
  std::string job;
  std::string gpu_type;            // of the scheduler that gave the order
  std::vector<std::string> seats;  // the node of each worker after the order; "" for a worker that is down
};

inline Order MakeOrder(const Action& action, const PerNode<Node>& nodes, const std::string& gpu_type) {
  Order order{.id = action.id, .kind = action.kind, .job = action.job, .gpu_type = gpu_type, .seats = {}};
  for (const NodeIndex at : action.workers)
    order.seats.push_back(at == kNoNode ? std::string() : nodes[at].name);
  return order;
}

}  // namespace voda
