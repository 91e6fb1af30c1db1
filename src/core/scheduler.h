// Scheduler: the loop around the core, the same live and simulated. Owns the state; one thread calls it.
//
//   for every event:   Handle(event, now)
//   when time passes:  Advance(now), again no later than NextWake(now)
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/ports.h"
#include "core/round.h"
#include "core/state.h"
#include "model/event.h"
#include "policy/policy.h"

namespace voda {

class Scheduler {
 public:
  // The cluster outlives the scheduler.
  Scheduler(CoreConfig config, std::shared_ptr<const Policy> policy, Cluster& cluster);

  // Returns the jobs that ended by it.
  std::vector<EndedJob> Handle(const Event& event, double now);

  struct Advanced {
    std::optional<Plan> plan;     // of the round, if there was one
    std::vector<EndedJob> ended;  // by what had to be given up
  };
  // Runs a round if one is due, and sends what there is to send.
  Advanced Advance(double now);

  // Advance in parts, for a caller who measures the decision or has it made elsewhere:
  //   Handle(Tick{}, now); if (BeginRound(now)) decide and FinishRound; Send(now);
  bool BeginRound(double now);  // whether a round was due and has begun
  void FinishRound(const Plan& plan, double now) { voda::FinishRound(state_, plan, now); }
  // Decided on View(state(), now) of the moment at which the round began; see round.h.
  bool FinishRound(const View& view, const Plan& plan, double now) {
    return voda::FinishRound(state_, view, plan, now);
  }
  void Send(double now);

  double NextWake(double now) const { return voda::NextWake(state_, now); }

  const State& state() const { return state_; }
  // Shared with those who ask it about a view, elsewhere and perhaps for longer than it decides here.
  const std::shared_ptr<const Policy>& policy() const { return policy_; }
  // Another algorithm takes effect with the next round; one that is under way is given up.
  void SetPolicy(std::shared_ptr<const Policy> policy);
  void SetRateLimit(double seconds) { state_.config.rate_limit = seconds; }
  // Rounds are counted on from here: after a restart, so that a round's number names one round for ever.
  void ResumeRounds(std::int64_t rounds) { state_.rounds = rounds; }

 private:
  State state_;
  std::shared_ptr<const Policy> policy_;
  Cluster& cluster_;
};

}  // namespace voda
