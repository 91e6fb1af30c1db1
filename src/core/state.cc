#include "core/state.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/guess.h"

namespace voda {

JobIndex FindJob(const State& state, const std::string& name) {
  const auto id = state.job_ids.find(name);
  return id == state.job_ids.end() ? kNoJob : state.slot_of[id->second];
}

double AccrueSeen(Job& job, const ActiveJob& active, double now) {
  const bool waits = active.observed.empty();
  job.stall_left = waits ? 0 : std::max(0.0, active.stalled_until - now);
  const double passed = std::max(0.0, now - active.accrued_at);  // a clock that steps back adds nothing
  if (!waits) job.work_done += passed * GuessedSpeedup(static_cast<int>(active.observed.size()));
  if (job.guessed) GuessAnew(job);
  if (passed == 0) return 0;
  if (waits) {
    job.waiting_seconds += passed;
  } else {
    job.running_seconds += passed;
    job.attained_gpu_seconds += passed * job.gpus(static_cast<int>(active.observed.size()));
  }
  return passed;
}

void Accrue(State& state, JobIndex index, double now) {
  ActiveJob& active = state.active[index];
  Job& job = state.world.jobs[index];
  const double passed = AccrueSeen(job, active, now);
  if (passed == 0) return;
  active.accrued_at = now;
  if (active.observed.empty()) {
    active.waited += passed;
  } else {
    active.ran += passed;
    active.gpu_seconds += passed * job.gpus(static_cast<int>(active.observed.size()));
  }
}

void AccrueAll(State& state, double now) {
  for (const JobIndex i : state.active.indices()) Accrue(state, i, now);
}

double NextAllowed(const State& state, double now) {
  if (state.last_round > now) return now;  // a clock that stepped back must not delay rounds by as much
  const double limit = state.config.rate_limit;
  if (state.rests == 0) return state.last_round + limit;
  return state.last_round + std::min(limit, std::ldexp(1.0, state.rests - 1));
}

std::vector<NodeIndex> Claimed(const ActiveJob& active) {
  const auto& all = active.observed;
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(active.claimed, all.size()))};
}

bool RetryPending(const State& state, JobIndex index) {
  const ActiveJob& active = state.active[index];
  return active.failures > 0 && !active.in_flight &&
         (state.world.job(index).aside == Aside::kBackingOff || active.observed != active.desired);
}

void CheckInvariants(const State& state) {
  VODA_CHECK(state.active.size() == state.world.jobs.size());
  for (const JobIndex i : state.active.indices()) {
    const ActiveJob& active = state.active[i];
    const Job& job = state.world.jobs[i];
    VODA_CHECK(!Terminal(active.status));
    VODA_CHECK((active.status == JobStatus::kRunning) == !active.observed.empty());
    VODA_CHECK(job.workers == (active.in_flight ? active.in_flight->action.workers : Claimed(active)));
    VODA_CHECK(state.slot_of[active.id] == i);
    VODA_CHECK(state.job_ids.at(job.name) == active.id);
    VODA_CHECK(job.waiting_seconds >= 0 && job.running_seconds >= 0 && job.attained_gpu_seconds >= 0);
    if (active.in_flight) VODA_CHECK(state.action_owner.at(active.in_flight->action.id) == active.id);
    const auto in_range = [&](NodeIndex at) { return at >= kNoNode && at < state.world.nodes.end_index(); };
    for (const auto* seats : {&job.workers, &active.observed, &active.desired}) {
      VODA_CHECK(std::all_of(seats->begin(), seats->end(), in_range));
    }
  }
  VODA_CHECK(state.node_index.size() == state.world.nodes.size());
  for (const NodeIndex i : state.world.nodes.indices()) {
    VODA_CHECK(state.node_index.at(state.world.nodes[i].name) == i);
  }
  for (const std::string& name : state.removed) VODA_CHECK(state.node_index.contains(name));
}

}  // namespace voda
