// Hungarian: the assignment problem solved densely in O(n³), as an oracle. Shares nothing with src/placement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace voda::testing {

// Largest sum of weight[row][column[row]] over all assignments of rows to different columns; square matrix.
inline std::int64_t HungarianMaximum(const std::vector<std::vector<std::int64_t>>& weight) {
  const std::size_t n = weight.size();
  constexpr std::int64_t kInfinity = std::numeric_limits<std::int64_t>::max() / 4;
  std::vector<std::int64_t> u(n + 1, 0), v(n + 1, 0);
  std::vector<std::size_t> row_of(n + 1, 0), way(n + 1, 0);  // 1-based; 0 is "none"
  for (std::size_t row = 1; row <= n; ++row) {
    row_of[0] = row;
    std::size_t at = 0;
    std::vector<std::int64_t> slack(n + 1, kInfinity);
    std::vector<bool> used(n + 1, false);
    do {
      used[at] = true;
      std::int64_t delta = kInfinity;
      std::size_t next = 0;
      for (std::size_t column = 1; column <= n; ++column) {
        if (used[column]) continue;
        const std::int64_t reduced = -weight[row_of[at] - 1][column - 1] - u[row_of[at]] - v[column];
        if (reduced < slack[column]) {
          slack[column] = reduced;
          way[column] = at;
        }
        if (slack[column] < delta) {
          delta = slack[column];
          next = column;
        }
      }
      for (std::size_t column = 0; column <= n; ++column) {
        if (used[column]) {
          u[row_of[column]] += delta;
          v[column] -= delta;
        } else {
          slack[column] -= delta;
        }
      }
      at = next;
    } while (row_of[at] != 0);
    do {
      row_of[at] = row_of[way[at]];
      at = way[at];
    } while (at != 0);
  }
  std::int64_t sum = 0;
  for (std::size_t column = 1; column <= n; ++column) sum += weight[row_of[column] - 1][column - 1];
  return sum;
}

}  // namespace voda::testing
