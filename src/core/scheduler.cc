#include "core/scheduler.h"

#include <utility>

#include "core/decide.h"
#include "core/reduce.h"

namespace voda {

Scheduler::Scheduler(CoreConfig config, std::shared_ptr<const Policy> policy, Cluster& cluster)
    : policy_(std::move(policy)), cluster_(cluster) {
  state_.config = config;
}

std::vector<EndedJob> Scheduler::Handle(const Event& event, double now) {
  return Reduce(state_, event, now);
}

Scheduler::Advanced Scheduler::Advance(double now) {
  Advanced advanced;
  advanced.ended = Handle(Tick{}, now);
  if (BeginRound(now)) {
    advanced.plan = Decide(state_.world, *policy_, state_.config);
    FinishRound(*advanced.plan, now);
  }
  Send(now);
  return advanced;
}

bool Scheduler::BeginRound(double now) {
  if (!RoundDue(state_, now)) return false;
  voda::BeginRound(state_, now);
  return true;
}

void Scheduler::Send(double now) {
  if (!state_.undispatched) return;
  for (const Action& action : Dispatch(state_, now)) cluster_.Execute(action, state_.world.nodes);
}

void Scheduler::SetPolicy(std::shared_ptr<const Policy> policy) {
  policy_ = std::move(policy);
  AbandonRound(state_);
  state_.dirty = true;
}

}  // namespace voda
