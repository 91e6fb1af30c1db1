// Port: what the core needs from the outside. Adapters implement it; the core knows no adapter. The clock is
// not a port: `now` is an argument of everything that depends on it, wall time live and virtual time
// simulated.
#pragma once

#include "model/action.h"
#include "model/node.h"

namespace voda {

// Carries actions out: Kubernetes, this machine's processes, or the simulator.
class Cluster {
 public:
  virtual ~Cluster() = default;
  // Must not call back. Positions of nodes hold during the call only. The outcome comes as ActionDone,
  // ActionFailed or ActionTimedOut with the action's id; carrying an action out twice must equal carrying it
  // out once.
  virtual void Execute(const Action& action, const PerNode<Node>& nodes) = 0;
};

}  // namespace voda
