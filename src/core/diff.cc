#include "core/diff.h"

#include <algorithm>
#include <utility>

namespace voda {

namespace {

bool Waits(const ActiveJob& active, double now) {
  return active.in_flight || (active.failures > 0 && now < active.retry_at);
}

// GPUs by node that are held, or that an action in flight leads to.
PerNode<int> Occupied(const State& state) {
  PerNode<int> used(state.world.nodes.size(), 0);
  for (const JobIndex i : state.active.indices()) {
    const Job& job = state.world.jobs[i];
    const auto& observed = state.active[i].observed;
    for (const NodeIndex at : observed) {
      if (at != kNoNode) used[at] += job.gpus_per_worker;
    }
    if (!state.active[i].in_flight) continue;
    const auto& target = job.workers;
    for (std::size_t worker = 0; worker < target.size(); ++worker) {
      const NodeIndex now_at = worker < observed.size() ? observed[worker] : kNoNode;
      if (target[worker] != kNoNode && target[worker] != now_at) {
        used[target[worker]] += job.gpus_per_worker;
      }
    }
  }
  return used;
}

// Takes the seats that the job does not have yet if they are all free.
bool Reserve(const State& state, JobIndex index, PerNode<int>& used) {
  const Job& job = state.world.jobs[index];
  const std::vector<NodeIndex>& observed = state.active[index].observed;
  const std::vector<NodeIndex>& desired = state.active[index].desired;
  const auto each_new = [&](auto visit) {
    for (std::size_t worker = 0; worker < desired.size(); ++worker) {
      const NodeIndex at = worker < observed.size() ? observed[worker] : kNoNode;
      if (desired[worker] != at) visit(desired[worker]);
    }
  };
  bool fits = true;
  each_new([&](NodeIndex node) { used[node] += job.gpus_per_worker; });
  each_new([&](NodeIndex node) {
    const Node& target = state.world.nodes[node];
    fits = fits && target.state == NodeState::kReady && used[node] <= target.gpus;
  });
  if (!fits) each_new([&](NodeIndex node) { used[node] -= job.gpus_per_worker; });
  return fits;
}

int Moved(const std::vector<NodeIndex>& held, const std::vector<NodeIndex>& desired) {
  int moved = 0;
  const std::size_t both = std::min(held.size(), desired.size());
  for (std::size_t worker = 0; worker < both; ++worker) moved += held[worker] != desired[worker] ? 1 : 0;
  return moved;
}

}  // namespace

std::vector<Action> Diff(const State& state, double now) {
  std::vector<Action> actions;
  std::vector<JobIndex> taking;  // jobs that need seats
  bool in_flight = false;
  for (const JobIndex i : state.active.indices()) {
    const ActiveJob& active = state.active[i];
    const Job& job = state.world.jobs[i];
    in_flight = in_flight || active.in_flight.has_value();
    // Nothing is in flight for those that are not left alone. What others gave a job is taken back, too.
    if (active.observed == active.desired || Waits(active, now)) continue;
    const std::size_t held = active.observed.size();
    const std::size_t wanted = active.desired.size();
    if (wanted == 0) {
      actions.push_back({.id = 0, .kind = ActionKind::kHalt, .job = job.name, .workers = {}, .moved = 0});
    } else if (wanted < held) {
      actions.push_back({.kind = ActionKind::kShrink,
                         .job = job.name,
                         .workers = {active.observed.begin(),
                                     active.observed.begin() + static_cast<std::ptrdiff_t>(wanted)}});
    } else {
      taking.push_back(i);
    }
  }
  if (taking.empty()) return actions;

  PerNode<int> used = Occupied(state);
  for (const JobIndex i : taking) {
    const auto& held = state.active[i].observed;
    const auto& desired = state.active[i].desired;
    if (!Reserve(state, i, used)) continue;
    const ActionKind kind = held.empty()                   ? ActionKind::kStart
                            : held.size() < desired.size() ? ActionKind::kGrow
                                                           : ActionKind::kMove;
    actions.push_back(
        {.kind = kind, .job = state.world.jobs[i].name, .workers = desired, .moved = Moved(held, desired)});
  }
  if (!actions.empty() || in_flight || state.dirty || state.under_way) return actions;

  // Everyone waits for a seat and nobody is about to leave one: the seats wanted form a cycle. Open it.
  for (const JobIndex i : taking) {
    std::vector<NodeIndex> staying = state.active[i].observed;
    bool gives = false;
    for (std::size_t worker = 0; worker < staying.size(); ++worker) {
      if (staying[worker] == state.active[i].desired[worker] || staying[worker] == kNoNode) continue;
      staying[worker] = kNoNode;
      gives = true;
    }
    if (!gives) continue;
    actions.push_back(
        {.kind = ActionKind::kVacate, .job = state.world.jobs[i].name, .workers = std::move(staying)});
    break;
  }
  return actions;
}

}  // namespace voda
