#include "cli/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace voda {

namespace {

struct Goal {
  std::string_view name;
  double (*of)(const sim::RunResult&);
};

constexpr Goal kGoals[] = {
    {"average completion time", [](const sim::RunResult& run) { return run.avg_jct_s; }},
    {"99th percentile of it", [](const sim::RunResult& run) { return run.p99_jct_s; }},
    {"makespan", [](const sim::RunResult& run) { return run.makespan_s; }},
};

}  // namespace

std::string Recommend(const std::vector<sim::RunResult>& runs) {
  int most = 0;
  for (const sim::RunResult& run : runs) most = std::max(most, run.completed);
  std::vector<const sim::RunResult*> ranked;
  for (const sim::RunResult& run : runs) {
    if (run.completed == most) ranked.push_back(&run);
  }
  if (ranked.size() < 2 || most == 0) return {};
  std::string out = "Best on this workload:\n";
  for (const Goal& goal : kGoals) {
    std::stable_sort(ranked.begin(), ranked.end(),
                     [&](const auto* a, const auto* b) { return goal.of(*a) < goal.of(*b); });
    const double best = goal.of(*ranked[0]);
    const auto above = [&](const sim::RunResult& run) {
      return best > 0 ? 100 * (goal.of(run) / best - 1) : 0;
    };
    out += fmt::format("  {:<24} {} ({:.0f} s); next {} (+{:.1f} %), last {} (+{:.1f} %)\n", goal.name,
                       ranked[0]->algorithm, best, ranked[1]->algorithm, above(*ranked[1]),
                       ranked.back()->algorithm, above(*ranked.back()));
  }
  return out;
}

}  // namespace voda
