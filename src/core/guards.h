// Guards against churn, around any policy: a running job is not shrunk or stopped before min_runtime, its
// size does not change a second time within cooldown, and one that is not preemptible is never stopped.
//
// The policy decides over the jobs it may decide about: a job whose size is fixed is taken out, together with
// the GPUs it sits on; where the policy's answer would break a guard, that job is fixed at what the guard
// demands and the policy is asked again. Off (no limits, every job preemptible) it costs nothing and changes
// nothing.
#pragma once

#include "policy/policy.h"

namespace voda {

struct Guards {
  double min_runtime = 0;
  double cooldown = 0;
};

class GuardedPolicy final : public Policy {
 public:
  GuardedPolicy(const Policy& policy, Guards guards) : policy_(policy), guards_(guards) {}
  Allocation Allocate(const Snapshot& snapshot) const override;
  void ExplainIdle(const Snapshot& snapshot, int idle, Allocation& allocation) const override {
    policy_.ExplainIdle(snapshot, idle, allocation);
  }

 private:
  const Policy& policy_;
  Guards guards_;
};

}  // namespace voda
