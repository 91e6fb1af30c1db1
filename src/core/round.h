// Round: one rescheduling. Everything Voda decides, it decides here.
#pragma once

#include <string>
#include <vector>

#include "core/state.h"
#include "model/plan.h"
#include "policy/policy.h"

namespace voda {

// Whether a round is wanted and the rate limit allows it.
bool RoundDue(const State& state, double now);

// The events since the latest round: "job a arrived, node n0 changed and 3 more".
std::string TriggerText(const State& state);

// The next time at which something must be done without a further event: a round that the rate limit delays,
// a wake, a retry, or the deadline of an action. kNever when nothing is pending.
double NextWake(const State& state, double now);

// The decision for the state as it is, with actions in flight counted as done. Leaves the state as it was.
Plan DecideNow(State& state, const Policy& policy);

// Snapshot, policy, placement; the plan becomes what is desired, and changed jobs remember why.
// Returns the plan; its indices are those of state.world.
Plan RunRound(State& state, const Policy& policy, double now);

// The actions to send now, marked as in flight.
std::vector<Action> Dispatch(State& state, double now);

}  // namespace voda
