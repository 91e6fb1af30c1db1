#include "core/round.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "core/decide.h"
#include "core/diff.h"

namespace voda {

namespace {

// "job a arrived, node n0 changed and 3 more"
std::string TriggerText(const State& state) {
  std::string text = fmt::format("{}", fmt::join(state.triggers, ", "));
  const auto more = state.trigger_count - static_cast<std::int64_t>(state.triggers.size());
  if (more > 0) text += fmt::format(" and {} more", more);
  return text;
}

// Writes a plan into the state as what is desired, job by job.
class PlanWriter {
 public:
  PlanWriter(State& state, const Snapshot& decided_on, const Plan& plan, double now)
      : state_(state), decided_on_(decided_on), plan_(plan), now_(now) {
    ++state_.rounds;
  }

  // Job `there` of the plan is `here` in the state, and gets these seats.
  void Want(JobIndex there, JobIndex here, std::span<const NodeIndex> seats) {
    ActiveJob& active = state_.active[here];
    if (std::equal(seats.begin(), seats.end(), active.desired.begin(), active.desired.end())) return;
    const int from = static_cast<int>(active.desired.size());
    const int to = static_cast<int>(seats.size());
    if (from != to) {
      const Reason& reason = plan_.allocation.reasons[there];
      active.last_change = {
          state_.rounds, now_, from, to, Describe(reason, decided_on_, there, to), state_.under_way->trigger};
    }
    active.desired.assign(seats.begin(), seats.end());
    changed_ = true;
  }

  void Promote(JobIndex here) {
    Accrue(state_, here, now_);
    Job& job = state_.world.jobs[here];
    job.attained_gpu_seconds = 0;
    job.waiting_seconds = 0;
    job.running_seconds = 0;
  }

  void Finish() {
    state_.wake_at = plan_.allocation.wake_at;
    state_.note = plan_.allocation.note;
    state_.undispatched = true;
    constexpr int kMostRests = 32;  // longer than any limit
    state_.rests = changed_ ? 0 : state_.under_way->after_quiet ? 1 : std::min(state_.rests + 1, kMostRests);
    state_.under_way.reset();
  }

 private:
  State& state_;
  const Snapshot& decided_on_;
  const Plan& plan_;
  double now_;
  bool changed_ = false;
};

// Whether a decision would see the same job, its times and estimates aside. `nodes` leads from positions of
// `then` to those of now.
bool SameToADecision(const Job& then, const Job& now, const PerNode<NodeIndex>& nodes) {
  const auto same_seat = [&](NodeIndex before, NodeIndex at) {
    return (before == kNoNode ? kNoNode : nodes[before]) == at;
  };
  return then.aside == now.aside && then.priority == now.priority && then.min == now.min &&
         then.num == now.num && then.max == now.max && then.curve->SameSizes(*now.curve) &&
         std::equal(then.workers.begin(), then.workers.end(), now.workers.begin(), now.workers.end(),
                    same_seat);
}

}  // namespace

bool RoundDue(const State& state, double now) {
  return !state.under_way && (state.dirty || now >= state.wake_at) && now >= NextAllowed(state, now);
}

double NextWake(const State& state, double now) {
  double next = state.undispatched ? now : kNever;
  if (!state.under_way) {
    const double allowed = NextAllowed(state, now);
    if (state.dirty) next = std::min(next, allowed);
    if (state.wake_at != kNever) next = std::min(next, std::max(state.wake_at, allowed));
  }
  for (const JobIndex i : state.active.indices()) {
    const ActiveJob& active = state.active[i];
    if (active.all_sizes) next = std::min(next, active.all_sizes->retry_at);
    if (active.in_flight) {
      next = std::min(next, active.in_flight->deadline);
    } else if (active.retry_at > now && RetryPending(state, i)) {
      next = std::min(next, active.retry_at);
    }
  }
  return std::max(next, now);
}

void BeginRound(State& state, double now) {
  VODA_CHECK(!state.under_way);
  AccrueAll(state, now);
  state.world.now = now;
  const bool after_quiet = now - state.last_round >= 2 * state.config.rate_limit;
  state.under_way = RoundUnderWay{++state.rounds_begun, after_quiet, TriggerText(state)};
  state.last_round = now;
  state.wake_at = kNever;
  state.dirty = false;
  state.triggers.clear();
  state.trigger_count = 0;
}

void FinishRound(State& state, const Plan& plan, double now) {
  VODA_CHECK(state.under_way.has_value());
  PlanWriter writer(state, state.world, plan, now);
  for (const JobIndex i : state.active.indices()) {
    writer.Want(i, i, plan.placement.workers(i));
  }
  for (const JobIndex i : plan.allocation.promoted) writer.Promote(i);
  writer.Finish();
}

bool FinishRound(State& state, const View& view, const Plan& plan, double now) {
  if (!state.under_way || state.under_way->number != view.round()) return false;
  PerNode<NodeIndex> nodes;  // of the view -> now; kNoNode: gone
  for (const Node& node : view.world().nodes) {
    const auto known = state.node_index.find(node.name);
    nodes.push_back(known == state.node_index.end() ? kNoNode : known->second);
  }
  // A job of the view as it is now, kNoJob where it changed.
  const auto unchanged = [&](JobIndex there) {
    const JobIndex here = state.slot_of[view.job(there).id];
    const bool same =
        here != kNoJob && SameToADecision(view.world().job(there), state.world.job(here), nodes);
    return same ? here : kNoJob;
  };
  PlanWriter writer(state, view.world(), plan, now);
  std::vector<NodeIndex> seats;
  for (const JobIndex there : view.jobs().indices()) {
    const JobIndex here = unchanged(there);
    seats.clear();
    for (const NodeIndex at : plan.placement.workers(there)) {
      seats.push_back(nodes[at]);
    }
    if (here == kNoJob || std::find(seats.begin(), seats.end(), kNoNode) != seats.end()) {
      if (!state.dirty) {
        state.dirty = true;
        state.triggers.emplace_back("jobs changed while the plan was made");
        ++state.trigger_count;
      }
      continue;
    }
    writer.Want(there, here, seats);
  }
  for (const JobIndex there : plan.allocation.promoted) {
    if (const JobIndex here = unchanged(there); here != kNoJob) writer.Promote(here);
  }
  writer.Finish();
  return true;
}

void AbandonRound(State& state) {
  if (!state.under_way) return;
  state.dirty = true;
  if (!state.under_way->trigger.empty()) {
    state.triggers.insert(state.triggers.begin(), std::move(state.under_way->trigger));
    ++state.trigger_count;
  }
  state.under_way.reset();
}

Plan RunRound(State& state, const Policy& policy, double now) {
  BeginRound(state, now);
  Plan plan = Decide(state.world, policy, state.config);
  FinishRound(state, plan, now);
  return plan;
}

std::vector<Action> Dispatch(State& state, double now) {
  state.undispatched = false;
  std::vector<Action> actions = Diff(state, now);
  for (Action& action : actions) {
    action.id = state.next_action++;
    const JobIndex index = FindJob(state, action.job);
    ActiveJob& active = state.active[index];
    state.action_owner.emplace(action.id, active.id);
    state.world.jobs[index].workers = action.workers;
    // It may come about after it failed; what an earlier order wanted is of the past.
    active.claimed = std::max(std::min(active.claimed, active.observed.size()), action.workers.size());
    active.in_flight = InFlight{action, now + state.config.action_timeout};
  }
  return actions;
}

}  // namespace voda
