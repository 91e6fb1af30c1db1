// SRJF: shortest remaining job first; as FIFO, with the remaining time on one worker as the order.
// O(J log J).
#include "policy/accounts.h"
#include "policy/builtin.h"

namespace voda {

namespace {

class Srjf final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    auto order = accounts.Admission(
        [&](JobIndex i) { return Accounts::Keys{.first = accounts.job(i).remaining_seconds}; });
    accounts.Admit(
        order, [](const Job& job) { return job.num; }, ReasonCode::kRunsAtNum);
    return std::move(accounts).Finish(std::move(order), Entry::kNum);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeSrjf() {
  return std::make_unique<Srjf>();
}

}  // namespace voda
