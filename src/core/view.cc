#include "core/view.h"

#include <algorithm>

#include "core/decide.h"

namespace voda {

View::View(const State& state, double now)
    : world_(state.world),
      config_(state.config),
      round_(state.under_way ? state.under_way->number : 0),
      rounds_(state.rounds) {
  world_.now = now;
  jobs_.reserve(state.active.size());
  for (const JobIndex i : state.active.indices()) {
    const ActiveJob& active = state.active[i];
    AccrueSeen(world_.jobs[i], active, now);
    jobs_.push_back({active.id, active.category, active.status, active.observed,
                     std::min(active.claimed, active.observed.size()), active.desired, active.failure});
  }
  if (state.dirty) next_round_ = std::max(now, NextAllowed(state, now));
  if (state.under_way) next_round_ = now;
}

JobIndex View::Find(const std::string& name) const {
  const auto at =
      std::find_if(world_.jobs.begin(), world_.jobs.end(), [&](const Job& job) { return job.name == name; });
  return at == world_.jobs.end() ? kNoJob : JobIndex(at - world_.jobs.begin());
}

Plan Decide(const View& view, const Policy& policy) {
  return Decide(view.world(), policy, view.config());
}

}  // namespace voda
