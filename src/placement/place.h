// Placement: which worker sits on which node. Pure; knows nothing of how sizes were decided.
//
// Worker numbers are identities: of a job that shrinks the highest numbers go, and a worker that stays keeps
// its number. A cordoned node keeps the workers it has and takes none; workers of a lost node are placed
// anew, which is a migration from that node. A node that holds more than it has (it shrank) is mended: jobs
// late in the order give up seats first.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/placement.h"
#include "model/snapshot.h"

namespace voda {

enum class PlacementMode : std::uint8_t {
  // Only those move who must. New workers go where their job is, else onto as few nodes as possible.
  kStable,
  // As kStable, except where the time that a move saves exceeds what it costs.
  kCost,
  // All jobs are packed anew, largest first; the packing is then bound to the nodes so that most workers
  // stay.
  kRepack,
};

constexpr std::string_view Name(PlacementMode mode) {
  switch (mode) {
    case PlacementMode::kStable:
      return "stable";
    case PlacementMode::kCost:
      return "cost";
    case PlacementMode::kRepack:
      return "repack";
  }
  return "";
}
std::optional<PlacementMode> ParsePlacementMode(std::string_view name);

// Seats so many workers of every job. `order` lists jobs by how much they deserve their seats, best first;
// jobs that are not in it come last. The jobs marked in `anew` (empty: none) are seated as if they held
// nothing. Returns nothing if no seating was found; with one GPU per worker, no cordoned node and a sum
// within the capacity there always is one.
std::optional<Placement> Place(const Snapshot& snapshot, const PerJob<int>& workers,
                               const std::vector<JobIndex>& order, PlacementMode mode,
                               const PerJob<bool>& anew = {});

}  // namespace voda
