// Reduce: the state machine. Takes one event and changes the state accordingly; decides nothing, sends
// nothing.
//
//   Submitted → Waiting ⇄ Running → Completed | Failed | Canceled        (terminal states absorb)
//
// What concerns the plan marks the state dirty: a flag, not a queue, so any burst of events costs one round.
#pragma once

#include "core/state.h"
#include "model/event.h"

namespace voda {

void Reduce(State& state, const Event& event, double now);

}  // namespace voda
