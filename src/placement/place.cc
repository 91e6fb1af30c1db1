#include "placement/place.h"

#include "placement/modes.h"

namespace voda {

std::optional<PlacementMode> ParsePlacementMode(std::string_view name) {
  for (const PlacementMode mode : {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack}) {
    if (Name(mode) == name) return mode;
  }
  return std::nullopt;
}

std::optional<Placement> Place(const Snapshot& snapshot, const PerJob<int>& workers,
                               const std::vector<JobIndex>& order, PlacementMode mode,
                               const PerJob<bool>& anew) {
  const SeatingRequest request{.workers = workers, .order = order, .anew = anew};
  switch (mode) {
    case PlacementMode::kStable:
      return PlaceStable(snapshot, request);
    case PlacementMode::kCost:
      return PlaceByCost(snapshot, request);
    case PlacementMode::kRepack:
      return PlaceRepacked(snapshot, request);
  }
  return std::nullopt;
}

}  // namespace voda
