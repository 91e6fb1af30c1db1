// ElasticSRJF: as ElasticFIFO, with the remaining time on one worker as the order.
// O(J log J + K) for J jobs and K GPUs.
#include "policy/builtin.h"
#include "policy/growth.h"
#include "policy/ledger.h"

namespace voda {

namespace {

class ElasticSrjf final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Ledger ledger(snapshot);
    const auto remaining = [&](JobIndex i) { return Ledger::Keys{.first = ledger.job(i).remaining_seconds}; };
    auto order = ledger.Admission(remaining);
    ledger.Admit(
        order, [](const Job& job) { return job.min; }, ReasonCode::kRunsAtMin);
    GrowInTurn(ledger, ledger.one_priority() ? order : ledger.Ordered(remaining));
    return std::move(ledger).Finish(std::move(order), Entry::kMin);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeElasticSrjf() {
  return std::make_unique<ElasticSrjf>();
}

}  // namespace voda
