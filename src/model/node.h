// Node: a machine with GPUs of one type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/indexed.h"

namespace voda {

// Position of a node in Snapshot::nodes, and a list with one entry for each of them.
using NodeIndex = Index<struct NodeTag>;
inline constexpr NodeIndex kNoNode = -1;
template <class T>
using PerNode = IndexedVector<NodeIndex, T>;

enum class NodeState : std::uint8_t {
  kReady,     // takes workers
  kCordoned,  // keeps the workers it has and takes no new ones
  kLost,      // gone: its workers must be placed anew
};

struct Node {
  std::string name;
  int gpus = 0;
  NodeState state = NodeState::kReady;
  int whole = 0;  // GPUs with those that guards took out; 0: none were

  // Of the machine, whatever of it may be decided about.
  int whole_gpus() const { return whole > 0 ? whole : gpus; }
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
