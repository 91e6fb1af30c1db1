#include "core/decide.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "core/guards.h"

namespace voda {

namespace {

// Finds sizes that can be seated when those of the policy cannot. In the policy's order, as many jobs as
// possible keep what they were given; a job that is in the way where it sits is seated anew elsewhere; one
// that cannot be seated so takes the largest allowed size that can, or none. What that frees is offered again
// in that order: to the jobs after it, to those that wait, and, where the policy grows jobs, one step each in
// turn.
class GiveWay {
 public:
  GiveWay(const Snapshot& snapshot, const Allocation& granted, PlacementMode mode)
      : snapshot_(snapshot),
        granted_(granted),
        mode_(mode),
        workers_(snapshot.jobs.size(), 0),
        anew_(snapshot.jobs.size(), false) {
    placement_ = *Place(snapshot, workers_, granted.order, mode);
  }

  void Run() {
    KeepFloors();
    std::vector<Offer> offers;
    for (const JobIndex job : granted_.order) {
      const int workers = granted_.workers[job];
      if (workers > 0) offers.push_back({job, workers});
    }
    Take(offers, /*or_less=*/true);
    offers.clear();
    for (const JobIndex i : granted_.order) {
      if (workers_[i] > 0) continue;
      const Job& job = snapshot_.job(i);
      offers.push_back({i, granted_.entry == Entry::kNum ? job.num : job.min});
    }
    Take(offers, /*or_less=*/false);
    if (granted_.entry == Entry::kMin) GrowInTurn();
  }

  const PerJob<int>& workers() const { return workers_; }
  Placement& placement() { return placement_; }

 private:
  struct Offer {
    JobIndex job;
    int workers;
  };

  // Whoever must keep something gets that first, where it sits if it must be.
  void KeepFloors() {
    std::vector<Offer> floors;
    for (const JobIndex job : granted_.order) {
      if (granted_.floor.empty() || granted_.floor[job] == 0) continue;
      floors.push_back({job, granted_.floor[job]});
    }
    if (floors.empty()) return;
    Accept(std::move(placement_));
    if (TryAll(floors, 0, floors.size())) return;
    mode_ = PlacementMode::kStable;  // no packing was found, but they all have seats now
    Take(floors, /*or_less=*/true);
  }

  // Full placements are tried as long as they are few; beyond that a job must fit beside those already
  // seated.
  static constexpr int kTries = 400;

  int FreeSeats(const Job& job) const {
    int seats = 0;
    for (const NodeIndex n : snapshot_.nodes.indices()) {
      const Node& node = snapshot_.nodes[n];
      if (node.state == NodeState::kReady) seats += (node.gpus - used_[n]) / job.gpus_per_worker;
    }
    for (const NodeIndex at : job.workers) {
      if (at == kNoNode || snapshot_.node(at).state != NodeState::kCordoned) continue;
      if (snapshot_.node(at).gpus - used_[at] >= job.gpus_per_worker) ++seats;
    }
    return seats;
  }

  void Accept(Placement placement) {
    placement_ = std::move(placement);
    used_.assign(snapshot_.nodes.size(), 0);
    free_ = Capacity(snapshot_);
    for (const JobIndex i : snapshot_.jobs.indices()) {
      for (const NodeIndex at : placement_.workers(i)) {
        used_[at] += snapshot_.job(i).gpus_per_worker;
        free_ -= snapshot_.job(i).gpus_per_worker;
      }
    }
  }

  // Whether offers [begin, end) can be seated beside what is accepted; accepts them if so.
  bool TryAll(const std::vector<Offer>& offers, std::size_t begin, std::size_t end) {
    std::vector<int> before;
    for (std::size_t i = begin; i < end; ++i) {
      before.push_back(std::exchange(workers_[offers[i].job], offers[i].workers));
    }
    ++tries_;
    if (auto placed = Place(snapshot_, workers_, granted_.order, mode_, anew_)) {
      Accept(std::move(*placed));
      return true;
    }
    for (std::size_t i = begin; i < end; ++i) workers_[offers[i].job] = before[i - begin];
    return false;
  }

  bool TryOne(Offer offer, bool honest) {
    const Job& job = snapshot_.job(offer.job);
    const int extra = offer.workers - workers_[offer.job];
    if (job.gpus(extra) > free_) return false;
    if (!honest && extra > FreeSeats(job)) return false;
    if (TryAll({offer}, 0, 1)) return true;
    if (job.workers.empty() || !honest) return false;
    anew_[offer.job] = true;
    if (TryAll({offer}, 0, 1)) return true;
    anew_[offer.job] = false;
    return false;
  }

  void Take(const std::vector<Offer>& offers, bool or_less) {
    Accept(std::move(placement_));
    std::size_t at = 0;
    while (at < offers.size()) {
      // The longest run of offers that can be taken as they are, by halving.
      std::size_t run = or_less ? offers.size() - at : 1;
      const bool honest = or_less && tries_ < kTries;
      if (!honest) run = 1;
      while (run > 1 && !TryAll(offers, at, at + run)) run /= 2;
      if (run > 1) {
        at += run;
        continue;
      }
      if (!TryOne(offers[at], honest) && or_less) TakeLess(offers[at], honest);
      ++at;
    }
  }

  void TakeLess(Offer offer, bool honest) {
    const Curve& curve = *snapshot_.job(offer.job).curve;
    const int held = workers_[offer.job];
    const int most = std::min(offer.workers - 1, held + free_ / snapshot_.job(offer.job).gpus_per_worker);
    for (int index = curve.FloorIndex(most); index >= 0 && curve.size(index) > held; --index) {
      if (TryOne({offer.job, curve.size(index)}, honest && tries_ < kTries)) return;
    }
  }

  // One step each in turn, in the policy's order, while steps fit and can be seated.
  void GrowInTurn() {
    std::vector<JobIndex> growing = granted_.order;
    while (!growing.empty() && free_ > 0 && tries_ < 2 * kTries) {
      std::vector<JobIndex> grown;
      for (const JobIndex i : growing) {
        const Job& job = snapshot_.job(i);
        const int held = workers_[i];
        const int next = held == 0 ? -1 : job.curve->NextBetter(job.curve->IndexOf(held));
        const bool fixed = granted_.reasons[i].code == ReasonCode::kGuarded;
        if (next < 0 || fixed || job.gpus(job.curve->size(next) - held) > free_) continue;
        if (!granted_.most.empty() && job.curve->size(next) > granted_.most[i]) continue;
        if (TryOne({i, job.curve->size(next)}, tries_ < kTries)) grown.push_back(i);
        if (tries_ >= 2 * kTries) return;
      }
      growing = std::move(grown);
    }
  }

  const Snapshot& snapshot_;
  const Allocation& granted_;
  PlacementMode mode_;
  PerJob<int> workers_;
  PerJob<bool> anew_;  // jobs that do not insist on their seats
  Placement placement_;
  PerNode<int> used_;
  int free_ = 0;
  int tries_ = 0;
};

void ExplainMoves(Plan& plan) {
  for (const PaidMove& move : plan.placement.moves) {
    Reason& reason = plan.allocation.reasons[move.job];
    reason.moved = true;
    reason.move_saves = move.saves;
    reason.move_costs = move.costs;
    reason.repacked = move.repacked;
  }
}

int IdleGpus(const Snapshot& snapshot, const Placement& placement) {
  int idle = 0;
  for (const Node& node : snapshot.nodes) idle += node.state == NodeState::kReady ? node.gpus : 0;
  for (const JobIndex i : snapshot.jobs.indices()) {
    for (const NodeIndex at : placement.workers(i)) {
      if (snapshot.node(at).state == NodeState::kReady) idle -= snapshot.job(i).gpus_per_worker;
    }
  }
  return idle;
}

void Explain(const Snapshot& snapshot, const Policy& policy, Plan& plan) {
  ExplainMoves(plan);
  if (const int idle = IdleGpus(snapshot, plan.placement); idle > 0)
    policy.ExplainIdle(snapshot, idle, plan.allocation);
}

}  // namespace

Plan Decide(const Snapshot& snapshot, const Policy& policy, PlacementMode mode) {
  Plan plan{.allocation = policy.Allocate(snapshot), .placement = {}};
  VODA_CHECK(Valid(snapshot, plan.allocation));
  if (auto placement = Place(snapshot, plan.allocation.workers, plan.allocation.order, mode)) {
    plan.placement = std::move(*placement);
    Explain(snapshot, policy, plan);
    return plan;
  }
  // Whether moves pay is weighed once, for the sizes found.
  GiveWay seated(snapshot, plan.allocation, mode == PlacementMode::kCost ? PlacementMode::kStable : mode);
  seated.Run();
  for (const JobIndex i : snapshot.jobs.indices()) {
    const int granted = plan.allocation.workers[i];
    const int workers = seated.workers()[i];
    if (workers == granted) continue;
    Reason& reason = plan.allocation.reasons[i];
    reason.code = workers < granted ? ReasonCode::kGaveWay : ReasonCode::kSeatedLate;
    reason.needs = snapshot.jobs[i].gpus(std::max(granted, workers));
    plan.allocation.workers[i] = workers;
  }
  plan.placement = std::move(seated.placement());
  if (mode == PlacementMode::kCost) {
    if (auto weighed = Place(snapshot, plan.allocation.workers, plan.allocation.order, mode)) {
      plan.placement = std::move(*weighed);
    }
  }
  Explain(snapshot, policy, plan);
  return plan;
}

Plan Decide(const Snapshot& snapshot, const Policy& policy, const CoreConfig& config) {
  return Decide(snapshot, GuardedPolicy(policy, {config.min_runtime, config.cooldown}), config.placement);
}

}  // namespace voda
