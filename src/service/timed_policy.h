// TimedPolicy: a policy that remembers how long its decisions took, for the metrics.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "policy/policy.h"

namespace voda {

class TimedPolicy final : public Policy {
 public:
  explicit TimedPolicy(std::unique_ptr<Policy> policy) : policy_(std::move(policy)) {}

  Allocation Allocate(const Snapshot& snapshot) const override {
    const auto began = std::chrono::steady_clock::now();
    Allocation allocation = policy_->Allocate(snapshot);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return allocation;
  }
  // Since it was last asked: a round may ask a policy several times.
  double TakeSeconds() const { return std::exchange(seconds_, 0); }

 private:
  std::unique_ptr<Policy> policy_;
  mutable double seconds_ = 0;  // the scheduler has one thread
};

}  // namespace voda
