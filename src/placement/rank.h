// NodeRank: position of a node in the order of names. Placements work on ranks, so that what they choose
// among equal nodes does not depend on the order of the snapshot.
#pragma once

#include "base/indexed.h"

namespace voda {

using NodeRank = Index<struct NodeRankTag>;
inline constexpr NodeRank kNoRank = -1;
template <class T>
using PerRank = IndexedVector<NodeRank, T>;

}  // namespace voda
