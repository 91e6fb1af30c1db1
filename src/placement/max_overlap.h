// Maximum-weight matching of a sparse bipartite graph with positive integer weights: which virtual node of a
// packing becomes which physical node so that most workers stay where they are. Exact.
//
// Rows may stay unmatched at weight 0, so only positive overlaps are edges; the caller pairs up what is left.
// Row duals start at the row's largest weight and tight edges are taken greedily, which matches nearly every
// row; each row that is left is augmented along a shortest path (Dijkstra over reduced costs), which stays
// within its small component. Ties go to the lower column. O(E) for the start, O(component · log) per
// augmentation.
#pragma once

#include <span>
#include <vector>

#include "placement/rank.h"

namespace voda {

// A row is a virtual node and a column is a physical one.
using OverlapRow = Index<struct OverlapRowTag>;
inline constexpr OverlapRow kNoRow = -1;
template <class T>
using PerRow = IndexedVector<OverlapRow, T>;

struct OverlapEdge {
  NodeRank column = kNoRank;
  int weight = 0;  // > 0
};

struct OverlapGraph {
  std::size_t columns = 0;
  PerRow<int> first;               // a row's first edge; one more entry than there are rows
  std::vector<OverlapEdge> edges;  // ascending columns within a row

  std::size_t rows() const { return first.size() - 1; }
  std::span<const OverlapEdge> edges_of(OverlapRow row) const {
    return {edges.data() + first[row], edges.data() + first[row.next()]};
  }
};

// The column of each row, kNoRank where it has none.
PerRow<NodeRank> MaxOverlap(const OverlapGraph& graph);

}  // namespace voda
