// Snapshot: everything a decision may depend on. The same snapshot gives the same plan, whatever the order of
// its jobs and nodes; names are unique within each.
#pragma once

#include "model/job.h"
#include "model/node.h"

namespace voda {

struct Snapshot {
  double now = 0;
  PerNode<Node> nodes;
  PerJob<Job> jobs;

  const Job& job(JobIndex index) const { return jobs[index]; }
  const Node& node(NodeIndex index) const { return nodes[index]; }
};

// GPUs that a plan can use: all of the ready nodes, and on cordoned ones what workers hold there now.
int Capacity(const Snapshot& snapshot);

// How many of the job's workers can be seated when no other job is there: on ready nodes, and where its own
// workers sit on cordoned ones.
int SeatsWhenEmpty(const Snapshot& snapshot, const Job& job);

// (submit time, name): where every tie ends.
bool Earlier(const Job& a, const Job& b);

}  // namespace voda
