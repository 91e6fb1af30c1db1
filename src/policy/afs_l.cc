// AFS-L (NSDI'21): step by step, a GPU goes where it shortens the sum of completion times most, judged two
// jobs at a time. Of a shorter and a longer job the shorter takes the step iff
//     (s'_short - s_short) / s_short  >  (s'_long - s_long) / s'_long
// with s the speed-up at the size a job holds, s' at its next step, and length = remaining time / s.
//
// The comparison is not transitive, so "the winner" needs a fixed tournament: the admitted jobs in (submit
// time, name) order are the leaves of a complete binary tree; a leaf that is missing or whose step does not
// fit loses; equal lengths or scores go to the earlier job. One step changes one leaf, so it costs O(log J).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "policy/accounts.h"
#include "policy/builtin.h"

namespace voda {

namespace {

bool Close(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return a == b;
  return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
}

class Tournament {
 public:
  Tournament(Accounts& accounts, std::vector<JobIndex> entrants)
      : accounts_(accounts), jobs_(std::move(entrants)) {
    while (width_ < std::ssize(jobs_)) width_ *= 2;
    leaves_.resize(jobs_.size());
    winner_.assign(2 * width_, kNobody);
    head_.assign(accounts_.free() + 1, kNobody);
    for (int leaf = 0; leaf < std::ssize(jobs_); ++leaf) {
      Refresh(leaf);
      winner_[width_ + leaf] = leaf;
    }
    for (int at = width_ - 1; at >= 1; --at) Replay(at);
  }

  // Steps until no step of an entrant fits.
  void Run() {
    while (true) {
      const int leaf = winner_[1];
      if (leaf == kNobody || !Fits(leaf)) return;
      const int before = accounts_.free();
      accounts_.Step(jobs_[leaf]);
      Refresh(leaf);
      ReplayAbove(leaf);
      for (int gpus = before; gpus > accounts_.free(); --gpus) Retire(gpus);
    }
  }

 private:
  static constexpr int kNobody = -1;

  struct Leaf {
    double length = 0;
    double score_if_shorter = 0;
    double score_if_longer = 0;
    int step_gpus = 0;  // 0: no step
  };
  struct Listed {
    int leaf;
    int next;
  };

  bool Fits(int leaf) const {
    const int gpus = leaves_[leaf].step_gpus;
    return gpus > 0 && gpus <= accounts_.free();
  }

  void Refresh(int leaf) {
    const JobIndex i = jobs_[leaf];
    const Job& job = accounts_.job(i);
    const int now = accounts_.at(i);
    const double speedup = job.curve->speedup(now);
    Leaf& entry = leaves_[leaf];
    const int listed = entry.step_gpus;
    entry.length = job.remaining_seconds / speedup;
    entry.step_gpus = accounts_.StepGpus(i);
    if (entry.step_gpus == 0) return;
    const double next = job.curve->speedup(job.curve->NextBetter(now));
    entry.score_if_shorter = (next - speedup) / speedup;
    entry.score_if_longer = (next - speedup) / next;
    if (entry.step_gpus != listed && entry.step_gpus <= accounts_.free()) {
      int& head = head_[entry.step_gpus];
      lists_.push_back({leaf, head});
      head = static_cast<int>(lists_.size()) - 1;
    }
  }

  // The steps of exactly so many GPUs have just stopped fitting: their leaves lose from now on.
  void Retire(int gpus) {
    for (int at = head_[gpus]; at != kNobody; at = lists_[at].next) {
      const int leaf = lists_[at].leaf;
      if (leaves_[leaf].step_gpus == gpus) ReplayAbove(leaf);
    }
    head_[gpus] = kNobody;
  }

  // Of two leaves, `a` the earlier.
  int Better(int a, int b) const {
    if (a == kNobody || !Fits(a)) return b;
    if (b == kNobody || !Fits(b)) return a;
    const Leaf& first = leaves_[a];
    const Leaf& second = leaves_[b];
    if (Close(first.length, second.length)) return a;
    const bool first_shorter = first.length < second.length;
    const double shorter = first_shorter ? first.score_if_shorter : second.score_if_shorter;
    const double longer = first_shorter ? second.score_if_longer : first.score_if_longer;
    if (Close(shorter, longer)) return a;
    return (shorter > longer) == first_shorter ? a : b;
  }

  void Replay(int at) { winner_[at] = Better(winner_[2 * at], winner_[2 * at + 1]); }
  void ReplayAbove(int leaf) {
    for (int at = (width_ + leaf) / 2; at >= 1; at /= 2) Replay(at);
  }

  Accounts& accounts_;
  std::vector<JobIndex> jobs_;
  int width_ = 1;
  std::vector<Leaf> leaves_;
  std::vector<int> winner_;  // heap-shaped tree of leaf numbers; winner_[1] is the champion
  std::vector<int> head_;    // GPUs of a step -> the leaves that may have such a step, as a list
  std::vector<Listed> lists_;
};

class AfsL final : public Policy {
 public:
  Allocation Allocate(const Snapshot& snapshot) const override {
    Accounts accounts(snapshot);
    auto order = accounts.Admission([&](JobIndex i) {
      const Job& job = accounts.job(i);
      return Accounts::Keys{.first = job.remaining_seconds / job.curve->speedup(0)};
    });
    // Where all minima fit, this admits every job whatever the order.
    accounts.Admit(
        order, [](const Job& job) { return job.min; }, ReasonCode::kRunsAtMin);

    std::vector<JobIndex> admitted;
    std::copy_if(accounts.jobs().begin(), accounts.jobs().end(), std::back_inserter(admitted),
                 [&](JobIndex i) { return accounts.at(i) >= 0; });
    if (!admitted.empty()) Tournament(accounts, std::move(admitted)).Run();
    return std::move(accounts).Finish(std::move(order), Entry::kMin);
  }
};

}  // namespace

std::unique_ptr<Policy> MakeAfsL() {
  return std::make_unique<AfsL>();
}

}  // namespace voda
