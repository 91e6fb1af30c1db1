// ElasticSRJF: as ElasticFIFO, with the remaining time on one worker as the order.
// O(J log J + K) for J jobs and K GPUs.
#include "policy/accounts.h"
#include "policy/builtin.h"
#include "policy/growth.h"

namespace voda {

namespace {

class ElasticSrjf final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    const auto remaining = [&](JobIndex i) {
      return Accounts::Keys{.first = accounts.job(i).remaining_seconds};
    };
    auto order = accounts.Admission(remaining);
    accounts.Admit(
        order, [](const Job& job) { return job.min; }, ReasonCode::kRunsAtMin);
    GrowInTurn(accounts, accounts.one_priority() ? order : accounts.Ordered(remaining));
    return std::move(accounts).Finish(std::move(order), Entry::kMin);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeElasticSrjf() {
  return std::make_unique<ElasticSrjf>();
}

}  // namespace voda
