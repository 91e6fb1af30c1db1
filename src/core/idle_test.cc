// GPUs stay idle only for a stated reason: whatever the snapshot, under the default policy.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/decide.h"
#include "policy/price_sizes.h"
#include "policy/registry.h"
#include "support/builders.h"
#include "support/check.h"
#include "support/generators.h"

namespace voda::testing {
namespace {

// What is told, learned and guessed of a job, at random.
void Believe(Rng& rng, Job& job) {
  job.start_cost = rng.Int(0, 60);
  job.rescale_cost = rng.Int(0, 120);
  job.migration_cost = rng.Int(0, 120);
  job.remaining_seconds = rng.Pick(std::vector<double>{1, 100, 5000, 90000});
  job.total_seconds = job.remaining_seconds;
  job.running_seconds = rng.Pick(std::vector<double>{0, 899, 900, 14400, 30000});
  if (rng.Chance(0.3)) return;
  auto measured = std::make_shared<std::vector<int>>();
  const bool nothing = rng.Chance(0.5);
  for (int n = 1; n <= job.max && !nothing; ++n) {
    if (rng.Chance(0.3)) measured->push_back(n);
  }
  job.measured = measured;
  job.guessed = rng.Chance(0.5);
}

class Idle {
 public:
  Idle(const Snapshot& snapshot, const Plan& plan) : snapshot_(snapshot), plan_(plan) {
    for (const Node& node : snapshot.nodes) {
      idle_.push_back(node.state == NodeState::kReady ? node.gpus : 0);
      if (node.state == NodeState::kReady) largest_ = std::max(largest_, node.gpus);
    }
    for (const JobIndex i : snapshot.jobs.indices()) {
      for (const NodeIndex at : plan.placement.workers(i)) idle_[at] -= snapshot.job(i).gpus_per_worker;
    }
  }

  // The faster sizes that the idle GPUs of the nodes would seat.
  std::vector<int> Usable(JobIndex i) const {
    const Job& job = snapshot_.job(i);
    const int workers = plan_.allocation.workers[i];
    int seats = 0;
    for (const int gpus : idle_) seats += std::max(0, gpus) / job.gpus_per_worker;
    std::vector<int> sizes;
    for (int k = 0; k < job.curve->count(); ++k) {
      const int size = job.curve->size(k);
      if (size > workers && size - workers <= seats && Speed(job, size) > Speed(job, workers))
        sizes.push_back(size);
    }
    return sizes;
  }

  // Whether what the reason says is so.
  bool True(JobIndex i, const std::vector<int>& usable) const {
    const Job& job = snapshot_.job(i);
    const int workers = plan_.allocation.workers[i];
    const Reason& reason = plan_.allocation.reasons[i];
    const auto any = [&](const auto& holds) { return std::any_of(usable.begin(), usable.end(), holds); };
    const int measured = job.measured && !job.measured->empty() ? job.measured->back() : 0;
    switch (reason.ceiling) {
      case Ceiling::kNone:
        return false;
      case Ceiling::kNotFaster:
        return !any([&](int size) { return Speed(job, size) >= 1.05 * BestUpTo(job, workers); });
      case Ceiling::kUnmeasured:
        return any(
            [&](int size) { return size > std::max(job.num, 2 * measured) || job.gpus(size) > largest_; });
      case Ceiling::kTrial:
        return !job.guessed && measured == 0 && job.running_seconds < kTrialAfter;
      case Ceiling::kReach:
        return reason.until > 0 ? OutOfReach(job, usable) : any([&](int size) { return Odd(job, size); });
      case Ceiling::kStall:
        return any([&](int size) {
          const double saved =
              job.remaining_seconds / Speed(job, workers) - job.remaining_seconds / Speed(job, size);
          return workers == job.held() && saved <= job.rescale_cost;
        });
    }
    return false;
  }

 private:
  static int Known(const Job& job) {
    return std::max(job.num, job.measured->empty() ? 0 : job.measured->back());
  }

  // Whether one of these sizes is kept from the job for as long as it has not run long enough.
  bool OutOfReach(const Job& job, const std::vector<int>& sizes) const {
    if (!job.measured || !(job.guessed || job.measured->empty())) return false;
    constexpr double kReachSeconds = 4 * 3600;
    const bool one_node = job.gpus(Known(job)) <= largest_;
    if (!one_node && (job.guessed || job.running_seconds >= kReachSeconds)) return false;
    const double nodes = std::exp2(std::floor(job.running_seconds / kReachSeconds));
    return std::any_of(sizes.begin(), sizes.end(), [&](int size) {
      return one_node ? job.gpus(size) > nodes * largest_ : size > job.num;
    });
  }
  // Whether a size is above one node, not in whole nodes, and nobody measured it or asked for it.
  bool Odd(const Job& job, int size) const {
    return job.measured && job.gpus(size) > largest_ && job.gpus(size) % largest_ != 0 && size != job.num &&
           size != job.max &&
           std::find(job.measured->begin(), job.measured->end(), size) == job.measured->end();
  }
  static double BestUpTo(const Job& job, int size) {
    double best = 0;
    for (int k = 0; k <= job.curve->IndexOf(size); ++k) best = std::max(best, job.curve->speedup(k));
    return best;
  }
  static double Speed(const Job& job, int size) { return job.curve->speedup(job.curve->IndexOf(size)); }

  const Snapshot& snapshot_;
  const Plan& plan_;
  PerNode<int> idle_;
  int largest_ = 0;
};

TEST(Idle, GpusThatAJobCouldUseStayIdleOnlyForAStatedReason) {
  const auto policy = MakePolicy("Price");
  ASSERT_TRUE(policy);
  Check(
      [&] {
        Snapshot snapshot = *ArbitrarySnapshot({.max_jobs = 8, .max_nodes = 5, .max_workers = 24});
        Rng rng(*rc::gen::arbitrary<std::uint64_t>());
        for (Job& job : snapshot.jobs) Believe(rng, job);
        CoreConfig config;
        if (rng.Chance(0.3)) config.cooldown = 600;
        const Plan plan = Decide(snapshot, **policy, config);
        const Idle idle(snapshot, plan);
        for (const JobIndex i : snapshot.jobs.indices()) {
          const Reason& reason = plan.allocation.reasons[i];
          if (plan.allocation.workers[i] == 0 || reason.code == ReasonCode::kGuarded) continue;
          const std::vector<int> usable = idle.Usable(i);
          if (usable.empty()) continue;
          RC_LOG() << snapshot.job(i).name << " on " << plan.allocation.workers[i] << ": "
                   << Name(reason.code) << ", \"" << Name(reason.ceiling) << "\""
                   << (snapshot.job(i).guessed ? ", guessed" : "") << ", ran "
                   << snapshot.job(i).running_seconds << ", measured "
                   << (snapshot.job(i).measured ? static_cast<int>(snapshot.job(i).measured->size()) : -1)
                   << std::endl;
          // Of a job that gave way for want of seats, a move that was weighed after that may have opened one.
          const bool opened = reason.code == ReasonCode::kGaveWay && reason.ceiling == Ceiling::kNone &&
                              !plan.placement.moves.empty();
          RC_ASSERT(opened || idle.True(i, usable));
        }
      },
      3000);
}

// As a new user meets it: eight idle slots, a job that asks for one and may use eight, no reports.
TEST(Idle, AJobOfWhichNothingIsKnownTakesTheWholeNode) {
  const auto policy = MakePolicy("Price");
  Snapshot snapshot = SnapshotBuilder().Node("n0", 8).Add(JobBuilder("a").Sizes(1, 1, 8)).Build();
  Job& job = snapshot.jobs[0];
  job.guessed = true;
  job.measured = std::make_shared<const std::vector<int>>();
  job.curve = Curve::GuessedOver(*job.curve);
  job.remaining_seconds = job.total_seconds = 3600;
  EXPECT_EQ(Decide(snapshot, **policy, PlacementMode::kCost).allocation.workers[0], 8);
}

}  // namespace
}  // namespace voda::testing
