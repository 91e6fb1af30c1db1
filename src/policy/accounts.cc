#include "policy/accounts.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
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

Accounts::Accounts(const Snapshot& snapshot)
    : snapshot_(snapshot), capacity_(Capacity(snapshot)), free_(capacity_), at_(snapshot.jobs.size(), -1) {
  const std::size_t count = snapshot.jobs.size();
  allocation_.workers.assign(count, 0);
  allocation_.reasons.assign(count, Reason{});
  jobs_.reserve(count);
  ReadySeats ready(snapshot);
  bool in_order = true;
  for (const JobIndex i : snapshot.jobs.indices()) {
    const Job& job = snapshot.job(i);
    if (job.aside != Aside::kNo) {
      reason(i).code = job.aside == Aside::kBackingOff ? ReasonCode::kBackingOff : ReasonCode::kHeld;
      continue;
    }
    const int seats = ready.For(job);
    if (seats >= job.min) {
      if (!jobs_.empty()) {
        one_priority_ = one_priority_ && job.priority == snapshot.job(jobs_.front()).priority;
        in_order = in_order && !Earlier(job, snapshot.job(jobs_.back()));
      }
      jobs_.push_back(i);
    } else {
      reason(i) = {.code = ReasonCode::kNeverFits, .needs = job.gpus(job.min), .free = seats};
    }
  }
  if (in_order) return;
  std::sort(jobs_.begin(), jobs_.end(),
            [&](JobIndex a, JobIndex b) { return Earlier(snapshot.job(a), snapshot.job(b)); });
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

// Most orders differ in the first key only.
bool OneKey(const std::vector<Ranked>& ranked) {
  return std::all_of(ranked.begin(), ranked.end(), [&](const Ranked& entry) {
    return entry.priority == ranked.front().priority && entry.second == ranked.front().second;
  });
}

struct KeyedJob {
  std::uint64_t key;
  JobIndex job;
};

// The bits of a number such that they sort as it does.
std::uint64_t SortableBits(double value) {
  constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // there is one zero only
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// By ascending key; equal keys keep their order. A radix sort from the lowest digit up: of 100,000 jobs it
// takes a quarter of the time of std::sort, whose comparisons nothing predicts.
void SortByKey(std::vector<KeyedJob>& entries) {
  constexpr std::size_t kMany = 500;
  if (entries.size() < kMany) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const KeyedJob& a, const KeyedJob& b) { return a.key < b.key; });
    return;
  }
  // Few entries do not pay for the counts of many digits.
  const int digit_bits = entries.size() < 5000 ? 8 : 11;
  const std::size_t digits = std::size_t{1} << digit_bits;
  std::vector<KeyedJob> sorted(entries.size());
  std::vector<std::size_t> first;  // the place of the next entry with a digit
  for (int shift = 0; shift < 64; shift += digit_bits) {
    const auto digit = [&](const KeyedJob& entry) { return (entry.key >> shift) & (digits - 1); };
    first.assign(digits, 0);
    for (const KeyedJob& entry : entries) ++first[digit(entry)];
    if (first[digit(entries.front())] == entries.size()) continue;
    std::exclusive_scan(first.begin(), first.end(), first.begin(), std::size_t{0});
    for (const KeyedJob& entry : entries) sorted[first[digit(entry)]++] = entry;
    entries.swap(sorted);
  }
}

std::vector<JobIndex> Sorted(std::vector<Ranked> ranked) {
  std::vector<JobIndex> order;
  order.reserve(ranked.size());
  if (std::is_sorted(ranked.begin(), ranked.end())) {
    for (const Ranked& entry : ranked) order.push_back(entry.job);
  } else if (OneKey(ranked)) {
    std::vector<KeyedJob> keys;  // in the order of their ranks, which equal keys keep
    keys.reserve(ranked.size());
    for (const Ranked& entry : ranked) keys.push_back({SortableBits(entry.first), entry.job});
    SortByKey(keys);
    for (const KeyedJob& entry : keys) order.push_back(entry.job);
  } else {
    std::sort(ranked.begin(), ranked.end());
    for (const Ranked& entry : ranked) order.push_back(entry.job);
  }
  return order;
}

}  // namespace

std::vector<JobIndex> Accounts::Ordered(const std::function<Keys(JobIndex)>& keys) const {
  std::vector<Ranked> ranked;
  ranked.reserve(jobs_.size());
  for (const JobIndex i : jobs_) {
    const Keys key = keys(i);
    ranked.push_back({0, key.first, key.second, static_cast<int>(ranked.size()), i});
  }
  return Sorted(std::move(ranked));
}

std::vector<JobIndex> Accounts::Admission(const std::function<Keys(JobIndex)>& keys) const {
  std::vector<Ranked> ranked;
  ranked.reserve(jobs_.size());
  for (const JobIndex i : jobs_) {
    const Keys key = keys(i);
    const int priority = one_priority_ ? 0 : job(i).priority;
    ranked.push_back({priority, key.first, key.second, static_cast<int>(ranked.size()), i});
  }
  return Sorted(std::move(ranked));
}

void Accounts::Put(JobIndex index, int size_index, ReasonCode code) {
  const Job& subject = job(index);
  free_ += subject.gpus(workers(index));
  at_[index] = size_index;
  free_ -= subject.gpus(workers(index));
  VODA_CHECK(free_ >= 0);
  reason(index).code = code;
}

void Accounts::Start(JobIndex index, int size_index, int gpus) {
  at_[index] = size_index;
  free_ -= gpus;
  VODA_CHECK(free_ >= 0);
}

void Accounts::Admit(const std::vector<JobIndex>& order, const std::function<int(const Job&)>& workers_of,
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

int Accounts::StepGpus(JobIndex index) const {
  const Curve& curve = *job(index).curve;
  const int now = at(index);
  if (now < 0) return 0;
  const int next = curve.NextBetter(now);
  return next < 0 ? 0 : job(index).gpus(curve.size(next) - curve.size(now));
}

bool Accounts::StepFits(JobIndex index) const {
  const int gpus = StepGpus(index);
  return gpus > 0 && gpus <= free_;
}

void Accounts::Step(JobIndex index) {
  Put(index, job(index).curve->NextBetter(at(index)), ReasonCode::kGrew);
}

Allocation Accounts::Finish(std::vector<JobIndex> order, Entry entry) && {
  for (const JobIndex i : jobs_) allocation_.workers[i] = workers(i);
  allocation_.order = std::move(order);
  allocation_.entry = entry;
  return std::move(allocation_);
}

}  // namespace voda
