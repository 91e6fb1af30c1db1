// ElasticTiresias (TPDS'21): Tiresias, then two rules that use elasticity. Compaction: when more than N jobs
// got nothing, those outside the first queue shrink to their minimum. Expansion: what is spare goes to
// waiting jobs at their minimum, then one step at a time to the largest gain in speed-up per GPU. O(J log J +
// K log J) for J jobs and K GPUs.
#include "policy/builtin.h"
#include "policy/growth.h"

namespace voda {

namespace {

class ElasticTiresias final : public Policy {
 public:
  ElasticTiresias(LasOptions options, int compaction)
      : options_(std::move(options)), compaction_(compaction) {}

  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    LasPass pass = RankByService(accounts, snapshot, options_);
    accounts.Admit(
        pass.order, [](const Job& job) { return job.num; }, ReasonCode::kRunsAtNum);

    int waiting = 0;
    for (const JobIndex i : accounts.jobs()) waiting += accounts.at(i) < 0 ? 1 : 0;
    if (waiting > compaction_) {
      for (const JobIndex i : accounts.jobs()) {
        if (accounts.at(i) <= 0 || pass.queue[i] == 0) continue;
        accounts.Put(i, 0, ReasonCode::kShrankForQueue);
        accounts.reason(i).needs = waiting;
      }
    }
    accounts.Admit(
        pass.order, [](const Job& job) { return job.min; }, ReasonCode::kRunsAtMin);
    GrowByGain(accounts);

    Allocation allocation = std::move(accounts).Finish(pass.order, Entry::kMin);
    allocation.wake_at = NextQueueChange(snapshot, allocation, pass, options_);
    allocation.promoted = std::move(pass.promoted);
    return allocation;
  }

 private:
  LasOptions options_;
  int compaction_;
};

}  // namespace

std::unique_ptr<Policy> MakeElasticTiresias(LasOptions options, int compaction) {
  return std::make_unique<ElasticTiresias>(std::move(options), compaction);
}

}  // namespace voda
