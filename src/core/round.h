// Round: one rescheduling. Everything Voda decides, it decides here:
//
//   BeginRound, then Decide on state.world, then FinishRound
//
// A decision only reads, so it may be made at once or, where the policy is slow, elsewhere on a View.
#pragma once

#include <vector>

#include "core/state.h"
#include "core/view.h"
#include "model/plan.h"
#include "policy/policy.h"

namespace voda {

// Whether a round is wanted, none is under way and the rate limit allows it.
bool RoundDue(const State& state, double now);

// The next time at which something must be done without a further event: a round that the rate limit delays,
// a wake, a retry, or the deadline of an action. kNever when nothing is pending.
double NextWake(const State& state, double now);

// Brings all times up to now. What happens from here on is for the next round.
void BeginRound(State& state, double now);

// The plan becomes what is desired, and changed jobs remember why. It was decided on state.world, to which
// nothing has happened since the round began.
void FinishRound(State& state, const Plan& plan, double now);

// The same for a plan that was decided on a view of this round while events came. A job that changed since
// then keeps the seats it was to have before, and another round follows. False: the round is not under way
// any more, and the plan is dropped.
bool FinishRound(State& state, const View& view, const Plan& plan, double now);

// The round under way is given up: its plan will be dropped, and another round follows.
void AbandonRound(State& state);

// All of it at once. Returns the plan; its indices are those of state.world.
Plan RunRound(State& state, const Policy& policy, double now);

// The actions to send now, marked as in flight.
std::vector<Action> Dispatch(State& state, double now);

}  // namespace voda
