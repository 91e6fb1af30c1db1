// Maximum-weight matching of a sparse bipartite graph with positive integer weights: which virtual node of a
// packing becomes which physical node so that most workers stay where they are. Exact.
//
// Rows may stay unmatched at weight 0, so only positive overlaps are edges; the caller pairs up what is left.
// Row duals start at the row's largest weight and tight edges are taken greedily, which matches nearly every
// row; each row that is left is augmented along a shortest path (Dijkstra over reduced costs), which stays
// within its small component. Ties go to the lower column. O(E) for the start, O(component · log) per
// augmentation.
#pragma once

#include <vector>

namespace voda {

struct OverlapEdge {
  int column = 0;
  int weight = 0;  // > 0
};

struct OverlapGraph {
  int columns = 0;
  std::vector<int> first;          // row -> its first edge; one more entry than there are rows
  std::vector<OverlapEdge> edges;  // ascending columns within a row
  int rows() const { return static_cast<int>(first.size()) - 1; }
};

// The column of each row, -1 where it has none.
std::vector<int> MaxOverlap(const OverlapGraph& graph);

}  // namespace voda
