#include "core/diff.h"

#include <algorithm>
#include <span>
#include <utility>

namespace voda {

namespace {

bool Waits(const ActiveJob& active, double now) {
  return active.in_flight || (active.failures > 0 && now < active.retry_at);
}

// GPUs by node that are held, or that an action in flight leads to.
std::vector<int> Occupied(const State& state) {
  std::vector<int> used(state.world.nodes.size(), 0);
  for (std::size_t i = 0; i < state.active.size(); ++i) {
    const Job& job = state.world.jobs[i];
    for (const NodeIndex at : job.workers) {
      if (at != kNoNode) used[static_cast<std::size_t>(at)] += job.gpus_per_worker;
    }
    if (!state.active[i].in_flight) continue;
    const auto& target = state.active[i].in_flight->action.workers;
    for (std::size_t worker = 0; worker < target.size(); ++worker) {
      const NodeIndex now_at = worker < job.workers.size() ? job.workers[worker] : kNoNode;
      if (target[worker] != kNoNode && target[worker] != now_at) {
        used[static_cast<std::size_t>(target[worker])] += job.gpus_per_worker;
      }
    }
  }
  return used;
}

// Takes the seats that the job does not have yet if they are all free.
bool Reserve(const State& state, const Job& job, std::span<const NodeIndex> desired, std::vector<int>& used) {
  const auto each_new = [&](auto visit) {
    for (std::size_t worker = 0; worker < desired.size(); ++worker) {
      const NodeIndex at = worker < job.workers.size() ? job.workers[worker] : kNoNode;
      if (desired[worker] != at) visit(static_cast<std::size_t>(desired[worker]));
    }
  };
  bool fits = true;
  each_new([&](std::size_t node) { used[node] += job.gpus_per_worker; });
  each_new([&](std::size_t node) {
    const Node& target = state.world.nodes[node];
    fits = fits && target.state == NodeState::kReady && used[node] <= target.gpus;
  });
  if (!fits) each_new([&](std::size_t node) { used[node] -= job.gpus_per_worker; });
  return fits;
}

int Moved(const Job& job, std::span<const NodeIndex> desired) {
  int moved = 0;
  const std::size_t both = std::min(job.workers.size(), desired.size());
  for (std::size_t worker = 0; worker < both; ++worker)
    moved += job.workers[worker] != desired[worker] ? 1 : 0;
  return moved;
}

}  // namespace

std::vector<Action> Diff(const State& state, double now) {
  std::vector<Action> actions;
  std::vector<std::size_t> taking;  // jobs that need seats
  bool in_flight = false;
  for (std::size_t i = 0; i < state.active.size(); ++i) {
    const ActiveJob& active = state.active[i];
    const Job& job = state.world.jobs[i];
    in_flight = in_flight || active.in_flight.has_value();
    if (job.workers == active.desired || Waits(active, now)) continue;
    const std::size_t held = job.workers.size();
    const std::size_t wanted = active.desired.size();
    if (wanted == 0) {
      actions.push_back({.id = 0, .kind = ActionKind::kHalt, .job = job.name, .workers = {}, .moved = 0});
    } else if (wanted < held) {
      actions.push_back(
          {.kind = ActionKind::kShrink,
           .job = job.name,
           .workers = {job.workers.begin(), job.workers.begin() + static_cast<std::ptrdiff_t>(wanted)}});
    } else {
      taking.push_back(i);
    }
  }
  if (taking.empty()) return actions;

  std::vector<int> used = Occupied(state);
  for (const std::size_t i : taking) {
    const Job& job = state.world.jobs[i];
    const auto& desired = state.active[i].desired;
    if (!Reserve(state, job, desired, used)) continue;
    const ActionKind kind = job.workers.empty()                   ? ActionKind::kStart
                            : job.workers.size() < desired.size() ? ActionKind::kGrow
                                                                  : ActionKind::kMove;
    actions.push_back({.kind = kind, .job = job.name, .workers = desired, .moved = Moved(job, desired)});
  }
  if (!actions.empty() || in_flight || state.dirty) return actions;

  // Everyone waits for a seat and nobody is about to leave one: the seats wanted form a cycle. Open it.
  for (const std::size_t i : taking) {
    const Job& job = state.world.jobs[i];
    std::vector<NodeIndex> staying = job.workers;
    bool gives = false;
    for (std::size_t worker = 0; worker < staying.size(); ++worker) {
      if (staying[worker] == state.active[i].desired[worker] || staying[worker] == kNoNode) continue;
      staying[worker] = kNoNode;
      gives = true;
    }
    if (!gives) continue;
    actions.push_back({.kind = ActionKind::kVacate, .job = job.name, .workers = std::move(staying)});
    break;
  }
  return actions;
}

}  // namespace voda
