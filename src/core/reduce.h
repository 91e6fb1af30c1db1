// Reduce: the state machine. Takes one event and changes the state accordingly; decides nothing, sends
// nothing.
//
//   Submitted → Waiting ⇄ Running → Completed | Failed | Canceled        (terminal states absorb)
//
// A job that ends leaves the state, so an event that comes too late is one about a job that is not known, and
// changes nothing. Who may use its name again is for whoever keeps the record of jobs to say.
//
// What concerns the plan marks the state dirty: a flag, not a queue, so any burst of events costs one round.
#pragma once

#include <vector>

#include "core/state.h"
#include "model/event.h"

namespace voda {

// Returns the jobs that ended by the event.
std::vector<EndedJob> Reduce(State& state, const Event& event, double now);

}  // namespace voda
