// ElasticFIFO: by submit time, its minimum to each job that fits; then one step each in turn, in submit order
// whatever the priorities, as long as a step fits somewhere. O(J log J + K) for J jobs and K GPUs.
#include "policy/builtin.h"
#include "policy/growth.h"
#include "policy/ledger.h"

namespace voda {

namespace {

class ElasticFifo final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Ledger ledger(snapshot);
    auto order = ledger.Admission([](JobIndex) { return Ledger::Keys{}; });
    ledger.Admit(
        order, [](const Job& job) { return job.min; }, ReasonCode::kRunsAtMin);
    GrowInTurn(ledger, ledger.jobs());
    return std::move(ledger).Finish(std::move(order), Entry::kMin);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeElasticFifo() {
  return std::make_unique<ElasticFifo>();
}

}  // namespace voda
