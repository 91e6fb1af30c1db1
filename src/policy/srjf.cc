// SRJF: shortest remaining job first; as FIFO, with the remaining time on one worker as the order.
// O(J log J).
#include "policy/builtin.h"
#include "policy/ledger.h"

namespace voda {

namespace {

class Srjf final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Ledger ledger(snapshot);
    auto order =
        ledger.Admission([&](JobIndex i) { return Ledger::Keys{.first = ledger.job(i).remaining_seconds}; });
    ledger.Admit(
        order, [](const Job& job) { return job.num; }, ReasonCode::kRunsAtNum);
    return std::move(ledger).Finish(std::move(order), Entry::kNum);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeSrjf() {
  return std::make_unique<Srjf>();
}

}  // namespace voda
