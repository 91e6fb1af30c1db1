// Seating: the state that both placements work on: who keeps a seat, who still needs one, and what is free.
#pragma once

#include <vector>

#include "model/placement.h"
#include "model/snapshot.h"

namespace voda {

// What is asked of a placement; see Place.
struct SeatingRequest {
  const std::vector<int>& workers;
  const std::vector<JobIndex>& order;
  const std::vector<bool>& anew;
};

class Seating {
 public:
  // Starts with every worker that may keep its seat in it: number below the new size, node not lost, and
  // (with `cordoned_only`) node cordoned. Where a node holds more than it has, jobs late in the order and
  // high worker numbers lose theirs first.
  Seating(const Snapshot& snapshot, const SeatingRequest& request, bool cordoned_only);

  // Nodes in name order: rank <-> index in the snapshot.
  NodeIndex node_of(int rank) const { return by_name_[static_cast<std::size_t>(rank)]; }
  int rank_of(NodeIndex node) const { return rank_[static_cast<std::size_t>(node)]; }

  // Free GPUs by rank; -1 for nodes that take no worker.
  std::vector<int> FreeByRank() const;

  // Workers of the job without a seat.
  int Missing(JobIndex job) const;
  // Seats the lowest-numbered worker of the job that has none.
  void Seat(JobIndex job, NodeIndex node);
  // Seats a given worker.
  void SeatWorker(JobIndex job, int worker, NodeIndex node);

  std::span<const NodeIndex> seats(JobIndex job) const { return placement_.workers(job); }

  // Jobs that miss workers, in the order in which packing should take them: by GPUs missing, largest first,
  // or by width (GPUs per worker) before that; ties by (submit time, name).
  enum class Packing : std::uint8_t { kLargestFirst, kWidestFirst };
  std::vector<JobIndex> ToSeat(Packing packing) const;

  // Call once everyone is seated: fills in migrations and spans.
  Placement Finish() &&;

 private:
  const Snapshot& snapshot_;
  std::vector<NodeIndex> by_name_;
  std::vector<int> rank_;
  std::vector<int> used_;        // GPUs by node
  std::vector<int> next_empty_;  // per job: no worker below this number lacks a seat
  std::vector<int> missing_;     // per job
  Placement placement_;
};

}  // namespace voda
