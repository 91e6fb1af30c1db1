#include "policy/knapsack.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <queue>

#include "base/check.h"

namespace voda {

namespace {

double Value(const std::vector<KnapsackItem>& items, const std::vector<int>& choice) {
  double sum = 0;
  for (std::size_t i = items.size(); i-- > 0;) sum += items[i][choice[i]].value;
  return sum;
}

std::int64_t ProgrammeWork(const std::vector<KnapsackItem>& items, int capacity) {
  std::int64_t options = 0;
  for (const KnapsackItem& item : items) options += static_cast<std::int64_t>(item.size());
  return options * (static_cast<std::int64_t>(capacity) + 1);
}

// Exact. Items are taken from the last to the first, so that walking back from the first prefers more for it.
std::vector<int> Programme(const std::vector<KnapsackItem>& items, int capacity) {
  const auto width = static_cast<std::size_t>(capacity) + 1;
  std::vector<double> best(width, 0), next(width);
  std::vector<int> used(width, 0), next_used(width);
  std::vector<std::uint16_t> picks(items.size() * width, 0);
  for (std::size_t i = items.size(); i-- > 0;) {
    std::uint16_t* pick = picks.data() + i * width;
    const KnapsackItem& item = items[i];
    for (std::size_t c = 0; c < width; ++c) {
      next[c] = item[0].value + best[c];
      next_used[c] = used[c];
    }
    for (std::size_t o = 1; o < item.size(); ++o) {
      const std::size_t weight = item[o].weight;
      const double value = item[o].value;
      for (std::size_t c = weight; c < width; ++c) {
        const double sum = value + best[c - weight];
        if (sum < next[c]) continue;
        const int total = item[o].weight + used[c - weight];
        if (sum > next[c] || total <= next_used[c]) {
          next[c] = sum;
          next_used[c] = total;
          pick[c] = static_cast<std::uint16_t>(o);
        }
      }
    }
    best.swap(next);
    used.swap(next_used);
  }
  std::vector<int> choice(items.size());
  std::size_t left = capacity;
  for (std::size_t i = 0; i < items.size(); ++i) {
    choice[i] = picks[i * width + left];
    left -= items[i][choice[i]].weight;
  }
  return choice;
}

// The vertices of the upper concave hull of an item's options.
std::vector<int> Hull(const KnapsackItem& item) {
  const auto slope = [&](int a, int b) {
    const KnapsackOption& from = item[a];
    const KnapsackOption& to = item[b];
    return (to.value - from.value) / (to.weight - from.weight);
  };
  std::vector<int> hull;
  for (int o = 0; o < std::ssize(item); ++o) {
    while (hull.size() >= 2 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), o))
      hull.pop_back();
    hull.push_back(o);
  }
  return hull;
}

struct Relaxation {
  double price = 0;          // of one unit of weight
  double bound = 0;          // no choice has a larger sum
  std::vector<int> base;     // option per item when the price broke the capacity; fits
  std::vector<int> rounded;  // base plus the hull steps that still fitted
};

Relaxation Relax(const std::vector<KnapsackItem>& items, int capacity) {
  struct Step {
    double slope;
    int item;
    int at;  // position in the hull that the step starts from
    bool operator<(const Step& other) const {
      return slope != other.slope ? slope < other.slope : item > other.item;
    }
  };
  std::vector<std::vector<int>> hulls;
  hulls.reserve(items.size());
  std::priority_queue<Step> steps;
  const auto push = [&](int item, int at) {
    const auto& hull = hulls[item];
    if (at + 1 >= std::ssize(hull)) return;
    const auto& from = items[item][hull[at]];
    const auto& to = items[item][hull[at + 1]];
    steps.push({(to.value - from.value) / (to.weight - from.weight), item, at});
  };
  for (const KnapsackItem& item : items) {
    hulls.push_back(Hull(item));
    push(static_cast<int>(hulls.size()) - 1, 0);
  }

  Relaxation result;
  result.base.assign(items.size(), 0);
  result.rounded = result.base;
  int left = capacity;
  bool broken = false;
  while (!steps.empty() && left > 0) {
    const Step step = steps.top();
    steps.pop();
    const int item = step.item;
    const int from = hulls[item][step.at];
    const int to = hulls[item][step.at + 1];
    const int weight = items[item][to].weight - items[item][from].weight;
    if (weight > left) {
      if (!broken) result.price = step.slope;
      broken = true;
      continue;
    }
    left -= weight;
    result.rounded[item] = to;
    if (!broken) result.base[item] = to;
    push(item, step.at + 1);
  }
  if (!broken && !steps.empty()) result.price = steps.top().slope;
  result.bound = result.price * capacity;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const KnapsackOption& option = items[i][result.base[i]];
    result.bound += option.value - result.price * option.weight;
  }
  return result;
}

}  // namespace

KnapsackAnswer SolveKnapsack(const std::vector<KnapsackItem>& items, int capacity, std::int64_t work) {
  VODA_CHECK(capacity >= 0);
  for (const KnapsackItem& item : items)
    VODA_CHECK(!item.empty() && item.front().weight == 0 && item.size() < 65536);
  constexpr std::int64_t kSmall = 300'000;
  if (ProgrammeWork(items, capacity) <= std::min(work, kSmall)) return {Programme(items, capacity), 0};

  const Relaxation relaxed = Relax(items, capacity);
  const auto loss = [&](int i, const KnapsackOption& option) {
    const KnapsackOption& base = items[i][relaxed.base[i]];
    return (base.value - relaxed.price * base.weight) - (option.value - relaxed.price * option.weight);
  };
  // Items by the least loss that a deviation from the base costs: the first are where an optimum may differ.
  std::vector<double> least(items.size(), 0);
  std::vector<int> by_loss;
  for (int i = 0; i < std::ssize(items); ++i) {
    double cheapest = std::numeric_limits<double>::infinity();
    for (int o = 0; o < std::ssize(items[i]); ++o) {
      if (o == relaxed.base[i]) continue;
      const double cost = loss(i, items[i][o]);
      if (cost < cheapest) cheapest = cost;
    }
    if (items[i].size() > 1) by_loss.push_back(i);
    least[i] = std::max(cheapest, 0.0);
  }
  std::stable_sort(by_loss.begin(), by_loss.end(), [&](int a, int b) { return least[a] < least[b]; });

  KnapsackAnswer answer{relaxed.rounded, 0};
  double incumbent = Value(items, answer.choice);
  const double margin = 1e-9 * std::max(1.0, relaxed.bound);
  for (std::size_t core_size = 32;; core_size *= 2) {
    core_size = std::min(core_size, by_loss.size());
    const double gap = std::max(0.0, relaxed.bound - incumbent) + margin;
    std::vector<int> core(by_loss.begin(), by_loss.begin() + static_cast<std::ptrdiff_t>(core_size));
    std::sort(core.begin(), core.end());
    int room = capacity;
    std::vector<bool> in_core(items.size(), false);
    for (const int i : core) in_core[i] = true;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!in_core[i]) room -= items[i][relaxed.base[i]].weight;
    }
    std::vector<KnapsackItem> narrowed;
    std::vector<std::vector<int>> original;
    std::int64_t heaviest = 0;
    std::int64_t lightest = 0;
    for (const int i : core) {
      const KnapsackItem& item = items[i];
      KnapsackItem kept;
      std::vector<int> from;
      for (int o = 0; o < std::ssize(item); ++o) {
        if (loss(i, item[o]) > gap) continue;
        kept.push_back(item[o]);
        from.push_back(o);
      }
      // Weights count from the lightest option that is left, so that the programme is no wider than it must
      // be.
      const int light = kept.front().weight;
      for (KnapsackOption& option : kept) option.weight -= light;
      lightest += light;
      heaviest += kept.back().weight;
      narrowed.push_back(std::move(kept));
      original.push_back(std::move(from));
    }
    const std::int64_t space = std::min<std::int64_t>(room - lightest, heaviest);
    const std::int64_t cost = ProgrammeWork(narrowed, static_cast<int>(std::max<std::int64_t>(space, 0)));
    if (space < 0 || cost > work) break;
    work -= cost;

    const std::vector<int> chosen = Programme(narrowed, static_cast<int>(space));
    std::vector<int> choice = relaxed.base;
    for (std::size_t k = 0; k < core.size(); ++k) {
      choice[core[k]] = original[k][chosen[k]];
    }
    const double value = Value(items, choice);
    if (value >= incumbent) {
      incumbent = value;
      answer.choice = std::move(choice);
    }
    const double proven = std::max(0.0, relaxed.bound - incumbent) + margin;
    if (core_size == by_loss.size() || least[by_loss[core_size]] > proven) return answer;
  }
  const double gap = relaxed.bound - incumbent;
  answer.gap = gap > margin ? gap : 0;
  return answer;
}

}  // namespace voda
