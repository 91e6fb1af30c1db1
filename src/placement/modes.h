// What the three placements share, and their entry points for place.cc.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "placement/free_nodes.h"
#include "placement/seating.h"

namespace voda {

std::optional<Placement> PlaceStable(const Snapshot& snapshot, const SeatingRequest& request);
std::optional<Placement> PlaceRepacked(const Snapshot& snapshot, const SeatingRequest& request);
std::optional<Placement> PlaceByCost(const Snapshot& snapshot, const SeatingRequest& request);

// Splits `workers` of `width` GPUs over as few free nodes as possible: it takes the fullest node that has
// room for all that is left, else all of the emptiest node. Calls visit(rank, count) for each node; returns
// false when the room runs out.
template <class Visit>
bool FillFewest(FreeNodes& free, int workers, int width, Visit visit) {
  while (workers > 0) {
    NodeRank node = free.BestFit(workers * width);
    if (node == kNoRank) node = free.Emptiest();
    if (node == kNoRank) return false;
    const int seats = std::min(workers, free.free(node) / width);
    if (seats == 0) return false;
    free.Take(node, seats * width);
    visit(node, seats);
    workers -= seats;
  }
  return true;
}

// Seats the workers that a job misses; false when the room runs out.
inline bool SeatOnFewest(const Snapshot& snapshot, Seating& seating, FreeNodes& free, JobIndex job) {
  return FillFewest(free, seating.Missing(job), snapshot.job(job).gpus_per_worker,
                    [&](NodeRank rank, int count) {
                      for (int i = 0; i < count; ++i) seating.Seat(job, seating.node_of(rank));
                    });
}

}  // namespace voda
