// Price: the rule written down a second time, slowly, and what it promises.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/registry.h"
#include "support/builders.h"
#include "support/check.h"
#include "support/generators.h"

namespace voda::testing {
namespace {

std::unique_ptr<Policy> PriceWith(const PolicyOptions& options = {}) {
  auto policy = MakePolicy("Price", options);
  EXPECT_TRUE(policy) << policy.error().message;
  return std::move(*policy);
}

// Straight from the definition, with the options at their defaults.
std::map<std::string, int> Transcribed(const Snapshot& snapshot) {
  constexpr double kC = 1.5, kRatio = 1.05, kStick = 0.7, kGuard = 4;
  struct Entry {
    const Job* job;
    std::vector<int> sizes;  // candidates, in workers
    int current = 0;
    int want = 0;
    double key = 0;
    bool late = false;
    int given = 0;
  };
  const auto speed = [](const Job& job, int size) { return job.curve->speedup(job.curve->IndexOf(size)); };
  const int capacity = Capacity(snapshot);
  int node = 1;
  for (const Node& n : snapshot.nodes) {
    if (n.state == NodeState::kReady) node = std::max(node, n.gpus);
  }
  std::vector<Entry> entries;
  for (const Job& job : snapshot.jobs) {
    if (job.aside == Aside::kNo && SeatsWhenEmpty(snapshot, job) >= job.min) entries.push_back({.job = &job});
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return Earlier(*a.job, *b.job); });
  const double k = std::max(capacity, 1);
  const double j = std::max<double>(static_cast<double>(entries.size()), 1);
  const double lambda = kC * j / k;
  const double share = k / j;
  for (Entry& e : entries) {
    const Job& job = *e.job;
    const double r = job.remaining_seconds;
    if (job.curve->IndexOf(job.held()) >= 0) e.current = job.held();
    double best = 0;
    for (int i = 0; i < job.curve->count(); ++i) {
      const int n = job.curve->size(i);
      if (i > 0 && n * job.gpus_per_worker > capacity) break;
      bool take = i == 0 || speed(job, n) >= kRatio * best;
      if (take && i > 0 && job.measured &&
          std::find(job.measured->begin(), job.measured->end(), n) == job.measured->end()) {
        const int largest = job.measured->empty() ? 0 : job.measured->back();
        const int gpus = n * job.gpus_per_worker;
        if (n > std::max(job.num, 2 * largest) || (gpus > node && gpus % node != 0)) take = false;
      }
      if (!take && n != e.current) continue;
      e.sizes.push_back(n);
      best = std::max(best, speed(job, n));
    }
    double least = 0;
    for (const int n : e.sizes) {
      const double stall = job.workers.empty() ? job.start_cost
                           : n == e.current    ? job.stall_left
                                               : job.rescale_cost;
      const double cost = (stall + r / speed(job, n)) * (1 + lambda * n * job.gpus_per_worker);
      if (e.want == 0 || cost < least - 1e-9 * std::abs(least)) {
        e.want = n;
        least = cost;
      }
    }
    e.key =
        ((job.workers.empty() ? job.start_cost : 0) + r / speed(job, e.want)) * e.want * job.gpus_per_worker;
    if (!job.workers.empty()) e.key *= kStick;
    int fair = e.sizes.front();
    for (const int n : e.sizes) {
      if (n * job.gpus_per_worker <= share) fair = std::max(fair, n);
    }
    const double fair_time = job.start_cost + job.total_seconds / (share < 1 ? share : speed(job, fair));
    const double age = snapshot.now - job.submit_time;
    if (age > 600 && age + r / speed(job, fair) > kGuard * fair_time) {
      e.late = true;
      e.want = std::min(e.want, fair);
    }
  }
  std::vector<Entry*> order;
  for (Entry& e : entries) order.push_back(&e);
  std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    if (a->job->priority != b->job->priority) return a->job->priority > b->job->priority;
    if (a->late != b->late) return a->late;
    return !a->late && a->key < b->key;
  });
  int free = capacity;
  for (Entry* e : order) {
    for (auto n = e->sizes.rbegin(); n != e->sizes.rend(); ++n) {
      if (*n > e->want || *n * e->job->gpus_per_worker > free) continue;
      e->given = *n;
      free -= *n * e->job->gpus_per_worker;
      break;
    }
  }
  while (true) {
    double best = 0;
    Entry* winner = nullptr;
    int size = 0;
    for (Entry& e : entries) {
      if (e.given == 0) continue;
      const double r = e.job->remaining_seconds;
      for (const int m : e.sizes) {
        const int gpus = (m - e.given) * e.job->gpus_per_worker;
        if (m <= e.given || gpus > free) continue;
        const double extra = e.given == e.current ? e.job->rescale_cost
                             : m == e.current     ? -e.job->rescale_cost
                                                  : 0;
        const double saving = (r / speed(*e.job, e.given) - r / speed(*e.job, m) - extra) / gpus;
        if (saving > best) {
          best = saving;
          winner = &e;
          size = m;
        }
      }
    }
    if (winner == nullptr) break;
    free -= (size - winner->given) * winner->job->gpus_per_worker;
    winner->given = size;
  }
  std::map<std::string, int> sizes;
  for (const Job& job : snapshot.jobs) sizes[job.name] = 0;
  for (const Entry& e : entries) sizes[e.job->name] = e.given;
  return sizes;
}

TEST(Price, EqualsTheRuleWrittenDownTwice) {
  const auto policy = PriceWith();
  Check(
      [&] {
        Snapshot snapshot = *ArbitrarySnapshot({.max_jobs = 16, .max_nodes = 5});
        Rng rng(*rc::gen::arbitrary<std::uint64_t>());
        for (Job& job : snapshot.jobs) {
          job.start_cost = rng.Int(0, 60);
          job.rescale_cost = rng.Int(0, 120);
          job.stall_left = job.workers.empty() ? 0 : rng.Int(0, 40);
          job.total_seconds = job.remaining_seconds * (1 + rng.Unit());
          if (rng.Chance(0.5)) {
            auto measured = std::make_shared<std::vector<int>>();
            for (int n = 1; n <= job.max; ++n) {
              if (rng.Chance(0.4)) measured->push_back(n);
            }
            job.measured = measured;
          }
        }
        const Allocation allocation = policy->Allocate(snapshot);
        std::map<std::string, int> sizes;
        for (std::size_t i = 0; i < snapshot.jobs.size(); ++i)
          sizes[snapshot.jobs[i].name] = allocation.workers[i];
        RC_ASSERT(sizes == Transcribed(snapshot));
      },
      4000);
}

TEST(Price, AloneAndCheapAJobTakesTheSizeThatEndsItSoonest) {
  const auto policy = PriceWith({{"c", "0"}, {"ratio", "1"}});
  Check([&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const int max = rng.Int(1, 12);
    Job job = JobBuilder("a").Sizes(1, 1, max).Remaining(rng.Int(1, 10000)).Build();
    job.curve = RandomCurve(rng, 1, max, {});
    job.start_cost = rng.Int(0, 100);
    Snapshot snapshot = SnapshotBuilder().Node("n0", 16).Build();
    snapshot.jobs.push_back(job);
    const int given = policy->Allocate(snapshot).workers[0];
    double best = 0;
    for (int i = 0; i < job.curve->count(); ++i) best = std::max(best, job.curve->speedup(i));
    RC_ASSERT(job.curve->speedup(job.curve->IndexOf(given)) >= best * (1 - 1e-9));
  });
}

TEST(Price, WhereGpusAreDearEveryJobThatGetsAnythingGetsItsMinimum) {
  // Concave curves, no stalls. GPUs that are left then are still handed out, which is no job's claim.
  const auto policy = PriceWith({{"c", "1000000"}});
  Check([&] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    SnapshotBuilder builder;
    builder.Node("n0", rng.Int(1, 16));
    Snapshot snapshot = builder.Build();
    for (int i = rng.Int(1, 12); i > 0; --i) {
      const int min = rng.Int(1, 4);
      const int max = min + rng.Int(0, 6);
      Job job = JobBuilder("j" + std::to_string(i)).Sizes(min, min, max).Remaining(rng.Int(1, 10000)).Build();
      std::vector<int> sizes;
      std::vector<double> speedup;
      for (int n = min; n <= max; ++n) {
        sizes.push_back(n);
        speedup.push_back(std::pow(n, 0.7));
      }
      job.curve = Curve::Of(sizes, speedup);
      job.total_seconds = job.remaining_seconds;
      snapshot.jobs.push_back(job);
    }
    const Allocation allocation = policy->Allocate(snapshot);
    int at_minimum = 0;
    bool above = false;
    int smallest_waiting = 1 << 30;
    for (const JobIndex i : allocation.order) {
      const int given = allocation.workers[static_cast<std::size_t>(i)];
      if (given == 0) smallest_waiting = std::min(smallest_waiting, snapshot.job(i).min);
      if (given > 0) at_minimum += snapshot.job(i).min;
      if (given > snapshot.job(i).min) above = true;
      if (given > snapshot.job(i).min) {
        RC_ASSERT(allocation.reasons[static_cast<std::size_t>(i)].code == ReasonCode::kGrew);
      }
    }
    if (above) RC_ASSERT(Capacity(snapshot) - at_minimum < smallest_waiting);
  });
}

TEST(Price, AJobThatIsLateByTheGuardGoesFirst) {
  Job old = JobBuilder("old").Sizes(1, 1, 1).Submit(0).Remaining(10000).Build();
  old.total_seconds = 1000;  // alone it would have ended long ago
  const Job fresh = JobBuilder("fresh").Sizes(1, 1, 1).Submit(99990).Remaining(10).Build();
  Snapshot snapshot = SnapshotBuilder().Node("n0", 1).Build();
  snapshot.jobs = {old, fresh};
  snapshot.now = 100000;
  const Allocation guarded = PriceWith()->Allocate(snapshot);
  const Allocation unguarded = PriceWith({{"guard", "1000000"}})->Allocate(snapshot);
  for (std::size_t i = 0; i < 2; ++i) {
    const bool is_old = snapshot.jobs[i].name == "old";
    EXPECT_EQ(guarded.workers[i], is_old ? 1 : 0);
    EXPECT_EQ(unguarded.workers[i], is_old ? 0 : 1);
  }
}

TEST(Price, ReasonsNameThePrice) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("n0", 2)
                                .Add(JobBuilder("a").Sizes(1, 1, 2).Remaining(100))
                                .Add(JobBuilder("b").Sizes(2, 2, 2).Remaining(5000))
                                .Build();
  const Allocation allocation = PriceWith()->Allocate(snapshot);
  for (JobIndex i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::string text = Describe(allocation.reasons[at], snapshot, i, allocation.workers[at]);
    if (allocation.workers[at] == 0) {
      EXPECT_NE(text.find("less GPU-time left"), std::string::npos) << text;
    } else {
      EXPECT_TRUE(text.find("price") != std::string::npos || text.find("grew") != std::string::npos) << text;
    }
  }
}

}  // namespace
}  // namespace voda::testing
