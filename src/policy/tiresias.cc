// Tiresias (NSDI'19): jobs with the least attained service first, in queues, each at the size it asked for.
// O(J log J). Needs no estimate of remaining time. The rule of queues and promotion is in las.h.
#include "policy/builtin.h"

namespace voda {

namespace {

class Tiresias final : public Policy {
 public:
  explicit Tiresias(LasOptions options) : options_(std::move(options)) {}

  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    LasPass pass = RankByService(accounts, snapshot, options_);
    accounts.Admit(
        pass.order, [](const Job& job) { return job.num; }, ReasonCode::kRunsAtNum);
    Allocation allocation = std::move(accounts).Finish(pass.order, Entry::kNum);
    allocation.wake_at = NextQueueChange(snapshot, allocation, pass, options_);
    allocation.promoted = std::move(pass.promoted);
    return allocation;
  }

 private:
  LasOptions options_;
};

}  // namespace

std::unique_ptr<Policy> MakeTiresias(LasOptions options) {
  return std::make_unique<Tiresias>(std::move(options));
}

}  // namespace voda
