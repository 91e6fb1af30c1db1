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

// Whether all workers sit where they can stay, at an allowed size. If not, no guard stands in the way of
// mending that.
bool Whole(const Snapshot& snapshot, const Job& job) {
  return job.curve->IndexOf(job.held()) >= 0 &&
         std::all_of(job.workers.begin(), job.workers.end(), [&](NodeIndex at) {
           return at != kNoNode && snapshot.node(at).state != NodeState::kLost;
         });
}

Demand DemandOf(const Snapshot& snapshot, const Job& job, const Guards& guards) {
  if (job.workers.empty() || job.aside != Aside::kNo) return {};
  Demand demand;
  if (!job.preemptible) demand.floor = job.min;
  if (guards.min_runtime > 0 && snapshot.now < job.last_start + guards.min_runtime) {
    demand.floor = job.held();
    demand.until = job.last_start + guards.min_runtime;
  }
  if (guards.cooldown > 0 && snapshot.now < job.last_change + guards.cooldown) {
    demand.floor = job.held();
    demand.exact = true;
    demand.until = std::max(demand.until == kNever ? 0 : demand.until, job.last_change + guards.cooldown);
  }
  return demand.floor > 0 && Whole(snapshot, job) ? demand : Demand{};
}

// The policy's answer for the snapshot without the fixed jobs and the GPUs under them, beside those jobs.
Allocation AllocateRest(const Policy& policy, const Snapshot& snapshot, const PerJob<int>& fixed) {
  Snapshot rest{.now = snapshot.now, .nodes = snapshot.nodes, .jobs = {}};
  PerJob<JobIndex> index;  // of the rest -> of the snapshot
  for (const JobIndex i : snapshot.jobs.indices()) {
    const Job& job = snapshot.job(i);
    if (fixed[i] == 0) {
      rest.jobs.push_back(job);
      index.push_back(i);
      continue;
    }
    for (int worker = 0; worker < fixed[i]; ++worker) {
      Node& node = rest.nodes[job.workers[worker]];
      node.whole = node.whole_gpus();
      node.gpus -= job.gpus_per_worker;
    }
  }
  Allocation inner = policy.Allocate(rest);

  Allocation answer;
  answer.workers = fixed;
  answer.reasons.assign(snapshot.jobs.size(), Reason{.code = ReasonCode::kGuarded});
  if (!inner.most.empty()) answer.most = fixed;
  answer.entry = inner.entry;
  answer.wake_at = inner.wake_at;
  answer.note = std::move(inner.note);
  for (const JobIndex k : index.indices()) {
    const JobIndex at = index[k];
    answer.workers[at] = inner.workers[k];
    if (!inner.most.empty()) answer.most[at] = inner.most[k];
    Reason& reason = answer.reasons[at] = inner.reasons[k];
    if (reason.ahead != kNoJob) reason.ahead = index[reason.ahead];
  }
  for (const JobIndex k : inner.order) answer.order.push_back(index[k]);
  for (const JobIndex k : inner.promoted) answer.promoted.push_back(index[k]);
  return answer;
}

// Fixes a job at a size if the nodes it sits on can carry that beside what is fixed already.
bool Fix(const Snapshot& snapshot, JobIndex index, int workers, PerJob<int>& fixed, PerNode<int>& used) {
  const Job& job = snapshot.job(index);
  const auto seats = std::min<std::size_t>(workers, job.workers.size());
  bool fits = true;
  for (std::size_t worker = 0; worker < seats; ++worker) {
    const NodeIndex node = job.workers[worker];
    used[node] += job.gpus_per_worker;
    fits = fits && used[node] <= snapshot.nodes[node].gpus;
  }
  if (fits) {
    fixed[index] = workers;
    return true;
  }
  for (std::size_t worker = 0; worker < seats; ++worker) {
    used[job.workers[worker]] -= job.gpus_per_worker;
  }
  return false;
}

}  // namespace

Allocation GuardedPolicy::Allocate(const Snapshot& snapshot) const {
  PerJob<Demand> demands(snapshot.jobs.size());
  std::vector<JobIndex> guarded;  // those with a demand, by priority, then (submit time, name)
  for (const JobIndex i : snapshot.jobs.indices()) {
    demands[i] = DemandOf(snapshot, snapshot.job(i), guards_);
    if (demands[i].floor > 0) guarded.push_back(i);
  }
  if (guarded.empty()) return policy_.Allocate(snapshot);
  std::sort(guarded.begin(), guarded.end(), [&](JobIndex a, JobIndex b) {
    const Job& left = snapshot.job(a);
    const Job& right = snapshot.job(b);
    return left.priority != right.priority ? left.priority > right.priority : Earlier(left, right);
  });

  PerJob<int> fixed(snapshot.jobs.size(), 0);
  PerNode<int> used(snapshot.nodes.size(), 0);
  for (const JobIndex i : guarded) {
    Demand& demand = demands[i];
    if (demand.exact && !Fix(snapshot, i, demand.floor, fixed, used)) demand.floor = 0;
  }
  while (true) {
    const bool any = std::any_of(fixed.begin(), fixed.end(), [](int workers) { return workers > 0; });
    Allocation answer = any ? AllocateRest(policy_, snapshot, fixed) : policy_.Allocate(snapshot);
    bool broken = false;
    for (const JobIndex i : guarded) {
      Demand& demand = demands[i];
      if (answer.workers[i] >= demand.floor) continue;
      broken = true;
      if (!Fix(snapshot, i, demand.floor, fixed, used)) demand.floor = 0;  // its node shrank: mend it
    }
    if (broken) continue;

    // Guarded jobs first: they are the last to give way when seats are short.
    std::vector<JobIndex> order;
    answer.floor.assign(snapshot.jobs.size(), 0);
    for (const JobIndex i : guarded) {
      const Demand& demand = demands[i];
      if (demand.floor == 0) continue;
      order.push_back(i);
      answer.floor[i] = demand.floor;
      answer.wake_at = std::min(answer.wake_at, demand.until);
    }
    for (const JobIndex i : answer.order) {
      if (demands[i].floor == 0) order.push_back(i);
    }
    answer.order = std::move(order);
    return answer;
  }
}

}  // namespace voda
