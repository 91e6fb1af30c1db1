// FIFO: by submit time, each job gets the size it asked for if that fits; later jobs may fill in.
// O(J log J).
#include "policy/builtin.h"
#include "policy/ledger.h"

namespace voda {

namespace {

class Fifo final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Ledger ledger(snapshot);
    auto order = ledger.Admission([](JobIndex) { return Ledger::Keys{}; });
    ledger.Admit(
        order, [](const Job& job) { return job.num; }, ReasonCode::kRunsAtNum);
    return std::move(ledger).Finish(std::move(order), Entry::kNum);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeFifo() {
  return std::make_unique<Fifo>();
}

}  // namespace voda
