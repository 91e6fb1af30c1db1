// FfDLOptimizer (MASCOTS'20): admit by submit time each job whose minimum fits beside those admitted before
// it, then the exact maximum of the sum of speed-ups; among equal optima the fewest GPUs, then more to the
// earlier job.
//
// Where every curve is concave over consecutive sizes and all workers are of one width, taking the largest
// gain first is exact and costs O(J log J + K log J). Everything else is a multiple-choice knapsack
// (knapsack.h), slower, and bounded in work: if the bound is hit, the note of the answer gives the gap to the
// optimum.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "policy/accounts.h"
#include "policy/builtin.h"
#include "policy/growth.h"
#include "policy/knapsack.h"

namespace voda {

namespace {

// Returns the gap to the optimum, 0 when the answer is exact.
double SolveAsKnapsack(Accounts& accounts, const std::vector<JobIndex>& admitted) {
  std::vector<KnapsackItem> items(admitted.size());
  std::vector<std::vector<int>> indices(admitted.size());
  int unit = 0;  // greatest common divisor of all weights
  for (std::size_t k = 0; k < admitted.size(); ++k) {
    const Job& job = accounts.job(admitted[k]);
    // A size that a smaller one equals or beats is never part of the answer: the chain of better sizes is
    // enough.
    for (int at = 0; at >= 0; at = job.curve->NextBetter(at)) {
      const int extra = job.gpus(job.curve->size(at) - job.min);
      if (extra > accounts.free()) break;
      items[k].push_back({extra, job.curve->speedup(at)});
      indices[k].push_back(at);
      unit = std::gcd(unit, extra);
    }
  }
  if (unit == 0) return 0;
  for (KnapsackItem& item : items) {
    for (KnapsackOption& option : item) option.weight /= unit;
  }
  const KnapsackAnswer answer = SolveKnapsack(items, accounts.free() / unit);
  for (std::size_t k = 0; k < admitted.size(); ++k) {
    accounts.Put(admitted[k], indices[k][answer.choice[k]], ReasonCode::kOptimum);
  }
  return answer.gap;
}

class FfdlOptimizer final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    auto order = accounts.Admission([](JobIndex) { return Accounts::Keys{}; });
    accounts.Admit(
        order, [](const Job& job) { return job.min; }, ReasonCode::kOptimum);

    std::vector<JobIndex> admitted;
    std::copy_if(accounts.jobs().begin(), accounts.jobs().end(), std::back_inserter(admitted),
                 [&](JobIndex i) { return accounts.at(i) >= 0; });
    const bool easy = std::all_of(admitted.begin(), admitted.end(), [&](JobIndex i) {
      const Job& job = accounts.job(i);
      return job.curve->concave() && job.gpus_per_worker == accounts.job(admitted.front()).gpus_per_worker;
    });
    double gap = 0;
    if (easy) {
      GrowByGain(accounts);
      for (const JobIndex i : admitted) accounts.reason(i).code = ReasonCode::kOptimum;
    } else {
      gap = SolveAsKnapsack(accounts, admitted);
    }
    Allocation allocation = std::move(accounts).Finish(std::move(order), Entry::kMin);
    if (gap > 0)
      allocation.note = fmt::format("FfDLOptimizer: sum of speed-ups within {:.3g} of the optimum", gap);
    return allocation;
  }
};

}  // namespace

std::unique_ptr<Policy> MakeFfdlOptimizer() {
  return std::make_unique<FfdlOptimizer>();
}

}  // namespace voda
