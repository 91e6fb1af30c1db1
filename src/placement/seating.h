// Seating: the state that all placements work on: who keeps a seat, who still needs one, and what is free.
#pragma once

#include <vector>

#include "model/placement.h"
#include "model/snapshot.h"
#include "placement/rank.h"

namespace voda {

// What is asked of a placement; see Place.
struct SeatingRequest {
  const PerJob<int>& workers;
  const std::vector<JobIndex>& order;
  const PerJob<bool>& anew;
};

class Seating {
 public:
  // Starts with every worker in its seat that may keep it: its number is below the new size, its node is not
  // lost, and (with `cordoned_only`) its node is cordoned. Where a node holds more than it has, jobs late in
  // the order and high worker numbers lose their seats first.
  Seating(const Snapshot& snapshot, const SeatingRequest& request, bool cordoned_only);

  NodeIndex node_of(NodeRank rank) const { return by_name_[rank]; }
  NodeRank rank_of(NodeIndex node) const { return rank_[node]; }

  // Free GPUs of each node; -1 for nodes that take no worker.
  PerRank<int> FreeByRank() const;

  // Workers of the job without a seat.
  int Missing(JobIndex job) const;
  // Seats the lowest-numbered worker of the job that has none.
  void Seat(JobIndex job, NodeIndex node);
  // Seats a given worker.
  void SeatWorker(JobIndex job, int worker, NodeIndex node);

  std::span<const NodeIndex> seats(JobIndex job) const { return placement_.workers(job); }

  // Jobs that miss workers, in the order in which a packing should take them: those that miss most GPUs come
  // first, or before that those of the greatest width (GPUs per worker); ties end at (submit time, name).
  enum class Packing : std::uint8_t { kLargestFirst, kWidestFirst };
  std::vector<JobIndex> ToSeat(Packing packing) const;

  // The placement, with its migrations. To be called once every worker has a seat.
  Placement Finish() &&;

 private:
  const Snapshot& snapshot_;
  PerRank<NodeIndex> by_name_;
  PerNode<NodeRank> rank_;
  PerNode<int> used_;       // GPUs
  PerJob<int> next_empty_;  // no worker below this number lacks a seat
  PerJob<int> missing_;     // workers without a seat
  Placement placement_;
};

}  // namespace voda
