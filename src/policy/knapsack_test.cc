// The knapsack solver against enumeration and against a complete table, on both of its paths.
#include "policy/knapsack.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "support/check.h"
#include "support/generators.h"

namespace voda::testing {
namespace {

struct Instance {
  std::vector<KnapsackItem> items;
  int capacity = 0;
};

void showValue(const Instance& instance, std::ostream& os) {
  os << "capacity " << instance.capacity << '\n';
  for (const KnapsackItem& item : instance.items) {
    for (const KnapsackOption& option : item) os << option.weight << ':' << option.value << ' ';
    os << '\n';
  }
}

enum class Values { kIntegers, kFewIntegers, kTenths, kConcave, kAny };

struct InstanceShape {
  int max_items = 6;
  int max_options = 6;
  int max_step = 4;      // in weight, from option to option
  double tightness = 1;  // capacity is up to this share of all largest options together
  Values values = Values::kIntegers;
};

// Integer values keep sums exact, few different ones make ties; the curves have no particular shape.
Instance RandomInstance(Rng& rng, const InstanceShape& shape, int items) {
  Instance instance;
  int total = 0;
  for (int i = 0; i < items; ++i) {
    KnapsackItem item = {{0, shape.values == Values::kAny ? rng.Unit() : rng.Int(0, 2)}};
    const int options = rng.Int(1, shape.max_options);
    double gain = 1 + rng.Unit();
    while (static_cast<int>(item.size()) < options) {
      double value = item.back().value;
      switch (shape.values) {
        case Values::kIntegers:
          value += rng.Int(1, 20);
          break;
        case Values::kFewIntegers:
          value += rng.Int(1, 2);
          break;
        case Values::kTenths:
          value += 0.1 * rng.Int(1, 30);
          break;  // slopes tie up to rounding
        case Values::kConcave:
          value += (gain *= 0.5 + 0.5 * rng.Unit());
          break;
        case Values::kAny:
          value += 0.001 + rng.Unit();
          break;
      }
      item.push_back({item.back().weight + rng.Int(1, shape.max_step), value});
    }
    total += item.back().weight;
    instance.items.push_back(std::move(item));
  }
  instance.capacity = rng.Int(0, std::max(1, static_cast<int>(total * shape.tightness)));
  return instance;
}

rc::Gen<Instance> Instances(const InstanceShape& shape) {
  return [shape](const rc::Random& random, int size) {
    Rng rng(rc::Random(random).next());
    const int items = rng.Int(0, std::max(1, shape.max_items * (size + 1) / (rc::kNominalSize + 1)));
    return rc::shrinkable::shrinkRecur(RandomInstance(rng, shape, items), [](const Instance& instance) {
      std::vector<Instance> simpler;
      for (std::size_t i = 0; i < instance.items.size(); ++i) {
        Instance next = instance;
        next.items.erase(next.items.begin() + static_cast<std::ptrdiff_t>(i));
        simpler.push_back(next);
        if (instance.items[i].size() == 1) continue;
        next = instance;
        next.items[i].pop_back();
        simpler.push_back(next);
      }
      if (instance.capacity > 0) {
        simpler.push_back({instance.items, instance.capacity / 2});
        simpler.push_back({instance.items, instance.capacity - 1});
      }
      return rc::seq::fromContainer(simpler);
    });
  };
}

struct Sum {
  int weight = 0;
  double value = 0;
};

// Also checks that the answer names one option of each item.
Sum SumOf(const Instance& instance, const std::vector<int>& choice) {
  RC_ASSERT(choice.size() == instance.items.size());
  Sum sum;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    RC_ASSERT(choice[i] >= 0);
    RC_ASSERT(choice[i] < static_cast<int>(instance.items[i].size()));
    const KnapsackOption& option = instance.items[i][choice[i]];
    sum.weight += option.weight;
    sum.value += option.value;
  }
  return sum;
}

// Every combination: the largest value, then the least weight, then more to the earlier item.
std::vector<int> Enumerate(const Instance& instance) {
  std::vector<int> now(instance.items.size());
  std::vector<int> best;
  double best_value = -1;
  int best_weight = 0;
  const std::function<void(std::size_t, int, double)> go = [&](std::size_t at, int weight, double value) {
    if (weight > instance.capacity) return;
    if (at == now.size()) {
      if (std::tuple(value, -weight, now) > std::tuple(best_value, -best_weight, best)) {
        best = now;
        best_value = value;
        best_weight = weight;
      }
      return;
    }
    for (std::size_t k = 0; k < instance.items[at].size(); ++k) {
      now[at] = static_cast<int>(k);
      go(at + 1, weight + instance.items[at][k].weight, value + instance.items[at][k].value);
    }
  };
  go(0, 0, 0);
  return best;
}

// The complete table: best[i][w] is the largest value of items i, i+1, … of weight exactly w.
std::vector<int> Tabulate(const Instance& instance) {
  const std::size_t items = instance.items.size();
  const std::size_t width = instance.capacity + 1;
  const double impossible = -std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(items + 1, std::vector<double>(width, impossible));
  best[items][0] = 0;
  for (std::size_t i = items; i-- > 0;) {
    for (const KnapsackOption& option : instance.items[i]) {
      for (std::size_t w = option.weight; w < width; ++w) {
        const double value = option.value + best[i + 1][w - option.weight];
        best[i][w] = std::max(best[i][w], value);
      }
    }
  }
  std::size_t left = 0;
  for (std::size_t w = 0; w < width; ++w) {
    if (best[0][w] > best[0][left]) left = w;
  }
  std::vector<int> choice;
  for (std::size_t i = 0; i < items; ++i) {
    for (std::size_t k = instance.items[i].size(); k-- > 0;) {
      const KnapsackOption& option = instance.items[i][k];
      const std::size_t weight = option.weight;
      if (weight > left || option.value + best[i + 1][left - weight] != best[i][left]) continue;
      choice.push_back(static_cast<int>(k));
      left -= weight;
      break;
    }
  }
  return choice;
}

TEST(Knapsack, Degenerate) {
  EXPECT_TRUE(SolveKnapsack({}, 0).choice.empty());
  EXPECT_TRUE(SolveKnapsack({}, 100).choice.empty());
  const std::vector<KnapsackItem> items = {{{0, 1}, {2, 3}}, {{0, 0.5}}, {{0, 1}, {3, 2}}};
  EXPECT_EQ(SolveKnapsack(items, 0).choice, (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(SolveKnapsack(items, 4).choice, (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(SolveKnapsack(items, 5).choice, (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(SolveKnapsack(items, 1'000'000'000).choice, (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(SolveKnapsack(items, 5).gap, 0);
}

TEST(Knapsack, TiesTakeTheLeastWeightThenMoreToTheEarlier) {
  const std::vector<KnapsackItem> equal = {{{0, 0}, {1, 1}}, {{0, 0}, {1, 1}}, {{0, 0}, {1, 1}}};
  EXPECT_EQ(SolveKnapsack(equal, 1).choice, (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(SolveKnapsack(equal, 2).choice, (std::vector<int>{1, 1, 0}));
  EXPECT_EQ(SolveKnapsack({{{0, 0}, {3, 5}}, {{0, 0}, {2, 5}}}, 4).choice, (std::vector<int>{0, 1}));
  // 4 to the first, or 2 to the first and 2 to the second: all worth 4, all of weight 4.
  const KnapsackItem item = {{0, 0}, {2, 2}, {4, 4}};
  EXPECT_EQ(SolveKnapsack({item, item}, 4).choice, (std::vector<int>{2, 0}));
}

TEST(Knapsack, EqualsEnumeration) {
  for (const Values values : {Values::kIntegers, Values::kFewIntegers}) {
    Check(
        [&] {
          const Instance instance = *Instances({.values = values});
          const KnapsackAnswer answer = SolveKnapsack(instance.items, instance.capacity);
          RC_ASSERT(answer.gap == 0.0);
          RC_ASSERT(answer.choice == Enumerate(instance));
          RC_ASSERT(answer.choice == Tabulate(instance));  // and so the table is right, ties included
        },
        4000);
  }
}

TEST(Knapsack, EqualsEnumerationForAnyDoubles) {
  for (const Values values : {Values::kConcave, Values::kAny}) {
    Check(
        [&] {
          const Instance instance = *Instances({.values = values});
          const KnapsackAnswer answer = SolveKnapsack(instance.items, instance.capacity);
          RC_ASSERT(answer.gap == 0.0);
          const Sum sum = SumOf(instance, answer.choice);
          RC_ASSERT(sum.weight <= instance.capacity);
          RC_ASSERT(std::abs(sum.value - SumOf(instance, Enumerate(instance)).value) <= 1e-9);
        },
        4000);
  }
}

// Instances that the complete programme still takes on: the choice is the rule's.
TEST(Knapsack, EqualsTheTableWhereThatIsCheap) {
  for (const Values values : {Values::kIntegers, Values::kFewIntegers}) {
    Check(
        [&] {
          const Instance instance = *Instances({.max_items = 30, .values = values});
          const KnapsackAnswer answer = SolveKnapsack(instance.items, instance.capacity);
          RC_ASSERT(answer.gap == 0.0);
          RC_ASSERT(answer.choice == Tabulate(instance));
        },
        1000);
  }
}

// Instances beyond that: the core path.
std::string LabelOf(Values values) {
  switch (values) {
    case Values::kIntegers:
      return "Integers";
    case Values::kFewIntegers:
      return "FewIntegers";
    case Values::kTenths:
      return "Tenths";
    case Values::kConcave:
      return "Concave";
    case Values::kAny:
      return "Any";
  }
  return "";
}

void PrintTo(Values values, std::ostream* os) {
  *os << LabelOf(values);
}

class LargeKnapsack : public ::testing::TestWithParam<Values> {
 protected:
  // 60 items of up to 16 options, capacities of up to 3,000.
  rc::Gen<Instance> Large(double tightness) const {
    return Instances(
        {.max_items = 60, .max_options = 16, .max_step = 16, .tightness = tightness, .values = GetParam()});
  }
  bool exact() const { return GetParam() == Values::kIntegers || GetParam() == Values::kFewIntegers; }
};

TEST_P(LargeKnapsack, ReachesTheOptimum) {
  Check(
      [&] {
        const Instance instance = *Large(*rc::gen::element(0.2, 0.7));
        const KnapsackAnswer answer = SolveKnapsack(instance.items, instance.capacity);
        const Sum sum = SumOf(instance, answer.choice);
        const auto table = Tabulate(instance);
        const Sum best = SumOf(instance, table);
        RC_ASSERT(sum.weight <= instance.capacity);
        RC_ASSERT(answer.gap == 0.0);
        RC_ASSERT(std::abs(sum.value - best.value) <= (exact() ? 0 : 1e-9));
        if (exact()) {
          RC_ASSERT(sum.weight == best.weight);
          RC_ASSERT(answer.choice == table);
        }
      },
      500);
}

// With little work allowed: an answer, and a gap that covers what is missing.
TEST_P(LargeKnapsack, SaysHowFarItMayBeFromTheOptimum) {
  Check(
      [&] {
        const Instance instance = *Large(0.5);
        const std::int64_t work = *rc::gen::element<std::int64_t>(0, 1, 100, 5'000, 50'000);
        const KnapsackAnswer answer = SolveKnapsack(instance.items, instance.capacity, work);
        const Sum sum = SumOf(instance, answer.choice);
        const Sum best = SumOf(instance, Tabulate(instance));
        RC_LOG() << "value " << sum.value << " gap " << answer.gap << " optimum " << best.value << '\n';
        RC_ASSERT(sum.weight <= instance.capacity);
        RC_ASSERT(std::isfinite(answer.gap));
        RC_ASSERT(answer.gap >= 0.0);
        RC_ASSERT(sum.value + answer.gap >= best.value - 1e-9);
      },
      500);
}

INSTANTIATE_TEST_SUITE_P(All, LargeKnapsack,
                         ::testing::Values(Values::kIntegers, Values::kFewIntegers, Values::kTenths,
                                           Values::kConcave, Values::kAny),
                         [](const auto& test) { return LabelOf(test.param); });

// Just more items than the first core holds, and a work limit that keeps the complete programme out. The loss
// of the option at which the relaxation broke is 0 up to rounding, of either sign; its item must be in the
// core all the same.
TEST(Knapsack, KeepsTheItemThatBrokeTheCapacityInTheCore) {
  Check(
      [&] {
        Rng rng(*rc::gen::arbitrary<std::uint64_t>());
        Instance instance =
            RandomInstance(rng, {.max_options = 3, .max_step = 9, .values = Values::kTenths}, 52);
        instance.capacity = rng.Int(20, 120);
        const KnapsackAnswer answer = SolveKnapsack(instance.items, instance.capacity, 5000);
        const double value = SumOf(instance, answer.choice).value;
        RC_ASSERT(value + answer.gap >= SumOf(instance, Tabulate(instance)).value - 1e-9);
      },
      10000);
}

}  // namespace
}  // namespace voda::testing
