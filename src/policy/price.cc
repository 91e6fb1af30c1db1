// Price: every GPU has a price, each job takes the size that costs it least, and the jobs with the least
// GPU-time left are served first.
//
// A GPU-second taken now delays each of the J jobs present by about 1/K seconds on K GPUs, so it costs
// lambda = c J / K job-seconds. A job on n GPUs pays its own time plus the rent, (stall + R / s(n)) (1 +
// lambda n); stalls of starts and rescales are part of the time, so a change that does not pay for itself is
// not made.
//
// 1. Candidates: the minimum, every larger size that is worth it (ratio), and the size held now; sizes that
// nobody
//    measured only where they are not far-fetched.
// 2. Want: the candidate of least cost.
// 3. Order: jobs that are too late by the guard, by submit time; then by GPU-time left at the size wanted.
// 4. Give: the largest candidate up to want that fits.
// 5. Spare GPUs: to the step that saves most time per GPU, stalls deducted.
//
// O(J · candidates + J log J + steps · log J).
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <queue>
#include <tuple>

#include "policy/builtin.h"
#include "policy/ledger.h"

namespace voda {

namespace {

class Market {
 public:
  Market(const Snapshot& snapshot, const PriceOptions& options)
      : snapshot_(snapshot), options_(options), ledger_(snapshot), claims_(snapshot.jobs.size()) {
    for (const Node& node : snapshot.nodes) {
      if (node.state == NodeState::kReady) node_gpus_ = std::max(node_gpus_, node.gpus);
    }
    const auto jobs = static_cast<double>(std::max<std::size_t>(ledger_.jobs().size(), 1));
    const auto gpus = static_cast<double>(std::max(ledger_.capacity(), 1));
    price_ = options.c * jobs / gpus;
    share_ = gpus / jobs;
  }

  Allocation Run() {
    for (const JobIndex i : ledger_.jobs()) MakeClaim(i);
    auto order = ledger_.Admission([&](JobIndex i) {
      const Claim& claim = claims_[static_cast<std::size_t>(i)];
      return Ledger::Keys{.first = claim.late ? -1 : claim.key};  // keys are not negative
    });
    Give(order);
    Spend();
    for (const JobIndex i : ledger_.jobs()) {
      if (ledger_.at(i) < 0) continue;
      ledger_.reason(i).seconds = Seconds(snapshot_.job(i), ledger_.at(i));
      ledger_.reason(i).seconds_at_min = Seconds(snapshot_.job(i), 0);
    }
    return std::move(ledger_).Finish(std::move(order), Entry::kMin);
  }

 private:
  // Sizes that a job may want, ascending, with what is needed of each side by side.
  struct Candidates {
    std::vector<int> index;  // on the curve
    std::vector<int> gpus;
    std::vector<double> speedup;
    int count() const { return static_cast<int>(index.size()); }
  };

  struct Claim {
    const Candidates* candidates = nullptr;
    int want = 0;      // position among its candidates
    int current = -1;  // index on the curve; -1: holds nothing, or no allowed size
    bool late = false;
    double key = 0;  // GPU-seconds left at the size wanted
  };

  static double Seconds(const Job& job, int index) {
    return job.remaining_seconds / job.curve->speedup(index);
  }

  // Whether a size is measured, or near enough to what was.
  bool Plausible(const Job& job, int size) const {
    if (!job.measured) return true;
    const auto& measured = *job.measured;
    if (std::binary_search(measured.begin(), measured.end(), size)) return true;
    const int largest = measured.empty() ? 0 : measured.back();
    if (size > std::max(job.num, 2 * largest)) return false;
    return job.gpus(size) <= node_gpus_ || job.gpus(size) % node_gpus_ == 0;
  }

  Candidates FindCandidates(const Job& job, int current) const {
    Candidates found;
    double best = 0;
    for (int index = 0; index < job.curve->count(); ++index) {
      const int gpus = job.gpus(job.curve->size(index));
      if (index > 0 && gpus > ledger_.capacity()) break;
      const double speedup = job.curve->speedup(index);
      const bool worth =
          index == 0 || (speedup >= options_.ratio * best && Plausible(job, job.curve->size(index)));
      if (!worth && index != current) continue;
      found.index.push_back(index);
      found.gpus.push_back(gpus);
      found.speedup.push_back(speedup);
      best = std::max(best, speedup);
    }
    return found;
  }

  // Jobs of a category share their curve and so their candidates, unless one holds a size that is not among
  // them.
  const Candidates* CandidatesOf(const Job& job, int current) {
    const Shape shape{job.curve.get(), job.measured.get(), job.gpus_per_worker, job.measured ? job.num : 0};
    if (last_ == nullptr || shape != last_shape_) {
      const auto [at, inserted] = shared_.try_emplace(shape, nullptr);
      if (inserted) at->second = &lists_.emplace_back(FindCandidates(job, -1));
      last_shape_ = shape;
      last_ = at->second;
    }
    if (current < 0 || std::binary_search(last_->index.begin(), last_->index.end(), current)) return last_;
    return &lists_.emplace_back(FindCandidates(job, current));
  }

  void MakeClaim(JobIndex i) {
    const Job& job = snapshot_.job(i);
    Claim& claim = claims_[static_cast<std::size_t>(i)];
    const bool holds = !job.workers.empty();
    if (holds) claim.current = job.curve->IndexOf(job.held());
    claim.candidates = CandidatesOf(job, claim.current);
    const Candidates& candidates = *claim.candidates;
    const auto gpus = [&](int at) { return candidates.gpus[static_cast<std::size_t>(at)]; };
    const auto seconds = [&](int at) {
      return job.remaining_seconds / candidates.speedup[static_cast<std::size_t>(at)];
    };

    double least = 0;
    for (int at = 0; at < candidates.count(); ++at) {
      const int index = candidates.index[static_cast<std::size_t>(at)];
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
    const double speedup = candidates.speedup[static_cast<std::size_t>(fair)];
    const double fair_time = job.start_cost + job.total_seconds / (share_ < 1 ? share_ : speedup);
    const double age = snapshot_.now - job.submit_time;
    constexpr double kGrace = 600;
    if (age > kGrace && age + job.remaining_seconds / speedup > options_.guard * fair_time) {
      claim.late = true;
      claim.want = std::min(claim.want, fair);
    }
  }

  void Give(const std::vector<JobIndex>& order) {
    int served = 0;
    JobIndex last = kNoJob;
    for (const JobIndex i : order) {
      const Job& job = snapshot_.job(i);
      const Claim& claim = claims_[static_cast<std::size_t>(i)];
      ledger_.reason(i) = {.code = ReasonCode::kPricedOut,
                           .needs = job.gpus(job.min),
                           .free = ledger_.free(),
                           .jobs_ahead = served,
                           .ahead = last,
                           .price = price_,
                           .seconds = claim.key};
      for (int at = claim.want; at >= 0; --at) {
        if (claim.candidates->gpus[static_cast<std::size_t>(at)] > ledger_.free()) continue;
        ledger_.Put(i, claim.candidates->index[static_cast<std::size_t>(at)], ReasonCode::kPriced);
        ++served;
        last = i;
        break;
      }
    }
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

  // The best larger candidate that fits.
  Offer BestStep(JobIndex i, int rank) const {
    const Job& job = snapshot_.job(i);
    const Claim& claim = claims_[static_cast<std::size_t>(i)];
    const int from = ledger_.at(i);
    Offer best{0, rank, i, -1};
    const Candidates& candidates = *claim.candidates;
    const int held = job.gpus(job.curve->size(from));
    for (std::size_t at = 0; at < candidates.index.size(); ++at) {
      const int index = candidates.index[at];
      if (index <= from) continue;
      const int gpus = candidates.gpus[at] - held;
      if (gpus > ledger_.free()) break;
      double saved = Seconds(job, from) - job.remaining_seconds / candidates.speedup[at];
      if (from == claim.current) saved -= job.rescale_cost;   // it would have to be rescaled
      if (index == claim.current) saved += job.rescale_cost;  // it would not have to be any more
      if (saved / gpus > best.saving) {
        best.saving = saved / gpus;
        best.to = index;
      }
    }
    return best;
  }

  void Spend() {
    std::priority_queue<Offer> heap;
    int rank = 0;
    for (const JobIndex i : ledger_.jobs()) {
      if (ledger_.free() > 0 && ledger_.at(i) >= 0) {
        if (const Offer offer = BestStep(i, rank); offer.to >= 0) heap.push(offer);
      }
      ++rank;
    }
    while (!heap.empty() && ledger_.free() > 0) {
      const Offer top = heap.top();
      heap.pop();
      const Job& job = snapshot_.job(top.job);
      const bool fits = job.gpus(job.curve->size(top.to) - ledger_.workers(top.job)) <= ledger_.free();
      if (fits) ledger_.Put(top.job, top.to, ReasonCode::kGrew);
      if (const Offer next = BestStep(top.job, top.rank); next.to >= 0) heap.push(next);
    }
  }

  const Snapshot& snapshot_;
  const PriceOptions& options_;
  Ledger ledger_;
  std::vector<Claim> claims_;
  // What candidates depend on. Looked up, never iterated: addresses cannot reach a decision.
  using Shape = std::tuple<const Curve*, const std::vector<int>*, int, int>;
  std::map<Shape, const Candidates*> shared_;
  std::deque<Candidates> lists_;
  Shape last_shape_;
  const Candidates* last_ = nullptr;
  int node_gpus_ = 1;
  double price_ = 0;
  double share_ = 0;
};

class Price final : public Policy {
 public:
  explicit Price(PriceOptions options) : options_(options) {}
  Allocation Allocate(const Snapshot& snapshot) const override { return Market(snapshot, options_).Run(); }

 private:
  PriceOptions options_;
};

}  // namespace

std::unique_ptr<Policy> MakePrice(PriceOptions options) {
  return std::make_unique<Price>(options);
}

}  // namespace voda
