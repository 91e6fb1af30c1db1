// Price: the rule written down a second time, slowly, and what it promises.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/guess.h"
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
class Transcribed {
 public:
  explicit Transcribed(const Snapshot& snapshot) : snapshot_(snapshot), capacity_(Capacity(snapshot)) {
    for (const Node& node : snapshot.nodes) {
      if (node.state == NodeState::kReady) node_ = std::max(node_, node.whole == 0 ? node.gpus : node.whole);
    }
    for (const Job& job : snapshot.jobs) {
      if (job.aside == Aside::kNo && SeatsWhenEmpty(snapshot, job) >= job.min)
        entries_.push_back({.job = &job});
    }
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return Earlier(*a.job, *b.job); });
  }

  std::map<std::string, int> Sizes() {
    const double k = std::max(capacity_, 1);
    const double j = std::max<double>(static_cast<double>(entries_.size()), 1);
    const double price = MarketPrice(k, j);
    for (Entry& e : entries_) Claim(e, price, k / j);
    Give();
    Spend();
    std::map<std::string, int> sizes;
    for (const Job& job : snapshot_.jobs) sizes[job.name] = 0;
    for (const Entry& e : entries_) sizes[e.job->name] = e.given;
    return sizes;
  }

 private:
  static constexpr double kC = 2, kRatio = 1.05, kStick = 0.7, kGuard = 4, kReach = 4 * 3600, kTrial = 900;

  struct Entry {
    const Job* job;
    int current = 0;
    int want = 0;
    double key = 0;
    bool late = false;
    int given = 0;
  };

  static double Speed(const Job& job, int size) { return job.curve->speedup(job.curve->IndexOf(size)); }
  static int LargestMeasured(const Job& job) { return job.measured->empty() ? 0 : job.measured->back(); }
  // Of sizes above one node that nobody measured or asked for, only whole nodes or the maximum.
  bool Plausible(const Job& job, int size) const {
    const int gpus = size * job.gpus_per_worker;
    const auto& measured = *job.measured;
    return gpus <= node_ || gpus % node_ == 0 || size == job.num || size == job.max ||
           std::find(measured.begin(), measured.end(), size) != measured.end();
  }

  // Whether a job may want a size.
  bool MayWant(const Job& job, int size) const {
    if (!job.measured) return true;
    const int trusted = (job.guessed ? 1 : 2) * LargestMeasured(job);
    return size <= std::max(job.num, trusted) && Plausible(job, size);
  }

  // Whether it may be given a size of what is spare.
  bool MaySpend(const Job& job, int size) const {
    const bool tries = job.measured && (job.guessed || job.measured->empty());
    if (!tries || MayWant(job, size)) return MayWant(job, size);
    const int known = std::max(job.num, LargestMeasured(job));
    const bool small = known * job.gpus_per_worker <= node_;
    const double times = std::floor(job.running_seconds / kReach);
    double most = 0;
    if (job.guessed || times >= 1) {
      most = small ? node_ * std::pow(2, times) / job.gpus_per_worker : 2 * known;
    } else if (job.running_seconds >= kTrial && small) {
      most = static_cast<double>(node_) / job.gpus_per_worker;
    }
    return size <= most && Plausible(job, size);
  }

  template <class May>
  std::vector<int> Candidates(const Job& job, int current, const May& may) const {
    std::vector<int> sizes;
    double best = 0;
    for (int i = 0; i < job.curve->count(); ++i) {
      const int n = job.curve->size(i);
      if (i > 0 && n * job.gpus_per_worker > capacity_) break;
      const bool take = i == 0 || (Speed(job, n) >= kRatio * best && may(n));
      if (!take && n != current) continue;
      sizes.push_back(n);
      best = std::max(best, Speed(job, n));
    }
    return sizes;
  }
  std::vector<int> Wanted(const Entry& e) const {
    return Candidates(*e.job, e.current, [&](int n) { return MayWant(*e.job, n); });
  }

  double MarketPrice(double k, double j) const {
    const auto over = [&](double price) {
      double all = 0;
      double firm = 0;
      for (const Entry& e : entries_) {
        const Job& job = *e.job;
        double least = 0;
        double best = 0;
        for (const int n : Candidates(job, 0, [&](int size) { return MayWant(job, size); })) {
          const double gpus = n * job.gpus_per_worker;
          const double cost = (1 + price * gpus) / Speed(job, n);
          if (best == 0 || cost < least * (1 - 1e-9)) {
            least = cost;
            best = gpus;
          }
        }
        all += best;
        firm += best / (1 + price * best);
      }
      return all > k && firm > k / kC;
    };
    if (!over(0)) return 0;
    double low = 0;
    double high = kC * j / k;
    for (int i = 0; i < 20; ++i) (over((low + high) / 2) ? low : high) = (low + high) / 2;
    return high;
  }

  void Claim(Entry& e, double price, double share) const {
    const Job& job = *e.job;
    const double r = job.remaining_seconds;
    if (job.curve->IndexOf(job.held()) >= 0) e.current = job.held();
    const std::vector<int> sizes = Wanted(e);
    double least = 0;
    for (const int n : sizes) {
      const double stall = job.workers.empty() ? job.start_cost
                           : n == e.current    ? job.stall_left
                                               : job.rescale_cost;
      const double cost = (stall + r / Speed(job, n)) * (1 + price * n * job.gpus_per_worker);
      if (e.want == 0 || cost < least - 1e-9 * std::abs(least)) {
        e.want = n;
        least = cost;
      }
    }
    e.key =
        ((job.workers.empty() ? job.start_cost : 0) + r / Speed(job, e.want)) * e.want * job.gpus_per_worker;
    if (!job.workers.empty()) e.key *= kStick;
    int fair = sizes.front();
    for (const int n : sizes) {
      if (n * job.gpus_per_worker <= share) fair = std::max(fair, n);
    }
    const double fair_time = job.start_cost + job.total_seconds / (share < 1 ? share : Speed(job, fair));
    const double age = snapshot_.now - job.submit_time;
    if (age > 600 && age + r / Speed(job, fair) > kGuard * fair_time) {
      e.late = true;
      e.want = std::min(e.want, fair);
    }
  }

  void Give() {
    std::vector<Entry*> order;
    for (Entry& e : entries_) order.push_back(&e);
    std::stable_sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
      if (a->job->priority != b->job->priority) return a->job->priority > b->job->priority;
      if (a->late != b->late) return a->late;
      return !a->late && a->key < b->key;
    });
    free_ = capacity_;
    for (Entry* e : order) {
      const std::vector<int> sizes = Wanted(*e);
      for (auto n = sizes.rbegin(); n != sizes.rend(); ++n) {
        if (*n > e->want || *n * e->job->gpus_per_worker > free_) continue;
        e->given = *n;
        free_ -= *n * e->job->gpus_per_worker;
        break;
      }
    }
  }

  void Spend() {
    while (true) {
      double best = 0;
      Entry* winner = nullptr;
      int size = 0;
      for (Entry& e : entries_) {
        if (e.given == 0) continue;
        const double r = e.job->remaining_seconds;
        for (const int m : Candidates(*e.job, e.current, [&](int n) { return MaySpend(*e.job, n); })) {
          const int gpus = (m - e.given) * e.job->gpus_per_worker;
          if (m <= e.given || gpus > free_) continue;
          const double extra = e.given == e.current ? e.job->rescale_cost
                               : m == e.current     ? -e.job->rescale_cost
                                                    : 0;
          const double saving = (r / Speed(*e.job, e.given) - r / Speed(*e.job, m) - extra) / gpus;
          if (saving > best) {
            best = saving;
            winner = &e;
            size = m;
          }
        }
      }
      if (winner == nullptr) return;
      free_ -= (size - winner->given) * winner->job->gpus_per_worker;
      winner->given = size;
    }
  }

  const Snapshot& snapshot_;
  int capacity_;
  int node_ = 1;
  int free_ = 0;
  std::vector<Entry> entries_;
};

// What is told, learned and guessed, at random.
void Believe(Rng& rng, Job& job) {
  job.start_cost = rng.Int(0, 60);
  job.rescale_cost = rng.Int(0, 120);
  job.stall_left = job.workers.empty() ? 0 : rng.Int(0, 40);
  job.total_seconds = job.remaining_seconds * (1 + rng.Unit());
  job.running_seconds = rng.Pick(std::vector<double>{0, 899, 900, 5000, 14400, 20000, 30000, 90000});
  if (!rng.Chance(0.7)) return;
  auto measured = std::make_shared<std::vector<int>>();
  const bool nothing = rng.Chance(0.4);
  for (int n = 1; n <= job.max && !nothing; ++n) {
    if (rng.Chance(0.4)) measured->push_back(n);
  }
  job.measured = measured;
  job.guessed = rng.Chance(0.5);
}

TEST(Price, EqualsTheRuleWrittenDownTwice) {
  const auto policy = PriceWith();
  Check(
      [&] {
        Snapshot snapshot = *ArbitrarySnapshot({.max_jobs = 16, .max_nodes = 5});
        Rng rng(*rc::gen::arbitrary<std::uint64_t>());
        for (Job& job : snapshot.jobs) Believe(rng, job);
        for (Node& node : snapshot.nodes) {
          if (rng.Chance(0.2)) node.whole = node.gpus + rng.Int(1, 3);
        }
        const Allocation allocation = policy->Allocate(snapshot);
        std::map<std::string, int> sizes;
        for (const JobIndex i : snapshot.jobs.indices()) sizes[snapshot.jobs[i].name] = allocation.workers[i];
        RC_ASSERT(sizes == Transcribed(snapshot).Sizes());
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

// Concave curves, no stalls, and a price that only what everybody wants limits.
TEST(Price, RisesUntilWhatEverybodyWantsFitsOrIsTheMinimum) {
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
    int minima = 0;
    for (const JobIndex i : allocation.order) minima += snapshot.job(i).min;
    const bool all_fit = minima <= Capacity(snapshot);
    for (const JobIndex i : allocation.order) {
      if (all_fit) RC_ASSERT(allocation.workers[i] >= snapshot.job(i).min);
      // GPUs that are left are still handed out, which is no job's claim.
      if (!all_fit && allocation.workers[i] > snapshot.job(i).min)
        RC_ASSERT(allocation.reasons[i].code == ReasonCode::kGrew);
    }
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
  for (const JobIndex i : snapshot.jobs.indices()) {
    const bool is_old = snapshot.jobs[i].name == "old";
    EXPECT_EQ(guarded.workers[i], is_old ? 1 : 0);
    EXPECT_EQ(unguarded.workers[i], is_old ? 0 : 1);
  }
}

// "4 jobs share 8 GPUs" and what one more would bring and cost, in seconds of people.
TEST(Price, ReasonsSayWhatASizeMeansForTheJobAndTheOthers) {
  SnapshotBuilder builder;
  builder.Node("n0", 8);
  for (const char* name : {"a", "b", "c", "d"})
    builder.Add(
        JobBuilder(name).Sizes(1, 1, 8).Speedup({1, 1.6, 2, 2.3, 2.5, 2.6, 2.7, 2.7}).Remaining(3600));
  const Snapshot snapshot = builder.Build();
  const Allocation allocation = PriceWith()->Allocate(snapshot);
  EXPECT_EQ(Describe(allocation.reasons[0], snapshot, 0, allocation.workers[0]),
            "runs on 2 workers (2 GPUs): 4 jobs share 8 GPUs, all in use; 1 GPU more would save this job 7 "
            "min 30 s "
            "and cost the others about 7 min 30 s");
}

TEST(Price, AWaitingJobLearnsWhyOthersGoFirst) {
  const Snapshot snapshot = SnapshotBuilder()
                                .Node("n0", 2)
                                .Add(JobBuilder("a").Sizes(2, 2, 2).Remaining(100))
                                .Add(JobBuilder("b").Sizes(2, 2, 2).Remaining(5000))
                                .Build();
  const Allocation allocation = PriceWith()->Allocate(snapshot);
  const JobIndex b = 1;
  ASSERT_EQ(snapshot.job(b).name, "b");
  EXPECT_EQ(
      Describe(allocation.reasons[b], snapshot, b, 0),
      "waits: it needs 2 GPUs, and none was free when its turn came; 1 job before it in the order got GPUs, "
      "the last of them a. Jobs go first that have a higher priority, that are long overdue, that run "
      "already, "
      "or that need less GPU time until they end than its 1 h 23 min");
}

// A job of which nothing is known: one that asks for one of eight idle GPUs.
Job Silent(int num, int max) {
  Job job = JobBuilder("silent").Sizes(1, num, max).Build();
  job.guessed = true;
  job.measured = std::make_shared<const std::vector<int>>();
  job.curve = Curve::GuessedOver(*job.curve);
  GuessAnew(job);
  return job;
}

TEST(Price, ASilentJobTakesItsNodeAtOnceAndMoreNodesWithTime) {
  Snapshot snapshot = SnapshotBuilder().Nodes(4, 8).Build();
  snapshot.jobs.push_back(Silent(1, 64));
  Job& job = snapshot.jobs[0];
  const std::map<double, int> sizes = {{0, 8}, {3 * 3600, 8}, {4 * 3600, 16}, {8 * 3600, 32}};
  for (const auto& [ran, size] : sizes) {
    job.running_seconds = ran;
    EXPECT_EQ(PriceWith()->Allocate(snapshot).workers[0], size) << ran;
  }
  job.running_seconds = 0;
  EXPECT_EQ(PriceWith({{"reach", "0"}})->Allocate(snapshot).workers[0], 32);
}

TEST(Price, AJobThatReportsTriesUnmeasuredSizesAfterAWhile) {
  Snapshot snapshot = SnapshotBuilder().Nodes(4, 8).Build();
  snapshot.jobs.push_back(Silent(1, 64));
  Job& job = snapshot.jobs[0];
  job.guessed = false;
  const std::map<double, int> sizes = {{0, 1}, {899, 1}, {900, 8}, {4 * 3600, 16}};
  for (const auto& [ran, size] : sizes) {
    job.running_seconds = ran;
    EXPECT_EQ(PriceWith()->Allocate(snapshot).workers[0], size) << ran;
  }
}

// What a job is told of idle GPUs.
Reason IdleReason(const Snapshot& snapshot, int idle) {
  const auto policy = PriceWith();
  Allocation allocation = policy->Allocate(snapshot);
  policy->ExplainIdle(snapshot, idle, allocation);
  return allocation.reasons[0];
}

TEST(Price, PromisesMoreNodesOnlyWhereTimeBringsThem) {
  Snapshot snapshot = SnapshotBuilder().Nodes(8, 8).Build();
  snapshot.jobs.push_back(Silent(1, 64));
  Reason reason = IdleReason(snapshot, 56);
  EXPECT_EQ(reason.ceiling, Ceiling::kReach);
  EXPECT_EQ(reason.until, snapshot.now + 4 * 3600);
  snapshot.jobs[0] = Silent(16, 64);  // twice what was asked for, for ever
  reason = IdleReason(snapshot, 32);
  EXPECT_EQ(reason.ceiling, Ceiling::kUnmeasured);
  EXPECT_EQ(reason.until, 0);
  snapshot.jobs[0].guessed = false;
  reason = IdleReason(snapshot, 48);
  EXPECT_EQ(reason.ceiling, Ceiling::kReach) << "not after 900 s: what it asked for is more than a node";
  EXPECT_EQ(reason.until, snapshot.now + 4 * 3600);
}

TEST(Price, AJobThatHasAllGpusIsToldSo) {
  Snapshot snapshot = SnapshotBuilder().Node("n0", 8).Build();
  snapshot.jobs.push_back(Silent(1, 16));
  const Allocation allocation = PriceWith()->Allocate(snapshot);
  EXPECT_EQ(Describe(allocation.reasons[0], snapshot, 0, allocation.workers[0]),
            "runs on 8 workers (8 GPUs): it is alone on 8 GPUs, all in use; it has them all");
}

TEST(Price, ReachIsNothingOrSeconds) {
  for (const char* reach : {"1e-12", "0.5", "-1", "x"})
    EXPECT_FALSE(MakePolicy("Price", {{"reach", reach}})) << reach;
  for (const char* reach : {"0", "1", "1e6"}) EXPECT_TRUE(MakePolicy("Price", {{"reach", reach}})) << reach;
}

}  // namespace
}  // namespace voda::testing
