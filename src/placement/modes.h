// What the two placements share, and their entry points for place.cc.
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

// Splits `workers` of `width` GPUs over as few free nodes as possible: the fullest node that takes all that
// is left, else all of the emptiest. Calls visit(rank, count) per node; false when the room runs out.
template <class Visit>
bool FillFewest(FreeNodes& free, int workers, int width, Visit visit) {
  while (workers > 0) {
    int node = free.BestFit(workers * width);
    if (node == FreeNodes::kNone) node = free.Emptiest();
    if (node == FreeNodes::kNone) return false;
    const int seats = std::min(workers, free.free(node) / width);
    if (seats == 0) return false;
    free.Take(node, seats * width);
    visit(node, seats);
    workers -= seats;
  }
  return true;
}

// Seats what a job misses.
inline bool SeatOnFewest(const Snapshot& snapshot, Seating& seating, FreeNodes& free, JobIndex job) {
  return FillFewest(free, seating.Missing(job), snapshot.job(job).gpus_per_worker, [&](int rank, int count) {
    for (int i = 0; i < count; ++i) seating.Seat(job, seating.node_of(rank));
  });
}

}  // namespace voda
