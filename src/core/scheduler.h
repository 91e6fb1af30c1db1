// Scheduler: the loop around the core, the same live and simulated. Owns the state; one thread calls it.
//
//   for every event:   Handle(event, now)
//   when time passes:  Advance(now), again no later than NextWake(now)
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "core/ports.h"
#include "core/round.h"
#include "core/state.h"
#include "policy/policy.h"

namespace voda {

class Scheduler {
 public:
  // `store` may be null. The cluster and the store outlive the scheduler.
  Scheduler(CoreConfig config, std::unique_ptr<Policy> policy, Cluster& cluster, Store* store);

  void Handle(const Event& event, double now);
  // Runs a round if one is due and sends what there is to send. Returns the plan of the round.
  std::optional<Plan> Advance(double now);
  double NextWake(double now) const { return voda::NextWake(state_, now); }

  const State& state() const { return state_; }
  const Policy& policy() const { return *policy_; }
  // Another algorithm takes effect with the next round.
  void SetPolicy(std::unique_ptr<Policy> policy);
  void SetRateLimit(double seconds) { state_.config.rate_limit = seconds; }
  // Rounds are counted on from here: after a restart, so that a round's number names one round for ever.
  void ResumeRounds(std::int64_t rounds) { state_.rounds = rounds; }

 private:
  State state_;
  std::unique_ptr<Policy> policy_;
  Cluster& cluster_;
  Store* store_;
};

}  // namespace voda
