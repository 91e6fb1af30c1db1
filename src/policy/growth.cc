#include "policy/growth.h"

#include <functional>
#include <queue>
#include <utility>

namespace voda {

void GrowInTurn(Accounts& accounts, const std::vector<JobIndex>& order) {
  std::vector<JobIndex> growing;
  for (const JobIndex i : order) {
    if (accounts.StepFits(i)) growing.push_back(i);
  }
  while (!growing.empty() && accounts.free() > 0) {
    std::size_t kept = 0;
    for (const JobIndex i : growing) {
      if (!accounts.StepFits(i)) continue;
      accounts.Step(i);
      growing[kept++] = i;
    }
    growing.resize(kept);
  }
}

namespace {

struct Offer {
  double gain;  // speed-up per GPU of the job's next step
  int rank;     // in (submit time, name) order
  JobIndex job;

  friend bool operator<(const Offer& a, const Offer& b) {  // the greatest is taken first
    if (a.gain != b.gain) return a.gain < b.gain;
    return a.rank > b.rank;
  }
};

}  // namespace

void GrowByGain(Accounts& accounts) {
  const auto gain = [&](JobIndex i) {
    const Curve& curve = *accounts.job(i).curve;
    const int now = accounts.at(i);
    return (curve.speedup(curve.NextBetter(now)) - curve.speedup(now)) / accounts.StepGpus(i);
  };
  std::vector<Offer> offers;
  int rank = 0;
  for (const JobIndex i : accounts.jobs()) {
    if (accounts.StepFits(i)) offers.push_back({gain(i), rank, i});
    ++rank;
  }
  std::priority_queue<Offer> heap(std::less<Offer>(), std::move(offers));
  while (!heap.empty() && accounts.free() > 0) {
    const Offer best = heap.top();
    heap.pop();
    if (!accounts.StepFits(best.job)) continue;  // and never will: nothing is given back
    accounts.Step(best.job);
    if (accounts.StepFits(best.job)) heap.push({gain(best.job), best.rank, best.job});
  }
}

}  // namespace voda
