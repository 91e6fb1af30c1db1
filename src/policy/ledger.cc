#include "policy/ledger.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace voda {

namespace {

// Seats on ready nodes for workers of so many GPUs, computed once per width.
class ReadySeats {
 public:
  explicit ReadySeats(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const Node& node : snapshot.nodes) cordoned_ = cordoned_ || node.state == NodeState::kCordoned;
  }
  int For(const Job& job) {
    if (cordoned_) return SeatsWhenEmpty(snapshot_, job);
    for (const auto& [gpus, seats] : known_) {
      if (gpus == job.gpus_per_worker) return seats;
    }
    known_.emplace_back(job.gpus_per_worker, SeatsWhenEmpty(snapshot_, job));
    return known_.back().second;
  }

 private:
  const Snapshot& snapshot_;
  bool cordoned_ = false;
  std::vector<std::pair<int, int>> known_;
};

}  // namespace

Ledger::Ledger(const Snapshot& snapshot)
    : snapshot_(snapshot), capacity_(Capacity(snapshot)), free_(capacity_), at_(snapshot.jobs.size(), -1) {
  const std::size_t count = snapshot.jobs.size();
  allocation_.workers.assign(count, 0);
  allocation_.reasons.assign(count, Reason{});
  jobs_.reserve(count);
  ReadySeats ready(snapshot);
  for (JobIndex i = 0; i < static_cast<JobIndex>(count); ++i) {
    const Job& job = snapshot.job(i);
    if (job.aside != Aside::kNo) {
      reason(i).code = job.aside == Aside::kBackingOff ? ReasonCode::kBackingOff : ReasonCode::kHeld;
      continue;
    }
    const int seats = ready.For(job);
    if (seats >= job.min) {
      one_priority_ =
          one_priority_ && (jobs_.empty() || job.priority == snapshot.job(jobs_.front()).priority);
      jobs_.push_back(i);
    } else {
      reason(i) = {.code = ReasonCode::kNeverFits, .needs = job.gpus(job.min), .free = seats};
    }
  }
  const auto earlier = [&](JobIndex a, JobIndex b) { return Earlier(snapshot.job(a), snapshot.job(b)); };
  if (!std::is_sorted(jobs_.begin(), jobs_.end(), earlier)) std::sort(jobs_.begin(), jobs_.end(), earlier);
}

namespace {

struct Ranked {
  int priority;  // higher comes first
  double first;
  double second;
  int rank;  // in (submit time, name) order
  JobIndex job;

  friend bool operator<(const Ranked& a, const Ranked& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.first != b.first) return a.first < b.first;
    if (a.second != b.second) return a.second < b.second;
    return a.rank < b.rank;
  }
};

// Most orders differ in one key only: sorting that alone moves a third of the bytes.
bool OneKey(const std::vector<Ranked>& ranked) {
  return std::all_of(ranked.begin(), ranked.end(), [&](const Ranked& entry) {
    return entry.priority == ranked.front().priority && entry.second == ranked.front().second;
  });
}

std::vector<JobIndex> Sorted(std::vector<Ranked> ranked) {
  std::vector<JobIndex> order;
  order.reserve(ranked.size());
  if (std::is_sorted(ranked.begin(), ranked.end())) {
    for (const Ranked& entry : ranked) order.push_back(entry.job);
  } else if (OneKey(ranked)) {
    std::vector<std::pair<double, int>> keys;  // ranks count up from 0
    keys.reserve(ranked.size());
    for (const Ranked& entry : ranked) keys.emplace_back(entry.first, entry.rank);
    std::sort(keys.begin(), keys.end());
    for (const auto& [key, rank] : keys) order.push_back(ranked[static_cast<std::size_t>(rank)].job);
  } else {
    std::sort(ranked.begin(), ranked.end());
    for (const Ranked& entry : ranked) order.push_back(entry.job);
  }
  return order;
}

}  // namespace

std::vector<JobIndex> Ledger::Ordered(const std::function<Keys(JobIndex)>& keys) const {
  std::vector<Ranked> ranked;
  ranked.reserve(jobs_.size());
  for (const JobIndex i : jobs_) {
    const Keys key = keys(i);
    ranked.push_back({0, key.first, key.second, static_cast<int>(ranked.size()), i});
  }
  return Sorted(std::move(ranked));
}

std::vector<JobIndex> Ledger::Admission(const std::function<Keys(JobIndex)>& keys) const {
  std::vector<Ranked> ranked;
  ranked.reserve(jobs_.size());
  for (const JobIndex i : jobs_) {
    const Keys key = keys(i);
    ranked.push_back({job(i).priority, key.first, key.second, static_cast<int>(ranked.size()), i});
  }
  return Sorted(std::move(ranked));
}

void Ledger::Put(JobIndex index, int size_index, ReasonCode code) {
  const Job& subject = job(index);
  free_ += subject.gpus(workers(index));
  at_[static_cast<std::size_t>(index)] = size_index;
  free_ -= subject.gpus(workers(index));
  VODA_CHECK(free_ >= 0);
  reason(index).code = code;
}

void Ledger::Admit(const std::vector<JobIndex>& order, const std::function<int(const Job&)>& workers_of,
                   ReasonCode code) {
  int served = 0;
  JobIndex last = kNoJob;
  for (const JobIndex i : order) {
    if (at(i) >= 0) {
      ++served;
      last = i;
      continue;
    }
    const Job& candidate = job(i);
    const int workers = workers_of(candidate);
    const int needs = candidate.gpus(workers);
    reason(i) = {
        .code = ReasonCode::kWaits, .needs = needs, .free = free_, .jobs_ahead = served, .ahead = last};
    if (needs > free_) continue;
    Put(i, candidate.curve->IndexOf(workers), code);
    ++served;
    last = i;
  }
}

int Ledger::StepGpus(JobIndex index) const {
  const Curve& curve = *job(index).curve;
  const int now = at(index);
  if (now < 0) return 0;
  const int next = curve.NextBetter(now);
  return next < 0 ? 0 : job(index).gpus(curve.size(next) - curve.size(now));
}

bool Ledger::StepFits(JobIndex index) const {
  const int gpus = StepGpus(index);
  return gpus > 0 && gpus <= free_;
}

void Ledger::Step(JobIndex index) {
  Put(index, job(index).curve->NextBetter(at(index)), ReasonCode::kGrew);
}

Allocation Ledger::Finish(std::vector<JobIndex> order, Entry entry) && {
  for (const JobIndex i : jobs_) allocation_.workers[static_cast<std::size_t>(i)] = workers(i);
  allocation_.order = std::move(order);
  allocation_.entry = entry;
  return std::move(allocation_);
}

}  // namespace voda
