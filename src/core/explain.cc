#include "core/explain.h"

#include <algorithm>

#include "core/round.h"

namespace voda {

std::optional<Explanation> Explain(const State& state, const Policy& policy, const std::string& name,
                                   double now) {
  const JobIndex index = FindJob(state, name);
  if (index == kNoJob) return std::nullopt;
  State copy = state;
  AccrueAll(copy, now);
  copy.world.now = now;
  const Plan plan = DecideNow(copy, policy);

  const ActiveJob& active = state.active[static_cast<std::size_t>(index)];
  const auto& order = plan.allocation.order;
  const auto at = std::find(order.begin(), order.end(), index);
  const Reason& reason = plan.allocation.reasons[static_cast<std::size_t>(index)];
  Explanation explanation;
  explanation.job = name;
  explanation.status = active.status;
  explanation.workers = state.world.job(index).held();
  explanation.planned = plan.allocation.workers[static_cast<std::size_t>(index)];
  explanation.position = at == order.end() ? 0 : static_cast<int>(at - order.begin()) + 1;
  explanation.code = reason.code;
  explanation.text = Describe(reason, copy.world, index, explanation.planned);
  explanation.last_change = active.last_change;
  return explanation;
}

}  // namespace voda
