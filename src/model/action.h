// Action: one change that the cluster is asked to carry out for one job. Its outcome comes back as an event.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/event.h"

namespace voda {

enum class ActionKind : std::uint8_t {
  kHalt,    // stop all workers; the job waits
  kShrink,  // stop the highest worker numbers
  kVacate,  // stop the workers whose seats others need first; they come back elsewhere with a kMove
  kStart,   // start a job that holds nothing
  kGrow,    // start further workers, and move others where the plan says so
  kMove,    // same size, some workers on other nodes
};

constexpr std::string_view Name(ActionKind kind) {
  switch (kind) {
    case ActionKind::kHalt:
      return "halt";
    case ActionKind::kShrink:
      return "shrink";
    case ActionKind::kVacate:
      return "vacate";
    case ActionKind::kStart:
      return "start";
    case ActionKind::kGrow:
      return "grow";
    case ActionKind::kMove:
      return "move";
  }
  return "";
}

// Whether an action of this kind only gives GPUs back.
constexpr bool Releases(ActionKind kind) {
  return kind == ActionKind::kHalt || kind == ActionKind::kShrink || kind == ActionKind::kVacate;
}

struct Action {
  ActionId id = 0;
  ActionKind kind = ActionKind::kHalt;
  std::string job;
  std::vector<NodeIndex> workers;  // what the job holds once the action is done; kNoNode: that worker is down
  int moved = 0;                   // workers that come back on another node than before
};

}  // namespace voda
