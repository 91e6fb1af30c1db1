#include "policy/price_sizes.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "model/allocation.h"

namespace voda {

namespace {

// Whole times that `reach` fits into the time that the job has run; rounding must not hide the last of them.
double Reached(const Job& job, double reach) {
  return std::floor(job.running_seconds / reach + 1e-9);
}

int LargestMeasured(const Job& job) {
  return job.measured && !job.measured->empty() ? job.measured->back() : 0;
}

// The largest size of which anything is known.
int Known(const Job& job) {
  return std::max(job.num, LargestMeasured(job));
}

// Whether the bound on what is spare depends on how long the job has run.
bool OnTrial(const Job& job) {
  return job.measured && (job.guessed || job.measured->empty());
}

}  // namespace

std::span<const PriceCandidate> PriceCandidates::From(int index) const {
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), index,
                                   [](const PriceCandidate& size, int from) { return size.index < from; });
  return {at, sizes.end()};
}

bool PriceCandidates::Has(int index) const {
  const auto from = From(index);
  return !from.empty() && from.front().index == index;
}

PriceSizes::PriceSizes(const Snapshot& snapshot, const PriceOptions& options, int capacity)
    : options_(options), now_(snapshot.now), capacity_(capacity) {
  for (const Node& node : snapshot.nodes) {
    if (node.state == NodeState::kReady) node_gpus_ = std::max(node_gpus_, node.whole_gpus());
  }
}

int PriceSizes::Wanted(const Job& job) const {
  if (!job.measured) return job.max;
  const int trusted = (job.guessed ? 1 : 2) * LargestMeasured(job);
  return std::min(job.max, std::max(job.num, trusted));
}

bool PriceSizes::OneNode(const Job& job) const {
  return job.gpus(Known(job)) <= node_gpus_;
}

int PriceSizes::Spare(const Job& job) const {
  const int wanted = Wanted(job);
  if (!OnTrial(job)) return wanted;
  if (options_.reach <= 0) return job.max;
  const auto at_most = [&](double workers) {
    return static_cast<int>(std::clamp<double>(workers, wanted, job.max));
  };
  const bool one_node = OneNode(job);
  const double reached = Reached(job, options_.reach);
  if (BeforeTrial(job) || (!job.guessed && reached < 1 && !one_node)) return wanted;
  if (!one_node) return at_most(2.0 * Known(job));
  return at_most(std::floor(node_gpus_ * std::exp2(std::min(reached, 30.0)) / job.gpus_per_worker));
}

bool PriceSizes::Plausible(const Job& job, int size) const {
  const int gpus = job.gpus(size);
  if (!job.measured || gpus <= node_gpus_ || gpus % node_gpus_ == 0) return true;
  if (size == job.num || size == job.max) return true;
  return std::binary_search(job.measured->begin(), job.measured->end(), size);
}

bool PriceSizes::BeforeTrial(const Job& job) const {
  return OnTrial(job) && !job.guessed && OneNode(job) &&
         job.running_seconds < std::min(kTrialAfter, options_.reach) - 1e-6;
}

double PriceSizes::NextTrial(const Job& job) const {
  if (!OnTrial(job) || options_.reach <= 0) return kNever;
  if (Spare(job) >= job.max) return kNever;
  const double reached = Reached(job, options_.reach);
  if (!OneNode(job) && (job.guessed || reached >= 1)) return kNever;
  const double next =
      BeforeTrial(job) ? std::min(kTrialAfter, options_.reach) : (reached + 1) * options_.reach;
  return now_ + next - job.running_seconds;
}

PriceCandidates PriceSizes::Find(const Job& job, int most, int current) {
  found_.clear();
  double best = 0;
  for (int index = 0; index < job.curve->count(); ++index) {
    const int size = job.curve->size(index);
    const int gpus = job.gpus(size);
    if (index > 0 && (gpus > capacity_ || (size > most && index > current))) break;
    const double speedup = job.curve->speedup(index);
    const bool worth =
        index == 0 || (size <= most && speedup >= options_.ratio * best && Plausible(job, size));
    if (!worth && index != current) continue;
    found_.push_back({index, gpus, speedup, 1 / speedup});
    best = std::max(best, speedup);
  }
  auto* kept = std::pmr::polymorphic_allocator<PriceCandidate>(&memory_).allocate(found_.size());
  std::uninitialized_copy(found_.begin(), found_.end(), kept);
  return {.sizes = {kept, found_.size()}};
}

PriceCandidates& PriceSizes::Shared(const Job& job, int most) {
  const int num = job.measured ? job.num : 0;
  const Shape shape{job.curve.get(), job.measured.get(), job.gpus_per_worker, num, most};
  Slot& slot = SlotOf(shape);
  if (slot.list != nullptr) return *slot.list;
  PriceCandidates& list = lists_.emplace_back(Find(job, most, -1));
  slot = {shape, &list};
  if (2 * lists_.size() > slots_.size()) {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& taken : before) {
      if (taken.list != nullptr) SlotOf(taken.shape) = taken;
    }
  }
  return list;
}

PriceSizes::Slot& PriceSizes::SlotOf(const Shape& shape) {
  std::size_t hash = 0;
  for (const std::size_t part :
       {reinterpret_cast<std::size_t>(shape.curve), reinterpret_cast<std::size_t>(shape.measured),
        std::size_t(shape.width), std::size_t(shape.num), std::size_t(shape.most)}) {
    hash = (hash ^ part) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32;
  }
  while (true) {
    Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.list == nullptr || slot.shape == shape) return slot;
    ++hash;
  }
}

const PriceCandidates& PriceSizes::With(const PriceCandidates& shared, const Job& job, int most,
                                        int current) {
  if (current < 0 || shared.Has(current)) return shared;
  return own_.emplace_back(Find(job, most, current));
}

}  // namespace voda
