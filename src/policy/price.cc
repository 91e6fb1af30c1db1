// Price: every GPU has a price, each job takes the size that costs it least, and the jobs with the least
// GPU-time left are served first.
//
// A job with R seconds of work left and a speed-up of s(n) on n GPUs pays its own time plus the rent:
//     (stall + R / s(n)) (1 + lambda n)
// Stalls of starts and rescales are part of the time, so a change that does not pay for itself is not made.
//
// The price lambda is what a GPU-second taken now costs the others. If every job had to give way by its
// share, each of the J jobs present would be delayed by 1/K seconds on K GPUs. But a job whose best size is w
// loses only the part lambda w / (1 + lambda w) of its speed per share of GPUs lost, and nothing while all
// sizes wanted fit at once. The price is the least at which, with w the sizes wanted at that price,
//     sum w <= K   or   sum w / (1 + lambda w) <= K / c
// At lambda = c J / K the second always holds.
//
// 1. Candidates: the sizes that a job may want (price_sizes.h).
// 2. Want: each job wants its candidate of least cost.
// 3. Order: first the jobs that are too late by the guard, by submit time; then by GPU-time left at the size
//    wanted.
// 4. Give: in this order, each job gets its largest candidate up to the one it wants that fits.
// 5. Spend: spare GPUs go to the step that saves most time per GPU, stalls deducted.
//
// O(J · candidates + J log J + steps · log J).
#include <algorithm>
#include <cmath>
#include <queue>

#include "policy/accounts.h"
#include "policy/builtin.h"
#include "policy/price_sizes.h"

namespace voda {

namespace {

// What the jobs of one list want at a price: a position on the list. It falls as the price rises, so every
// price that was tried bounds it from one side.
struct Demand {
  const PriceCandidates* list;
  double jobs;  // of the list
  int least = 0;
  int most = 0;
  int best = 0;
  double gpus = 0;  // of the best

  // The candidate that costs least per unit of work, stalls aside; the smaller on a tie.
  void Find(double price) {
    if (least == most && gpus > 0) return;  // settled
    double cheapest = 0;
    for (int at = least; at <= most; ++at) {
      const PriceCandidate& size = list->sizes[at];
      const double cost = (1 + price * size.gpus) * size.slowness;
      if (at == least || cost < cheapest * (1 - 1e-9)) {
        cheapest = cost;
        best = at;
        gpus = size.gpus;
      }
    }
  }
};

// The price at which what the jobs of these lists want fits (see above).
double MarketPrice(const std::pmr::deque<PriceCandidates>& lists, double c, int capacity, double jobs) {
  const double gpus = std::max(capacity, 1);
  std::vector<Demand> demands;
  for (const PriceCandidates& list : lists) {
    if (list.jobs > 0)
      demands.push_back({.list = &list, .jobs = static_cast<double>(list.jobs), .most = list.count() - 1});
  }
  const auto too_low = [&](double price) {
    double wanted = 0;
    double firm = 0;
    for (Demand& demand : demands) {
      demand.Find(price);
      wanted += demand.jobs * demand.gpus;
      firm += demand.jobs * demand.gpus / (1 + price * demand.gpus);
    }
    return wanted > gpus && firm > gpus / c;
  };
  if (!too_low(0)) return 0;
  double low = 0;
  double high = c * jobs / gpus;
  for (int step = 0; step < 20; ++step) {
    const double middle = (low + high) / 2;
    const bool rises = too_low(middle);
    (rises ? low : high) = middle;
    for (Demand& demand : demands) (rises ? demand.most : demand.least) = demand.best;
  }
  return high;
}

// Until the job ends at a size.
double Seconds(const Job& job, int index) {
  return job.remaining_seconds / job.curve->speedup(index);
}

// Seconds that a job at `current` saves at one size over another; all are indices on its curve.
double Saved(const Job& job, int current, int from, int to) {
  double saved = Seconds(job, from) - Seconds(job, to);
  if (from == current) saved -= job.rescale_cost;  // it would have to be rescaled
  if (to == current) saved += job.rescale_cost;    // it would not have to be any more
  return saved;
}

// The index on the curve of the size that a job holds; -1: it holds nothing, or no allowed size.
int CurrentIndex(const Job& job) {
  return job.workers.empty() ? -1 : job.curve->IndexOf(job.held());
}

class Market {
 public:
  Market(const Snapshot& snapshot, const PriceOptions& options)
      : snapshot_(snapshot),
        options_(options),
        accounts_(snapshot),
        sizes_(snapshot, options, accounts_.capacity()),
        claims_(snapshot.jobs.size()) {
    const auto jobs = static_cast<double>(std::max<std::size_t>(accounts_.jobs().size(), 1));
    share_ = std::max(accounts_.capacity(), 1) / jobs;
    for (const JobIndex i : accounts_.jobs()) {
      const Job& job = snapshot_.job(i);
      Claim& claim = claims_[i];
      claim.most_wanted = sizes_.Wanted(job);
      claim.most_spare = sizes_.Spare(job);
      PriceCandidates& shared = sizes_.Shared(job, claim.most_wanted);
      ++shared.jobs;
      claim.candidates = &shared;
    }
    price_ = MarketPrice(sizes_.lists(), options.c, accounts_.capacity(), jobs);
  }

  Allocation Run() {
    for (const JobIndex i : accounts_.jobs()) MakeClaim(i);
    auto order = accounts_.Admission([&](JobIndex i) {
      const Claim& claim = claims_[i];
      return Accounts::Keys{.first = claim.late ? -1 : claim.key};  // keys are not negative
    });
    Give(order);
    Spend();
    PerJob<int> most(snapshot_.jobs.size(), 0);
    for (const JobIndex i : accounts_.jobs()) {
      most[i] = claims_[i].most_spare;
      Explain(i);
    }
    Allocation allocation = std::move(accounts_).Finish(std::move(order), Entry::kMin);
    allocation.most = std::move(most);
    return allocation;
  }

 private:
  // What a job met when it was its turn.
  struct Turn {
    int free = -1;  // GPUs; -1: its turn did not come, for nothing was left
    int served = 0;
    JobIndex last = kNoJob;  // of those served
  };

  struct Claim {
    const PriceCandidates* candidates = nullptr;  // that it may want
    const PriceCandidates* spare = nullptr;  // that it may be given of what is spare; null: not asked yet
    int most_wanted = 0;                     // workers that it may want, and be given of what is spare
    int most_spare = 0;
    int want = 0;      // position among its candidates
    int current = -1;  // index on the curve; -1: holds nothing, or no allowed size
    double key = 0;    // GPU-seconds left at the size wanted
    Turn turn;
    bool late = false;
  };

  void MakeClaim(JobIndex i) {
    const Job& job = snapshot_.job(i);
    Claim& claim = claims_[i];
    const bool holds = !job.workers.empty();
    claim.current = CurrentIndex(job);
    if (holds) claim.candidates = &sizes_.With(*claim.candidates, job, claim.most_wanted, claim.current);
    const PriceCandidates& candidates = *claim.candidates;
    const auto gpus = [&](int at) { return candidates.sizes[at].gpus; };
    const auto seconds = [&](int at) { return job.remaining_seconds * candidates.sizes[at].slowness; };

    double least = 0;
    for (int at = 0; at < candidates.count(); ++at) {
      const int index = candidates.sizes[at].index;
      const double stall = !holds                   ? job.start_cost
                           : index == claim.current ? job.stall_left
                                                    : job.rescale_cost;
      const double cost = (stall + seconds(at)) * (1 + price_ * gpus(at));
      if (at == 0 || cost < least - 1e-9 * std::abs(least)) {
        least = cost;
        claim.want = at;
      }
    }
    claim.key = ((holds ? 0 : job.start_cost) + seconds(claim.want)) * gpus(claim.want);
    if (holds) claim.key *= options_.stick;

    // The promise: a job that would end later than guard times what its fair share of the GPUs gives goes
    // first.
    int fair = 0;
    while (fair + 1 < candidates.count() && gpus(fair + 1) <= share_) ++fair;
    const double speedup = candidates.sizes[fair].speedup;
    const double fair_time = job.start_cost + job.total_seconds / (share_ < 1 ? share_ : speedup);
    const double age = snapshot_.now - job.submit_time;
    constexpr double kGrace = 600;
    if (age > kGrace && age + job.remaining_seconds / speedup > options_.guard * fair_time) {
      claim.late = true;
      claim.want = std::min(claim.want, fair);
    }
  }

  void Give(const std::vector<JobIndex>& order) {
    Turn turn;
    for (const JobIndex i : order) {
      turn.free = accounts_.free();
      if (turn.free == 0) break;
      Claim& claim = claims_[i];
      claim.turn = turn;
      for (int at = claim.want; at >= 0; --at) {
        const PriceCandidate& size = claim.candidates->sizes[at];
        if (size.gpus > turn.free) continue;
        accounts_.Start(i, size.index, size.gpus);
        ++turn.served;
        turn.last = i;
        break;
      }
    }
    last_turn_ = turn;
  }

  struct Offer {
    double saving;  // seconds per GPU
    int rank;       // in (submit time, name) order
    JobIndex job;
    int to;  // index on the curve, -1: no step saves anything
    bool operator<(const Offer& other) const {
      return saving != other.saving ? saving < other.saving : rank > other.rank;
    }
  };

  const PriceCandidates& SpareCandidates(JobIndex i) {
    Claim& claim = claims_[i];
    if (claim.spare == nullptr) {
      const Job& job = snapshot_.job(i);
      const int most = claim.most_spare;
      claim.spare = most == claim.most_wanted
                        ? claim.candidates
                        : &sizes_.With(sizes_.Shared(job, most), job, most, claim.current);
    }
    return *claim.spare;
  }

  // The best larger candidate that fits.
  Offer BestStep(JobIndex i, int rank) {
    const Job& job = snapshot_.job(i);
    const Claim& claim = claims_[i];
    const int from = accounts_.at(i);
    Offer best{0, rank, i, -1};
    const PriceCandidates& candidates = SpareCandidates(i);
    const int held = job.gpus(job.curve->size(from));
    for (const PriceCandidate& size : candidates.From(from + 1)) {
      const int gpus = size.gpus - held;
      if (gpus > accounts_.free()) break;
      const double saved = Saved(job, claim.current, from, size.index);
      if (saved / gpus > best.saving) {
        best.saving = saved / gpus;
        best.to = size.index;
      }
    }
    return best;
  }

  void Spend() {
    std::priority_queue<Offer> heap;
    int rank = 0;
    for (const JobIndex i : accounts_.jobs()) {
      if (accounts_.free() > 0 && accounts_.at(i) >= 0) {
        if (const Offer offer = BestStep(i, rank); offer.to >= 0) heap.push(offer);
      }
      ++rank;
    }
    while (!heap.empty() && accounts_.free() > 0) {
      const Offer top = heap.top();
      heap.pop();
      const Job& job = snapshot_.job(top.job);
      const bool fits = job.gpus(job.curve->size(top.to) - accounts_.workers(top.job)) <= accounts_.free();
      if (fits) accounts_.Put(top.job, top.to, ReasonCode::kGrew);
      if (const Offer next = BestStep(top.job, top.rank); next.to >= 0) heap.push(next);
    }
  }

  // Says why the job got what it got, and what it might have had beside that.
  void Explain(JobIndex i) {
    const Job& job = snapshot_.job(i);
    const Claim& claim = claims_[i];
    const Turn& turn = claim.turn.free < 0 ? last_turn_ : claim.turn;
    const int from = accounts_.at(i);
    Reason& reason = accounts_.reason(i);
    if (reason.code != ReasonCode::kGrew)
      reason.code = from < 0 ? ReasonCode::kPricedOut : ReasonCode::kPriced;
    reason.needs = job.gpus(job.min);
    reason.free = turn.free;
    reason.jobs_ahead = turn.served;
    reason.ahead = turn.last;
    reason.price = price_;
    reason.seconds = from < 0 ? claim.key : Seconds(job, from);
    reason.jobs = static_cast<int>(accounts_.jobs().size());
    reason.gpus = accounts_.capacity();
    if (from < 0) return;
    const auto larger = SpareCandidates(i).From(from + 1);
    if (!larger.empty()) reason.larger = job.curve->size(larger.front().index);
  }

  const Snapshot& snapshot_;
  const PriceOptions& options_;
  Accounts accounts_;
  PriceSizes sizes_;
  PerJob<Claim> claims_;
  Turn last_turn_;  // what jobs met whose turn did not come
  double price_ = 0;
  double share_ = 0;
};

// Of the larger sizes that idle GPUs would suffice for, the first that is kept from the job by more than its
// speed says why it does not use them.
void FindCeiling(const PriceSizes& sizes, double ratio, int idle, const Job& job, int workers,
                 Reason& reason) {
  const int from = job.curve->IndexOf(workers);
  const int current = CurrentIndex(job);
  const int most = sizes.Spare(job);
  double best = 0;
  for (int index = 0; index <= from; ++index) best = std::max(best, job.curve->speedup(index));
  for (int index = from + 1; index < job.curve->count(); ++index) {
    const int size = job.curve->size(index);
    if (job.gpus(size - workers) > idle) return;
    if (reason.larger == 0) reason.larger = size;
    const double speedup = job.curve->speedup(index);
    if (speedup < ratio * best) {
      if (reason.ceiling == Ceiling::kNone) reason.ceiling = Ceiling::kNotFaster;
      continue;
    }
    if (size > most || !sizes.Plausible(job, size)) {
      if (size <= most) {
        reason.ceiling = Ceiling::kReach;
        continue;  // a whole node may still fit
      }
      const double rises = sizes.NextTrial(job);
      if (rises < kNever) reason.until = rises;
      reason.ceiling = rises == kNever          ? Ceiling::kUnmeasured
                       : sizes.BeforeTrial(job) ? Ceiling::kTrial
                                                : Ceiling::kReach;
      return;
    }
    best = speedup;
    if (Saved(job, current, from, index) <= 0) {
      reason.ceiling = Ceiling::kStall;
      return;
    }
  }
}

class Price final : public Policy {
 public:
  explicit Price(PriceOptions options) : options_(options) {}
  Allocation Allocate(const Snapshot& snapshot) const override { return Market(snapshot, options_).Run(); }
  void ExplainIdle(const Snapshot& snapshot, int idle, Allocation& allocation) const override {
    const PriceSizes sizes(snapshot, options_, Capacity(snapshot));
    for (const JobIndex i : snapshot.jobs.indices()) {
      Reason& reason = allocation.reasons[i];
      if (reason.jobs > 0) reason.idle = idle;
      if (allocation.workers[i] == 0 || reason.code == ReasonCode::kGuarded) continue;
      FindCeiling(sizes, options_.ratio, idle, snapshot.job(i), allocation.workers[i], reason);
      allocation.wake_at = std::min(allocation.wake_at, sizes.NextTrial(snapshot.job(i)));
    }
  }

 private:
  PriceOptions options_;
};

}  // namespace

std::unique_ptr<Policy> MakePrice(PriceOptions options) {
  return std::make_unique<Price>(options);
}

}  // namespace voda
