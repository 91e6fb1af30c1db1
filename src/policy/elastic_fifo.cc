// ElasticFIFO: by submit time, its minimum to each job that fits; then one step each in turn, in submit order
// whatever the priorities, as long as a step fits somewhere. O(J log J + K) for J jobs and K GPUs.
#include "policy/accounts.h"
#include "policy/builtin.h"
#include "policy/growth.h"

namespace voda {

namespace {

class ElasticFifo final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    auto order = accounts.Admission([](JobIndex) { return Accounts::Keys{}; });
    accounts.Admit(
        order, [](const Job& job) { return job.min; }, ReasonCode::kRunsAtMin);
    GrowInTurn(accounts, accounts.jobs());
    return std::move(accounts).Finish(std::move(order), Entry::kMin);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeElasticFifo() {
  return std::make_unique<ElasticFifo>();
}

}  // namespace voda
