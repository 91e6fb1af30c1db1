// Stable placement: whoever may keep a seat keeps it. Workers that need one go where their job already is,
// else onto as few nodes as possible, best fit. Wide workers are seated before narrow ones, which would break
// up their room.
#include <algorithm>

#include "placement/free_nodes.h"
#include "placement/modes.h"
#include "placement/seating.h"

namespace voda {

namespace {

// Fills free seats on the nodes where the job has workers already: one node that takes all, else the emptiest
// first.
void SeatAtHome(const Snapshot& snapshot, Seating& seating, FreeNodes& free, JobIndex job) {
  const int width = snapshot.job(job).gpus_per_worker;
  std::vector<NodeRank> homes;
  for (const NodeIndex at : seating.seats(job)) {
    if (at == kNoNode) continue;
    const NodeRank rank = seating.rank_of(at);
    if (free.free(rank) >= width) homes.push_back(rank);
  }
  std::sort(homes.begin(), homes.end());
  homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
  while (!homes.empty() && seating.Missing(job) > 0) {
    const int needed = seating.Missing(job) * width;
    const auto best = std::min_element(homes.begin(), homes.end(), [&](NodeRank a, NodeRank b) {
      const bool a_takes_all = free.free(a) >= needed;
      const bool b_takes_all = free.free(b) >= needed;
      if (a_takes_all != b_takes_all) return a_takes_all;
      if (free.free(a) != free.free(b)) return a_takes_all == (free.free(a) < free.free(b));
      return a < b;
    });
    const int seats = std::min(seating.Missing(job), free.free(*best) / width);
    free.Take(*best, seats * width);
    for (int i = 0; i < seats; ++i) seating.Seat(job, seating.node_of(*best));
    homes.erase(best);
  }
}

}  // namespace

std::optional<Placement> PlaceStable(const Snapshot& snapshot, const SeatingRequest& request) {
  Seating seating(snapshot, request, /*cordoned_only=*/false);
  const std::vector<JobIndex> jobs = seating.ToSeat(Seating::Packing::kWidestFirst);
  if (jobs.empty()) return std::move(seating).Finish();
  FreeNodes free(seating.FreeByRank());
  for (auto begin = jobs.begin(); begin != jobs.end();) {
    const int width = snapshot.job(*begin).gpus_per_worker;
    const auto end =
        std::find_if(begin, jobs.end(), [&](JobIndex i) { return snapshot.job(i).gpus_per_worker != width; });
    for (auto job = begin; job != end; ++job) SeatAtHome(snapshot, seating, free, *job);
    for (auto job = begin; job != end; ++job) {
      if (!SeatOnFewest(snapshot, seating, free, *job)) return std::nullopt;
    }
    begin = end;
  }
  return std::move(seating).Finish();
}

}  // namespace voda
