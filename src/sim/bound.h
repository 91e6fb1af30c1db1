// Bound: what no schedule of a workload can beat, in average completion time and in makespan.
//
// The bound holds over all schedules of the simulator's model (sim_cluster.h): any allowed sizes at any time,
// preemption at will, any placement, no rate limit, the future known. Priorities, guards and fragmentation
// only take schedules away.
//
// What every schedule of one job pays. Let m be the shortest stall there is: the least of start, rescale and
// migration, since a change during a stall restarts it, with its own length. Before a job first progresses at
// a size it holds that size for a whole stall. So a job of work W either
//   progresses at one size n only: it holds n for at least m + W / s(n) seconds; or
//   progresses at several: it has two such stalls, at two different sizes. Let e be the concave envelope of
//     (0, 0) and all (GPUs, speed-up). A stall on g GPUs is e(g) of imaginary work a second. So it does at
//     least W + m e(smallest) + m e(second smallest) of work on the envelope; and it takes at least
//     2 m + W / (highest speed-up) seconds.
// Both are relaxations: an interruption costs nothing, and speed-ups are the best that was measured for a
// size on any number of nodes.
//
// Average JCT: the Lagrangian dual of the capacity K. Let p(t) >= 0 be a price for a GPU-second. In a
// schedule at most K GPUs are held, so the sum over jobs of (JCT + rent) - K * integral of p <= the sum of
// JCTs. Each job's own (JCT + rent) is at least its minimum over the two kinds above. So for EVERY p
//   sum over jobs of min (JCT + rent) - K * integral of p  <=  total JCT of every schedule.
// p is constant on each slot of a grid and 0 after it, and a job's minimum is exact for such a p: slots need
// not match arrivals or ends, and nothing is rounded to the grid. Prices are sought by a subgradient method;
// however badly it goes the bound holds, and p = 0, every job alone, is where it starts.
//
// Makespan: to end by T, each job rents at least its cheapest way to do so at price 0 before t0 and 1
// after; if these rents add up to more than K * (T - t0), not every job can end by T. The bound is the
// largest such T over many t0.
//
// Cost: in each iteration, over jobs and their sizes, the slots that a job is present in, times their
// logarithm. 24 jobs take 0.3 s, 160 jobs 0.5 s, 80,000 jobs 8 s. The result is deterministic.
#pragma once

#include <vector>

#include "sim/sim_cluster.h"
#include "sim/simulation.h"
#include "sim/workload.h"

namespace voda::sim {

struct LowerBound {
  double avg_jct_s = 0;   // over the jobs counted
  double makespan_s = 0;  // last end minus first submission
  int jobs = 0;           // jobs whose minimum fits; a run that completes others is not comparable
};

inline constexpr int kBoundIterations = 200;

// `gpus` is the size of the cluster, at its largest if nodes come and go.
LowerBound ComputeLowerBound(const Workload& workload, int gpus, const ChangeCosts& costs,
                             int iterations = kBoundIterations);

int MostGpus(const std::vector<Node>& nodes, const std::vector<NodeChange>& changes);

}  // namespace voda::sim
