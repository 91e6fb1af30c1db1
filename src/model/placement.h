// Placement: the node of every worker of every job, and what that moves.
#pragma once

#include <span>
#include <vector>

#include "model/snapshot.h"

namespace voda {

// A worker that keeps its number and changes its node. `from` may be a lost node.
struct Migration {
  JobIndex job = kNoJob;
  int worker = 0;
  NodeIndex from = kNoNode;
  NodeIndex to = kNoNode;
};

// A job that was moved to save time: what that saves it and what the move costs it, in seconds.
struct PaidMove {
  JobIndex job = kNoJob;
  double saves = 0;
  double costs = 0;
  bool repacked = false;  // moved as all jobs were packed anew, which saves time for all jobs together
};

struct Placement {
  std::vector<NodeIndex> seats;  // workers of job 0, then of job 1, …
  PerJob<int> first;             // a job's first entry in seats; one more entry than there are jobs
  std::vector<Migration> migrations;
  std::vector<PaidMove> moves;  // only of a placement that weighs moves
  int jobs_across_nodes = 0;

  std::span<const NodeIndex> workers(JobIndex job) const {
    return {seats.data() + first[job], seats.data() + first[job.next()]};
  }
  std::span<NodeIndex> workers(JobIndex job) {
    return {seats.data() + first[job], seats.data() + first[job.next()]};
  }
};

// Number of different nodes in a list of seats.
int NodesSpanned(std::span<const NodeIndex> seats);

}  // namespace voda
