#include "core/round.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/decide.h"
#include "core/diff.h"
#include "core/guards.h"

namespace voda {

namespace {

// A clock that stepped back must not delay rounds by as much.
double NextAllowed(const State& state, double now) {
  return state.last_round > now ? now : state.last_round + state.config.rate_limit;
}

// While this lives, jobs with an action in flight hold what it leads to: it is part of what is observed, and
// a round must not plan the job anew.
class InFlightAsHeld {
 public:
  explicit InFlightAsHeld(State& state) : state_(state) { Swap(); }
  ~InFlightAsHeld() { Swap(); }
  InFlightAsHeld(const InFlightAsHeld&) = delete;
  InFlightAsHeld& operator=(const InFlightAsHeld&) = delete;

 private:
  void Swap() {
    for (std::size_t i = 0; i < state_.active.size(); ++i) {
      auto& in_flight = state_.active[i].in_flight;
      if (in_flight) std::swap(state_.world.jobs[i].workers, in_flight->action.workers);
    }
  }
  State& state_;
};

void Promote(State& state, const std::vector<JobIndex>& promoted) {
  for (const JobIndex i : promoted) {
    Job& job = state.world.jobs[static_cast<std::size_t>(i)];
    job.attained_gpu_seconds = 0;
    job.waiting_seconds = 0;
    job.running_seconds = 0;
  }
}

}  // namespace

std::string TriggerText(const State& state) {
  std::string text = fmt::format("{}", fmt::join(state.triggers, ", "));
  const auto more = state.trigger_count - static_cast<std::int64_t>(state.triggers.size());
  if (more > 0) text += fmt::format(" and {} more", more);
  return text;
}

bool RoundDue(const State& state, double now) {
  return (state.dirty || now >= state.wake_at) && now >= NextAllowed(state, now);
}

double NextWake(const State& state, double now) {
  double next = state.undispatched ? now : kNever;
  const double allowed = NextAllowed(state, now);
  if (state.dirty) next = std::min(next, allowed);
  if (state.wake_at != kNever) next = std::min(next, std::max(state.wake_at, allowed));
  for (std::size_t i = 0; i < state.active.size(); ++i) {
    const ActiveJob& active = state.active[i];
    if (active.in_flight) {
      next = std::min(next, active.in_flight->deadline);
    } else if (active.retry_at > now && RetryPending(state, static_cast<JobIndex>(i))) {
      next = std::min(next, active.retry_at);
    }
  }
  return std::max(next, now);
}

Plan DecideNow(State& state, const Policy& policy) {
  const InFlightAsHeld held(state);
  const GuardedPolicy guarded(policy, {state.config.min_runtime, state.config.cooldown});
  return Decide(state.world, guarded, state.config.placement);
}

Plan RunRound(State& state, const Policy& policy, double now) {
  // 1. Snapshot: the observed world, with times up to now.
  AccrueAll(state, now);
  state.world.now = now;

  // 2. Policy and placement.
  Plan plan = DecideNow(state, policy);

  // 3. The plan is what is desired from now on; what changed is remembered with its reason.
  ++state.rounds;
  const std::string trigger = TriggerText(state);
  for (JobIndex i = 0; i < static_cast<JobIndex>(state.active.size()); ++i) {
    ActiveJob& active = state.active[static_cast<std::size_t>(i)];
    const auto seats = std::as_const(plan.placement).workers(i);
    if (std::equal(seats.begin(), seats.end(), active.desired.begin(), active.desired.end())) continue;
    const int from = static_cast<int>(active.desired.size());
    const int to = static_cast<int>(seats.size());
    if (from != to) {
      active.last_change = {
          state.rounds,
          now,
          from,
          to,
          Describe(plan.allocation.reasons[static_cast<std::size_t>(i)], state.world, i, to),
          trigger};
    }
    active.desired.assign(seats.begin(), seats.end());
  }
  Promote(state, plan.allocation.promoted);
  state.wake_at = plan.allocation.wake_at;
  state.note = plan.allocation.note;
  state.last_round = now;
  state.dirty = false;
  state.undispatched = true;
  state.triggers.clear();
  state.trigger_count = 0;
  return plan;
}

std::vector<Action> Dispatch(State& state, double now) {
  state.undispatched = false;
  std::vector<Action> actions = Diff(state, now);
  for (Action& action : actions) {
    action.id = state.next_action++;
    ActiveJob& active = state.active[static_cast<std::size_t>(FindJob(state, action.job))];
    state.action_owner.emplace(action.id, active.id);
    active.in_flight = InFlight{action, now + state.config.action_timeout};
  }
  return actions;
}

}  // namespace voda
