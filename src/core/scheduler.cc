#include "core/scheduler.h"

#include <utility>

#include "core/reduce.h"

namespace voda {

Scheduler::Scheduler(CoreConfig config, std::unique_ptr<Policy> policy, Cluster& cluster, Store* store)
    : policy_(std::move(policy)), cluster_(cluster), store_(store) {
  state_.config = config;
}

void Scheduler::Handle(const Event& event, double now) {
  if (store_ != nullptr) store_->Append(event, now);
  Reduce(state_, event, now);
}

std::optional<Plan> Scheduler::Advance(double now) {
  Handle(Tick{}, now);
  std::optional<Plan> plan;
  if (RoundDue(state_, now)) plan = RunRound(state_, *policy_, now);
  if (state_.undispatched) {
    for (const Action& action : Dispatch(state_, now)) cluster_.Execute(action, state_.world.nodes);
  }
  return plan;
}

void Scheduler::SetPolicy(std::unique_ptr<Policy> policy) {
  policy_ = std::move(policy);
  state_.dirty = true;
}

}  // namespace voda
