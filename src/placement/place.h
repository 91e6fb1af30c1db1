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
  kStable,  // nobody moves who need not; new workers go where their job is, else onto as few nodes as
            // possible
  kCost,    // stable, except where the time that a move saves exceeds what it costs
  kRepack,  // pack all jobs anew, largest first, then bind the packing to the nodes that keep most workers in
            // place
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

// Seats `workers[i]` workers of every job i. `order` lists jobs by how much they deserve their seats, best
// first (jobs not in it come last). Nothing if no seating was found; with one GPU per worker, no cordoned
// node and a sum within capacity there always is one. The jobs marked in `anew` (empty: none) are seated as
// if they held nothing.
std::optional<Placement> Place(const Snapshot& snapshot, const std::vector<int>& workers,
                               const std::vector<JobIndex>& order, PlacementMode mode,
                               const std::vector<bool>& anew = {});

}  // namespace voda
