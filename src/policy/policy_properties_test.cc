// Safety properties of the eight policies on thousands of random snapshots each, and equality with the
// oracles, which are the rules written down a second time.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/registry.h"
#include "support/builders.h"
#include "support/check.h"
#include "support/generators.h"
#include "support/oracles.h"

namespace voda::testing {
namespace {

// A policy with options, and the same options for its oracle.
struct Variant {
  std::string label;
  std::string policy;
  PolicyOptions options = {};
  OracleOptions oracle = {};

  bool gives_num() const { return policy == "FIFO" || policy == "SRJF" || policy == "Tiresias"; }
  bool grows() const {
    return !gives_num() && policy != "FfDLOptimizer" && policy != "Price";
  }  // step by step
  bool is_tiresias() const { return policy == "Tiresias" || policy == "ElasticTiresias"; }
};

void PrintTo(const Variant& variant, std::ostream* os) {
  *os << variant.label;
}

const std::vector<Variant>& Variants() {
  static const std::vector<Variant> variants = {
      {"FIFO", "FIFO"},
      {"ElasticFIFO", "ElasticFIFO"},
      {"SRJF", "SRJF"},
      {"ElasticSRJF", "ElasticSRJF"},
      {"Tiresias", "Tiresias"},
      {"TiresiasThreeQueues",
       "Tiresias",
       {{"threshold", "1800,7200"}, {"knob", "4"}},
       {.thresholds = {1800, 7200}, .knob = 4, .compaction = 10}},
      {"ElasticTiresias", "ElasticTiresias"},
      {"ElasticTiresiasCompactsSoon",
       "ElasticTiresias",
       {{"threshold", "100,3600"}, {"knob", "40"}, {"compaction", "1"}},
       {.thresholds = {100, 3600}, .knob = 40, .compaction = 1}},
      {"FfDLOptimizer", "FfDLOptimizer"},
      {"AFS_L", "AFS-L"},
      {"Price", "Price"},
      {"PriceThroughput", "Price", {{"c", "4"}, {"guard", "1"}}},
  };
  return variants;
}

std::unique_ptr<Policy> Make(const Variant& variant) {
  auto policy = MakePolicy(variant.policy, variant.options);
  EXPECT_TRUE(policy.has_value()) << policy.error().message;
  return std::move(*policy);
}

// From a handful of jobs to dozens; `base` says what they may contain.
rc::Gen<Snapshot> Snapshots(SnapshotShape base = {}) {
  SnapshotShape few = base;
  few.max_jobs = 4;
  few.max_nodes = 2;
  SnapshotShape some = base;
  some.max_jobs = 12;
  some.max_nodes = 5;
  SnapshotShape many = base;
  many.max_jobs = 48;
  many.max_nodes = 8;
  many.max_workers = 12;
  return rc::gen::weightedOneOf<Snapshot>(
      {{4, ArbitrarySnapshot(few)}, {4, ArbitrarySnapshot(some)}, {2, ArbitrarySnapshot(many)}});
}

int UsedGpus(const Snapshot& snapshot, const Allocation& allocation) {
  int used = 0;
  for (const JobIndex i : snapshot.jobs.indices()) used += snapshot.jobs[i].gpus(allocation.workers[i]);
  return used;
}

std::vector<std::string> OrderNames(const Snapshot& snapshot, const Allocation& allocation) {
  std::vector<std::string> names;
  for (const JobIndex job : allocation.order) names.push_back(snapshot.job(job).name);
  return names;
}

// Everything an allocation says, by name, so that answers to the same question compare equal.
struct Digest {
  using ReasonKey = std::tuple<ReasonCode, int, int, int, std::string>;

  Digest(const Snapshot& snapshot, const Allocation& allocation, const std::string& without = "")
      : order(OrderNames(snapshot, allocation)),
        promoted(PromotedNames(snapshot, allocation)),
        wake_at(allocation.wake_at),
        note(allocation.note) {
    for (const JobIndex i : snapshot.jobs.indices()) {
      const std::string& name = snapshot.jobs[i].name;
      if (name == without) continue;
      workers[name] = allocation.workers[i];
      const Reason& reason = allocation.reasons[i];
      reasons[name] = {reason.code, reason.needs, reason.free, reason.jobs_ahead,
                       reason.ahead == kNoJob ? "" : snapshot.job(reason.ahead).name};
    }
  }

  friend bool operator==(const Digest&, const Digest&) = default;

  std::map<std::string, int> workers;
  std::map<std::string, ReasonKey> reasons;
  std::vector<std::string> order;
  std::vector<std::string> promoted;
  double wake_at;
  std::string note;
};

std::vector<Variant> VariantsThat(bool (*take)(const Variant&)) {
  std::vector<Variant> taken;
  std::copy_if(Variants().begin(), Variants().end(), std::back_inserter(taken), take);
  return taken;
}

class PolicyProperties : public ::testing::TestWithParam<Variant> {
 protected:
  const Variant& variant_ = GetParam();
  std::unique_ptr<Policy> policy_ = Make(GetParam());
};
class GrowingPolicyProperties : public PolicyProperties {};
class PolicyOracle : public PolicyProperties {};

TEST_P(PolicyProperties, GivesZeroOrAnAllowedSizeWithinCapacity) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    RC_ASSERT(allocation.workers.size() == snapshot.jobs.size());
    RC_ASSERT(allocation.reasons.size() == snapshot.jobs.size());
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Curve& curve = *snapshot.jobs[i].curve;
      bool allowed = allocation.workers[i] == 0;
      for (int k = 0; k < curve.count(); ++k) allowed = allowed || curve.size(k) == allocation.workers[i];
      RC_ASSERT(allowed);
    }
    RC_ASSERT(UsedGpus(snapshot, allocation) <= OracleCapacity(snapshot));
    RC_ASSERT(Valid(snapshot, allocation));
  });
}

// The order of the answer holds every job that can be seated exactly once, and the entry size is the
// policy's.
TEST_P(PolicyProperties, OrdersTheJobsThatCanBeSeated) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    std::multiset<std::string> want;
    for (const Job& job : snapshot.jobs) {
      if (OracleTakesPart(snapshot, job)) want.insert(job.name);
    }
    const auto names = OrderNames(snapshot, allocation);
    RC_ASSERT(std::multiset<std::string>(names.begin(), names.end()) == want);
    if (variant_.gives_num()) RC_ASSERT(allocation.entry == Entry::kNum);
    if (!variant_.gives_num() && variant_.policy != "ElasticTiresias")
      RC_ASSERT(allocation.entry == Entry::kMin);
  });
}

TEST_P(PolicyProperties, SaysTheSameForAnyInputOrder) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    const Snapshot other = Permuted(snapshot, rng);
    RC_ASSERT(Digest(snapshot, policy_->Allocate(snapshot)) == Digest(other, policy_->Allocate(other)));
  });
}

TEST_P(PolicyProperties, SaysTheSameWhateverItWasAskedBefore) {
  Check(
      [&] {
        const Snapshot snapshot = *Snapshots({.aside_jobs = true});
        const Digest first(snapshot, Make(variant_)->Allocate(snapshot));
        policy_->Allocate(*Snapshots());
        RC_ASSERT(Digest(snapshot, policy_->Allocate(snapshot)) == first);
      },
      500);
}

// With one GPU per worker and no cordoned node: a job that waits does not fit into what is free.
TEST_P(PolicyProperties, LeavesNoJobWaitingThatWouldFit) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.one_gpu_per_worker = true, .cordoned_nodes = false});
    const Allocation allocation = policy_->Allocate(snapshot);
    const int free = OracleCapacity(snapshot) - UsedGpus(snapshot, allocation);
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Job& job = snapshot.jobs[i];
      if (allocation.workers[i] == 0) RC_ASSERT((variant_.gives_num() ? job.num : job.min) > free);
    }
  });
}

// The same in GPUs counted together, whatever workers and nodes look like, for the jobs that can be seated at
// all.
TEST_P(PolicyProperties, LeavesNoSeatableJobWaitingThatWouldFitInTotal) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    const int free = OracleCapacity(snapshot) - UsedGpus(snapshot, allocation);
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Job& job = snapshot.jobs[i];
      if (allocation.workers[i] > 0 || !OracleTakesPart(snapshot, job)) continue;
      RC_ASSERT(job.gpus(variant_.gives_num() ? job.num : job.min) > free);
    }
  });
}

TEST_P(PolicyProperties, IsNotChangedByAJobThatCanNeverBeSeated) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    Snapshot crowded = snapshot;
    JobBuilder builder("misfit");
    // Too large together, or each worker larger than any node.
    if (*rc::gen::arbitrary<bool>()) {
      builder.Sizes(1000, 1000, 1000);
    } else {
      builder.Sizes(1, 2, 4).GpusPerWorker(64);
    }
    builder.Submit(*rc::gen::element(-5.0, 2.0, 2000.0)).Priority(*rc::gen::element(-9, 0, 9));
    builder.Remaining(*rc::gen::element(0.0, 100.0, 1e9));
    Job job = builder.Build();
    if (*rc::gen::arbitrary<bool>()) {  // ran once on nodes that are gone, and would be promoted
      job.first_start = 1;
      job.attained_gpu_seconds = 1e6;
      job.waiting_seconds = 1e6;
    }
    if (*rc::gen::inRange(0, 4) == 0) job.workers = {kNoNode};
    const auto at = static_cast<std::ptrdiff_t>(*rc::gen::inRange<std::size_t>(0, snapshot.jobs.size() + 1));
    crowded.jobs.insert(crowded.jobs.begin() + at, job);

    const Allocation allocation = policy_->Allocate(crowded);
    RC_ASSERT(SizesByName(crowded, allocation)["misfit"] == 0);
    RC_ASSERT(ReasonOf(crowded, allocation, "misfit").code == ReasonCode::kNeverFits);
    RC_ASSERT(Digest(crowded, allocation, "misfit") == Digest(snapshot, policy_->Allocate(snapshot)));
  });
}

TEST_P(PolicyProperties, GivesReasonsThatAreTrue) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Job& job = snapshot.jobs[i];
      const Reason& reason = allocation.reasons[i];
      const int workers = allocation.workers[i];
      RC_LOG() << job.name << " got " << workers << " because " << Name(reason.code) << " needs "
               << reason.needs << " free " << reason.free << " ahead " << reason.jobs_ahead << '\n';
      if (job.aside != Aside::kNo) {
        RC_ASSERT(workers == 0);
        RC_ASSERT((reason.code == ReasonCode::kHeld || reason.code == ReasonCode::kBackingOff));
        continue;
      }
      RC_ASSERT((reason.code == ReasonCode::kNeverFits) == !OracleSeatable(snapshot, job));
      switch (reason.code) {
        case ReasonCode::kNeverFits:
          RC_ASSERT(workers == 0);
          break;
        case ReasonCode::kWaits:
          RC_ASSERT(workers == 0);
          RC_ASSERT(reason.needs > reason.free);
          RC_ASSERT(reason.free >= 0);
          if (variant_.policy == "ElasticTiresias") {
            RC_ASSERT((reason.needs == job.gpus(job.min) || reason.needs == job.gpus(job.num)));
          } else {
            RC_ASSERT(reason.needs == job.gpus(variant_.gives_num() ? job.num : job.min));
          }
          break;
        case ReasonCode::kPriced:
          RC_ASSERT(workers > 0);
          break;
        case ReasonCode::kPricedOut:
          RC_ASSERT(workers == 0);
          break;
        case ReasonCode::kRunsAtNum:
          RC_ASSERT(workers == job.num);
          break;
        case ReasonCode::kRunsAtMin:
          RC_ASSERT(workers == job.min);
          break;
        case ReasonCode::kGrew:
          RC_ASSERT(workers > job.min);
          break;
        case ReasonCode::kShrankForQueue:
          RC_ASSERT(variant_.policy == "ElasticTiresias");
          RC_ASSERT(workers == job.min);
          break;
        case ReasonCode::kOptimum:
          RC_ASSERT(variant_.policy == "FfDLOptimizer");
          RC_ASSERT(workers >= job.min);
          break;
        default:
          RC_FAIL("a code that no policy gives");
      }
      RC_ASSERT(
          ((workers == 0) == (reason.code == ReasonCode::kWaits || reason.code == ReasonCode::kPricedOut ||
                              reason.code == ReasonCode::kNeverFits)));
      if (variant_.gives_num() && workers > 0) RC_ASSERT(reason.code == ReasonCode::kRunsAtNum);
      RC_ASSERT(!Describe(reason, snapshot, static_cast<JobIndex>(i), workers).empty());
    }
  });
}

// What a waiting job is told of its turn, where the order is all there is.
TEST_P(PolicyProperties, TellsWaitingJobsWhoIsAhead) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    int free = OracleCapacity(snapshot);
    int served = 0;
    std::set<JobIndex> before;
    for (const JobIndex job : allocation.order) {
      const Reason& reason = allocation.reasons[job];
      if (allocation.workers[job] == 0) {
        if (variant_.gives_num()) RC_ASSERT(reason.free == free);
        RC_ASSERT(reason.jobs_ahead <= static_cast<int>(before.size()));
        RC_ASSERT((reason.ahead == kNoJob) == (reason.jobs_ahead == 0));
        if (reason.ahead != kNoJob) RC_ASSERT(before.count(reason.ahead) == 1u);
        if (variant_.gives_num()) RC_ASSERT(reason.jobs_ahead >= served);
      } else {
        free -= snapshot.job(job).gpus(allocation.workers[job]);
        ++served;
      }
      before.insert(job);
    }
  });
}

// Every size above the entry has a higher speed-up than all allowed sizes between entry and it.
TEST_P(PolicyProperties, DoesNotGrowWhereTheSpeedupDoesNotRise) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Job& job = snapshot.jobs[i];
      const int workers = allocation.workers[i];
      if (workers == 0) continue;
      if (variant_.gives_num()) {
        RC_ASSERT(workers == job.num);
        continue;
      }
      // By its definition Price may leave a job at the size it holds, whatever that gains.
      if (variant_.policy == "Price" && workers == job.held()) continue;
      const auto rises_from = [&](int entry) {
        if (workers < entry) return false;
        const Curve& curve = *job.curve;
        const double reached = curve.speedup(curve.IndexOf(workers));
        for (int k = 0; k < curve.count(); ++k) {
          if (curve.size(k) >= entry && curve.size(k) < workers && curve.speedup(k) >= reached) return false;
        }
        return true;
      };
      RC_ASSERT((rises_from(job.min) || (variant_.policy == "ElasticTiresias" && rises_from(job.num))));
    }
  });
}

// What is left over is of no use to any running job (FfDL may leave what only worse combinations would use).
TEST_P(GrowingPolicyProperties, GrowsAsLongAsAStepFits) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    const int free = OracleCapacity(snapshot) - UsedGpus(snapshot, allocation);
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Job& job = snapshot.jobs[i];
      const int workers = allocation.workers[i];
      if (workers == 0) continue;
      const double now = job.curve->speedup(job.curve->IndexOf(workers));
      for (int k = 0; k < job.curve->count(); ++k) {
        const int larger = job.curve->size(k);
        if (larger > workers && job.curve->speedup(k) > now) RC_ASSERT(job.gpus(larger - workers) > free);
      }
    }
  });
}

TEST_P(PolicyOracle, Equals) {
  const std::map<std::string, std::function<OracleAnswer(const Snapshot&)>> oracles = {
      {"FIFO", OracleFifo},
      {"ElasticFIFO", OracleElasticFifo},
      {"SRJF", OracleSrjf},
      {"ElasticSRJF", OracleElasticSrjf},
      {"Tiresias", [&](const Snapshot& snapshot) { return OracleTiresias(snapshot, variant_.oracle); }},
      {"ElasticTiresias",
       [&](const Snapshot& snapshot) { return OracleElasticTiresias(snapshot, variant_.oracle); }},
      {"AFS-L", OracleAfsL},
  };
  const auto& oracle = oracles.at(variant_.policy);
  Check(
      [&] {
        const bool dyadic = *rc::gen::arbitrary<bool>();
        const Snapshot snapshot = *Snapshots({.dyadic_speedups = dyadic, .aside_jobs = true});
        const Allocation allocation = policy_->Allocate(snapshot);
        const OracleAnswer want = oracle(snapshot);
        RC_ASSERT(SizesByName(snapshot, allocation) == want.workers);
        RC_ASSERT(PromotedNames(snapshot, allocation) == want.promoted);
        if (variant_.policy != "AFS-L") RC_ASSERT(OrderNames(snapshot, allocation) == want.order);
      },
      4000);
}

// The wake is no later than the first queue that changes by itself, and no earlier than anything that does.
TEST_P(PolicyProperties, WakesWhenAQueueChanges) {
  Check([&] {
    const Snapshot snapshot = *Snapshots({.aside_jobs = true});
    const Allocation allocation = policy_->Allocate(snapshot);
    if (!variant_.is_tiresias()) {
      RC_ASSERT(allocation.wake_at == kNever);
      return;
    }
    const auto promoted = PromotedNames(snapshot, allocation);
    double change = std::numeric_limits<double>::infinity();  // a queue changes
    double any = change;                                      // or a job of the first queue is promoted
    for (const JobIndex i : snapshot.jobs.indices()) {
      const Job& job = snapshot.jobs[i];
      if (!OracleTakesPart(snapshot, job)) continue;
      const bool anew = std::binary_search(promoted.begin(), promoted.end(), job.name);
      const double attained = anew ? 0 : job.attained_gpu_seconds;
      if (allocation.workers[i] > 0) {
        for (const double threshold : variant_.oracle.thresholds) {
          if (threshold <= attained) continue;
          change = std::min(change, snapshot.now + (threshold - attained) / job.gpus(allocation.workers[i]));
        }
      } else if (job.first_start && !anew) {
        // A job stopped by this very answer may be due at once; its stop is an event of its own.
        const double left = variant_.oracle.knob * job.running_seconds - job.waiting_seconds;
        const double at = snapshot.now + std::max(0.0, left);
        any = std::min(any, at);
        if (left > 0 && attained >= variant_.oracle.thresholds.front()) change = std::min(change, at);
      }
    }
    any = std::min(any, change);
    RC_LOG() << "wake " << allocation.wake_at << " change " << change << " any " << any << '\n';
    RC_ASSERT(allocation.wake_at >= snapshot.now);
    // Up to 2 ms late, never early: a wake before the change would find nothing changed.
    RC_ASSERT((allocation.wake_at == change || allocation.wake_at <= change + 0.002));
    RC_ASSERT((allocation.wake_at == any || allocation.wake_at >= any));
  });
}

INSTANTIATE_TEST_SUITE_P(All, PolicyProperties, ::testing::ValuesIn(Variants()),
                         [](const auto& test) { return test.param.label; });
INSTANTIATE_TEST_SUITE_P(All, GrowingPolicyProperties,
                         ::testing::ValuesIn(VariantsThat([](const Variant& variant) {
                           return variant.grows();
                         })),
                         [](const auto& test) { return test.param.label; });
// FfDLOptimizer: see FfdlProperties.
INSTANTIATE_TEST_SUITE_P(All, PolicyOracle, ::testing::ValuesIn(VariantsThat([](const Variant& variant) {
                           return variant.policy != "FfDLOptimizer" &&
                                  variant.policy != "Price";  // price_test.cc
                         })),
                         [](const auto& test) { return test.param.label; });

// ---- FfDLOptimizer against the optimum ----

constexpr SnapshotShape kSmall = {.max_jobs = 5, .max_nodes = 3, .max_workers = 6};

SnapshotShape Dyadic(SnapshotShape shape) {
  shape.dyadic_speedups = true;
  return shape;
}

class FfdlProperties : public ::testing::Test {
 protected:
  Allocation Allocate(const Snapshot& snapshot) const {
    Allocation allocation = policy_->Allocate(snapshot);
    RC_ASSERT(allocation.note.empty());  // exact: no gap to report
    return allocation;
  }
  std::unique_ptr<Policy> policy_ = Make({"FfDLOptimizer", "FfDLOptimizer"});
};

// Speed-ups in eighths: sums are exact, so the choice among equal optima is determined.
TEST_F(FfdlProperties, IsTheBestOfAllCombinationsTiesIncluded) {
  Check(
      [&] {
        const Snapshot snapshot = *ArbitrarySnapshot(Dyadic(kSmall));
        const Allocation allocation = Allocate(snapshot);
        const FfdlAnswer want = OracleFfdlByEnumeration(snapshot);
        RC_ASSERT(SizesByName(snapshot, allocation) == want.answer.workers);
        RC_ASSERT(OrderNames(snapshot, allocation) == want.answer.order);
      },
      4000);
}

TEST_F(FfdlProperties, IsTheBestOfAllCombinationsForAnyDoubles) {
  Check(
      [&] {
        const Snapshot snapshot = *ArbitrarySnapshot(kSmall);
        const Sizes sizes = SizesByName(snapshot, Allocate(snapshot));
        const FfdlAnswer want = OracleFfdlByEnumeration(snapshot);
        RC_ASSERT(std::abs(SumOfSpeedups(snapshot, sizes) - want.value) <= 1e-9);
        if (want.unique) RC_ASSERT(sizes == want.answer.workers);
      },
      4000);
}

TEST_F(FfdlProperties, IsTheBestOfManyJobsTiesIncluded) {
  Check([&] {
    const Snapshot snapshot = *Snapshots(Dyadic({}));
    RC_ASSERT(SizesByName(snapshot, Allocate(snapshot)) == OracleFfdlByTable(snapshot).answer.workers);
  });
}

// The second oracle is checked by the first.
TEST_F(FfdlProperties, OraclesAgree) {
  Check([&] {
    const Snapshot snapshot = *ArbitrarySnapshot(Dyadic(kSmall));
    const FfdlAnswer a = OracleFfdlByEnumeration(snapshot);
    const FfdlAnswer b = OracleFfdlByTable(snapshot);
    RC_ASSERT(a.answer.workers == b.answer.workers);
    RC_ASSERT(a.value == b.value);
  });
}

}  // namespace
}  // namespace voda::testing
