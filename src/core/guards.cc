#include "core/guards.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace voda {

namespace {

// What the guards demand of one job: at least `floor` workers, or exactly that many.
struct Demand {
  int floor = 0;
  bool exact = false;
  double until = kNever;  // when it lapses by itself
};

Demand DemandOf(const Snapshot& snapshot, const Job& job, const Guards& guards) {
  if (job.workers.empty() || job.aside != Aside::kNo) return {};
  const bool whole = std::all_of(job.workers.begin(), job.workers.end(), [&](NodeIndex at) {
    return at != kNoNode && snapshot.node(at).state != NodeState::kLost;
  });
  if (!whole || job.curve->IndexOf(job.held()) < 0) return {};  // needs mending: no guard stands in the way
  Demand demand;
  if (!job.preemptible) demand.floor = job.min;
  if (snapshot.now < job.last_start + guards.min_runtime) {
    demand.floor = job.held();
    demand.until = job.last_start + guards.min_runtime;
  }
  if (snapshot.now < job.last_change + guards.cooldown) {
    demand.floor = job.held();
    demand.exact = true;
    demand.until = std::max(demand.until == kNever ? 0 : demand.until, job.last_change + guards.cooldown);
  }
  return demand;
}

// The snapshot without the fixed jobs and the GPUs under them.
Snapshot Rest(const Snapshot& snapshot, const std::vector<int>& fixed, std::vector<JobIndex>& index) {
  Snapshot rest{.now = snapshot.now, .nodes = snapshot.nodes, .jobs = {}};
  index.clear();
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot.jobs.size()); ++i) {
    const Job& job = snapshot.job(i);
    const int workers = fixed[static_cast<std::size_t>(i)];
    if (workers == 0) {
      rest.jobs.push_back(job);
      index.push_back(i);
      continue;
    }
    for (int worker = 0; worker < workers; ++worker) {
      rest.nodes[static_cast<std::size_t>(job.workers[static_cast<std::size_t>(worker)])].gpus -=
          job.gpus_per_worker;
    }
  }
  return rest;
}

// Fixes a job at a size if the nodes it sits on can carry that beside what is fixed already.
bool Fix(const Snapshot& snapshot, JobIndex index, int workers, std::vector<int>& fixed,
         std::vector<int>& used) {
  const Job& job = snapshot.job(index);
  const auto seats = std::min<std::size_t>(static_cast<std::size_t>(workers), job.workers.size());
  bool fits = true;
  for (std::size_t worker = 0; worker < seats; ++worker) {
    const auto node = static_cast<std::size_t>(job.workers[worker]);
    used[node] += job.gpus_per_worker;
    fits = fits && used[node] <= snapshot.nodes[node].gpus;
  }
  if (fits) {
    fixed[static_cast<std::size_t>(index)] = workers;
    return true;
  }
  for (std::size_t worker = 0; worker < seats; ++worker) {
    used[static_cast<std::size_t>(job.workers[worker])] -= job.gpus_per_worker;
  }
  return false;
}

}  // namespace

Allocation GuardedPolicy::Allocate(const Snapshot& snapshot) const {
  std::vector<Demand> demands(snapshot.jobs.size());
  std::vector<JobIndex> guarded;  // those with a demand, by priority, then (submit time, name)
  for (JobIndex i = 0; i < static_cast<JobIndex>(snapshot.jobs.size()); ++i) {
    demands[static_cast<std::size_t>(i)] = DemandOf(snapshot, snapshot.job(i), guards_);
    if (demands[static_cast<std::size_t>(i)].floor > 0) guarded.push_back(i);
  }
  if (guarded.empty()) return policy_.Allocate(snapshot);
  std::sort(guarded.begin(), guarded.end(), [&](JobIndex a, JobIndex b) {
    const Job& left = snapshot.job(a);
    const Job& right = snapshot.job(b);
    return left.priority != right.priority ? left.priority > right.priority : Earlier(left, right);
  });

  std::vector<int> fixed(snapshot.jobs.size(), 0);
  std::vector<int> used(snapshot.nodes.size(), 0);
  for (const JobIndex i : guarded) {
    Demand& demand = demands[static_cast<std::size_t>(i)];
    if (demand.exact && !Fix(snapshot, i, demand.floor, fixed, used)) demand.floor = 0;
  }
  while (true) {
    std::vector<JobIndex> index;
    const Snapshot rest = Rest(snapshot, fixed, index);
    Allocation inner = policy_.Allocate(rest);
    bool broken = false;
    for (std::size_t k = 0; k < index.size(); ++k) {
      Demand& demand = demands[static_cast<std::size_t>(index[k])];
      if (inner.workers[k] >= demand.floor) continue;
      broken = true;
      if (!Fix(snapshot, index[k], demand.floor, fixed, used)) demand.floor = 0;  // its node shrank: mend it
    }
    if (broken) continue;

    Allocation answer;
    answer.workers = fixed;
    answer.reasons.assign(snapshot.jobs.size(), Reason{.code = ReasonCode::kGuarded});
    answer.floor.assign(snapshot.jobs.size(), 0);
    answer.entry = inner.entry;
    answer.wake_at = inner.wake_at;
    answer.note = std::move(inner.note);
    // Guarded jobs first: they are the last to give way when seats are short.
    for (const JobIndex i : guarded) {
      const Demand& demand = demands[static_cast<std::size_t>(i)];
      if (demand.floor == 0) continue;
      answer.order.push_back(i);
      answer.floor[static_cast<std::size_t>(i)] = demand.floor;
      answer.wake_at = std::min(answer.wake_at, demand.until);
    }
    for (std::size_t k = 0; k < index.size(); ++k) {
      const auto at = static_cast<std::size_t>(index[k]);
      answer.workers[at] = inner.workers[k];
      answer.reasons[at] = inner.reasons[k];
      if (answer.reasons[at].ahead != kNoJob) {
        answer.reasons[at].ahead = index[static_cast<std::size_t>(answer.reasons[at].ahead)];
      }
    }
    for (const JobIndex k : inner.order) {
      const JobIndex i = index[static_cast<std::size_t>(k)];
      if (demands[static_cast<std::size_t>(i)].floor == 0) answer.order.push_back(i);
    }
    for (const JobIndex k : inner.promoted) answer.promoted.push_back(index[static_cast<std::size_t>(k)]);
    return answer;
  }
}

}  // namespace voda
