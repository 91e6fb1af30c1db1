#include "placement/max_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>

namespace voda {

namespace {

// Duals keep row[r] + column[c] >= weight(r, c), row[r] >= 0 (a row may stay unmatched), column[c] >= 0, and
// both tight on the matching; a free column has dual 0. That is the certificate of optimality.
class Matcher {
 public:
  explicit Matcher(const OverlapGraph& graph)
      : graph_(graph),
        row_dual_(graph.rows(), 0),
        column_dual_(graph.columns, 0),
        column_of_(graph.rows(), kNoRank),
        row_of_(graph.columns, kNoRow),
        distance_(graph.columns, 0),
        parent_(graph.columns, kNoRow),
        seen_(graph.columns, 0) {}

  PerRow<NodeRank> Run() {
    std::vector<OverlapRow> left;
    for (const OverlapRow row : row_dual_.indices()) {
      if (!TakeTightEdge(row)) left.push_back(row);
    }
    for (const OverlapRow row : left) Augment(row);
    return column_of_;
  }

 private:
  bool TakeTightEdge(OverlapRow row) {
    int largest = 0;
    for (const OverlapEdge& edge : graph_.edges_of(row)) largest = std::max(largest, edge.weight);
    row_dual_[row] = largest;
    if (largest == 0) return true;  // nothing to gain: unmatched is optimal
    for (const OverlapEdge& edge : graph_.edges_of(row)) {
      if (edge.weight != largest || row_of_[edge.column] != kNoRow) continue;
      column_of_[row] = edge.column;
      row_of_[edge.column] = row;
      return true;
    }
    return false;
  }

  void Augment(OverlapRow root) {
    ++round_;
    using Entry = std::pair<std::int64_t, NodeRank>;  // distance, column
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> frontier;
    std::vector<std::pair<OverlapRow, std::int64_t>> rows;  // scanned, with their distance
    std::vector<NodeRank> columns;                          // scanned
    // Best way to end so far: leave `loser` unmatched, or reach a free column.
    std::int64_t best = INT64_MAX;
    OverlapRow loser = kNoRow;
    NodeRank free_column = kNoRank;

    const auto scan = [&](OverlapRow row, std::int64_t distance) {
      rows.emplace_back(row, distance);
      const std::int64_t dual = row_dual_[row];
      if (distance + dual < best) {
        best = distance + dual;
        loser = row;
      }
      for (const auto& [column, weight] : graph_.edges_of(row)) {
        const std::int64_t through = distance + dual + column_dual_[column] - weight;
        if (through >= best) continue;
        if (seen_[column] == round_ && distance_[column] <= through) continue;
        seen_[column] = round_;
        distance_[column] = through;
        parent_[column] = row;
        frontier.emplace(through, column);
      }
    };

    scan(root, 0);
    while (!frontier.empty()) {
      const auto [distance, column] = frontier.top();
      frontier.pop();
      if (distance >= best) break;
      if (distance != distance_[column]) continue;  // stale
      const OverlapRow row = row_of_[column];
      if (row == kNoRow) {
        best = distance;
        free_column = column;
        break;
      }
      columns.push_back(column);
      scan(row, distance);
    }

    for (const auto& [row, distance] : rows) {
      if (distance < best) row_dual_[row] -= best - distance;
    }
    for (const NodeRank column : columns) {
      const std::int64_t distance = distance_[column];
      if (distance < best) column_dual_[column] += best - distance;
    }

    // Flip the path back to the root.
    NodeRank column = free_column;
    if (column == kNoRank) {
      column = column_of_[loser];
      column_of_[loser] = kNoRank;
      if (loser == root) return;
    }
    while (true) {
      const OverlapRow row = parent_[column];
      const NodeRank previous = column_of_[row];
      column_of_[row] = column;
      row_of_[column] = row;
      if (row == root) return;
      column = previous;
    }
  }

  const OverlapGraph& graph_;
  PerRow<std::int64_t> row_dual_;
  PerRank<std::int64_t> column_dual_;
  PerRow<NodeRank> column_of_;
  PerRank<OverlapRow> row_of_;
  PerRank<std::int64_t> distance_;  // valid where seen_ is this round
  PerRank<OverlapRow> parent_;
  PerRank<int> seen_;
  int round_ = 0;
};

}  // namespace

PerRow<NodeRank> MaxOverlap(const OverlapGraph& graph) {
  return Matcher(graph).Run();
}

}  // namespace voda
