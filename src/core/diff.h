// Diff: the actions that lead from what is OBSERVED to what is desired. Pure.
//
// Level-triggered: it is asked again after every outcome, compares with the cluster and never with the last
// wish, so a failed start is tried again because the job is still not there, and a reached plan gives no
// action at all. GPUs are released before they are given on: an action that takes seats is only returned once
// those seats are free in what is observed and no action in flight leads there. Workers that want each
// other's seats would wait for ever; then, when nothing else moves, one job's vacate their seats first.
#pragma once

#include <vector>

#include "core/state.h"
#include "model/action.h"

namespace voda {

// Without ids. Jobs with an action in flight, or whose next try is later than `now`, are left alone.
std::vector<Action> Diff(const State& state, double now);

}  // namespace voda
