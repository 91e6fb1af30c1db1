#include "placement/max_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>

namespace voda {

namespace {

constexpr int kNone = -1;

// Duals keep row[r] + column[c] >= weight(r, c), row[r] >= 0 (a row may stay unmatched), column[c] >= 0, and
// both tight on the matching; a free column has dual 0. That is the certificate of optimality.
class Matcher {
 public:
  explicit Matcher(const OverlapGraph& graph)
      : graph_(graph),
        row_dual_(static_cast<std::size_t>(graph.rows()), 0),
        column_dual_(static_cast<std::size_t>(graph.columns), 0),
        column_of_(static_cast<std::size_t>(graph.rows()), kNone),
        row_of_(static_cast<std::size_t>(graph.columns), kNone),
        distance_(static_cast<std::size_t>(graph.columns), 0),
        parent_(static_cast<std::size_t>(graph.columns), kNone),
        seen_(static_cast<std::size_t>(graph.columns), 0) {}

  std::vector<int> Run() {
    std::vector<int> left;
    for (int row = 0; row < graph_.rows(); ++row) {
      if (!TakeTightEdge(row)) left.push_back(row);
    }
    for (const int row : left) Augment(row);
    return column_of_;
  }

 private:
  template <class Visit>
  void ForEdges(int row, Visit visit) const {
    const auto begin = static_cast<std::size_t>(graph_.first[static_cast<std::size_t>(row)]);
    const auto end = static_cast<std::size_t>(graph_.first[static_cast<std::size_t>(row) + 1]);
    for (std::size_t i = begin; i < end; ++i) visit(graph_.edges[i]);
  }

  bool TakeTightEdge(int row) {
    int largest = 0;
    ForEdges(row, [&](const OverlapEdge& edge) { largest = std::max(largest, edge.weight); });
    row_dual_[static_cast<std::size_t>(row)] = largest;
    if (largest == 0) return true;  // nothing to gain: unmatched is optimal
    int column = kNone;
    ForEdges(row, [&](const OverlapEdge& edge) {
      if (column == kNone && edge.weight == largest &&
          row_of_[static_cast<std::size_t>(edge.column)] == kNone) {
        column = edge.column;
      }
    });
    if (column == kNone) return false;
    column_of_[static_cast<std::size_t>(row)] = column;
    row_of_[static_cast<std::size_t>(column)] = row;
    return true;
  }

  void Augment(int root) {
    ++round_;
    using Entry = std::pair<std::int64_t, int>;  // distance, column
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> frontier;
    std::vector<std::pair<int, std::int64_t>> rows;  // scanned, with their distance
    std::vector<int> columns;                        // scanned
    // Best way to end so far: leave `loser` unmatched, or reach a free column.
    std::int64_t best = INT64_MAX;
    int loser = kNone;
    int free_column = kNone;

    const auto scan = [&](int row, std::int64_t distance) {
      rows.emplace_back(row, distance);
      const std::int64_t dual = row_dual_[static_cast<std::size_t>(row)];
      if (distance + dual < best) {
        best = distance + dual;
        loser = row;
      }
      ForEdges(row, [&](const OverlapEdge& edge) {
        const auto column = static_cast<std::size_t>(edge.column);
        const std::int64_t through = distance + dual + column_dual_[column] - edge.weight;
        if (through >= best) return;
        if (seen_[column] == round_ && distance_[column] <= through) return;
        seen_[column] = round_;
        distance_[column] = through;
        parent_[column] = row;
        frontier.emplace(through, edge.column);
      });
    };

    scan(root, 0);
    while (!frontier.empty()) {
      const auto [distance, column] = frontier.top();
      frontier.pop();
      if (distance >= best) break;
      if (distance != distance_[static_cast<std::size_t>(column)]) continue;  // stale
      const int row = row_of_[static_cast<std::size_t>(column)];
      if (row == kNone) {
        best = distance;
        free_column = column;
        break;
      }
      columns.push_back(column);
      scan(row, distance);
    }

    for (const auto& [row, distance] : rows) {
      if (distance < best) row_dual_[static_cast<std::size_t>(row)] -= best - distance;
    }
    for (const int column : columns) {
      const std::int64_t distance = distance_[static_cast<std::size_t>(column)];
      if (distance < best) column_dual_[static_cast<std::size_t>(column)] += best - distance;
    }

    // Flip the path back to the root.
    int column = free_column;
    if (column == kNone) {
      column = column_of_[static_cast<std::size_t>(loser)];
      column_of_[static_cast<std::size_t>(loser)] = kNone;
      if (loser == root) return;
    }
    while (true) {
      const int row = parent_[static_cast<std::size_t>(column)];
      const int previous = column_of_[static_cast<std::size_t>(row)];
      column_of_[static_cast<std::size_t>(row)] = column;
      row_of_[static_cast<std::size_t>(column)] = row;
      if (row == root) return;
      column = previous;
    }
  }

  const OverlapGraph& graph_;
  std::vector<std::int64_t> row_dual_;
  std::vector<std::int64_t> column_dual_;
  std::vector<int> column_of_;
  std::vector<int> row_of_;
  std::vector<std::int64_t> distance_;  // valid where seen_ is this round
  std::vector<int> parent_;
  std::vector<int> seen_;
  int round_ = 0;
};

}  // namespace

std::vector<int> MaxOverlap(const OverlapGraph& graph) {
  return Matcher(graph).Run();
}

}  // namespace voda
