// FIFO: by submit time, each job gets the size it asked for if that fits; later jobs may fill in.
// O(J log J).
#include "policy/accounts.h"
#include "policy/builtin.h"

namespace voda {

namespace {

class Fifo final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    auto order = accounts.Admission([](JobIndex) { return Accounts::Keys{}; });
    accounts.Admit(
        order, [](const Job& job) { return job.num; }, ReasonCode::kRunsAtNum);
    return std::move(accounts).Finish(std::move(order), Entry::kNum);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeFifo() {
  return std::make_unique<Fifo>();
}

}  // namespace voda
