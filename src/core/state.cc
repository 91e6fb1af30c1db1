#include "core/state.h"

#include <algorithm>

#include "base/check.h"

namespace voda {

std::string_view Name(JobStatus status) {
  switch (status) {
    case JobStatus::kSubmitted:
      return "Submitted";
    case JobStatus::kWaiting:
      return "Waiting";
    case JobStatus::kRunning:
      return "Running";
    case JobStatus::kCompleted:
      return "Completed";
    case JobStatus::kFailed:
      return "Failed";
    case JobStatus::kCanceled:
      return "Canceled";
  }
  return "";
}

JobIndex FindJob(const State& state, const std::string& name) {
  const auto id = state.job_ids.find(name);
  return id == state.job_ids.end() ? kNoJob : state.slot_of[id->second];
}

void Accrue(State& state, JobIndex index, double now) {
  ActiveJob& active = state.active[static_cast<std::size_t>(index)];
  Job& job = state.world.jobs[static_cast<std::size_t>(index)];
  job.stall_left = job.workers.empty() ? 0 : std::max(0.0, active.stalled_until - now);
  const double passed = now - active.accrued_at;
  if (passed <= 0) return;  // a clock that steps back adds nothing
  active.accrued_at = now;
  if (job.workers.empty()) {
    job.waiting_seconds += passed;
    active.waited += passed;
    return;
  }
  const double gpu_seconds = passed * job.gpus(job.held());
  job.running_seconds += passed;
  job.attained_gpu_seconds += gpu_seconds;
  active.ran += passed;
  active.gpu_seconds += gpu_seconds;
}

void AccrueAll(State& state, double now) {
  for (JobIndex i = 0; i < static_cast<JobIndex>(state.active.size()); ++i) Accrue(state, i, now);
}

bool RetryPending(const State& state, JobIndex index) {
  const ActiveJob& active = state.active[static_cast<std::size_t>(index)];
  const Job& job = state.world.job(index);
  return active.failures > 0 && !active.in_flight &&
         (job.aside == Aside::kBackingOff || job.workers != active.desired);
}

void CheckInvariants(const State& state) {
  VODA_CHECK(state.active.size() == state.world.jobs.size());
  for (std::size_t i = 0; i < state.active.size(); ++i) {
    const ActiveJob& active = state.active[i];
    const Job& job = state.world.jobs[i];
    VODA_CHECK(!Terminal(active.status));
    VODA_CHECK((active.status == JobStatus::kRunning) == !job.workers.empty());
    VODA_CHECK(state.slot_of[active.id] == static_cast<JobIndex>(i));
    VODA_CHECK(state.job_ids.at(job.name) == active.id);
    VODA_CHECK(job.waiting_seconds >= 0 && job.running_seconds >= 0 && job.attained_gpu_seconds >= 0);
    if (active.in_flight) VODA_CHECK(state.action_owner.at(active.in_flight->action.id) == active.id);
    const auto in_range = [&](NodeIndex at) {
      return at >= kNoNode && at < static_cast<NodeIndex>(state.world.nodes.size());
    };
    VODA_CHECK(std::all_of(job.workers.begin(), job.workers.end(), in_range));
    VODA_CHECK(std::all_of(active.desired.begin(), active.desired.end(), in_range));
    if (active.in_flight) {
      const auto& target = active.in_flight->action.workers;
      VODA_CHECK(std::all_of(target.begin(), target.end(), in_range));
    }
  }
  VODA_CHECK(state.node_index.size() == state.world.nodes.size());
  for (std::size_t i = 0; i < state.world.nodes.size(); ++i) {
    VODA_CHECK(state.node_index.at(state.world.nodes[i].name) == static_cast<NodeIndex>(i));
  }
  for (const std::string& name : state.removed) VODA_CHECK(state.node_index.contains(name));
}

}  // namespace voda
