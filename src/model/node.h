// Node: a machine with GPUs of one type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace voda {

// Position of a node in Snapshot::nodes.
using NodeIndex = std::int32_t;
inline constexpr NodeIndex kNoNode = -1;

enum class NodeState : std::uint8_t {
  kReady,     // takes workers
  kCordoned,  // keeps the workers it has and takes no new ones
  kLost,      // gone: its workers must be placed anew
};

struct Node {
  std::string name;
  int gpus = 0;
  NodeState state = NodeState::kReady;
};

constexpr std::string_view Name(NodeState state) {
  switch (state) {
    case NodeState::kReady:
      return "ready";
    case NodeState::kCordoned:
      return "cordoned";
    case NodeState::kLost:
      return "lost";
  }
  return "";
}

}  // namespace voda
