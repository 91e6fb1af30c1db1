// Decide: the whole decision as one pure function of a snapshot: policy, then placement, then jobs give way
// where an allocation fits in total and cannot be seated on the nodes.
#pragma once

#include "core/state.h"
#include "model/plan.h"
#include "placement/place.h"
#include "policy/policy.h"

namespace voda {

// Everything in the plan's allocation is seated in its placement.
Plan Decide(const Snapshot& snapshot, const Policy& policy, PlacementMode mode);
// The same with the guards against churn of a configuration: what a round decides.
Plan Decide(const Snapshot& snapshot, const Policy& policy, const CoreConfig& config);

}  // namespace voda
