// The sizes that Price considers for a job: its minimum, every larger size that is worth it, and the one it
// holds.
//
// A size is worth it if it is faster than the best smaller one by the option `ratio`. Beyond that it must be
// plausible, since a curve says little about sizes that nobody measured:
//   told:       any size
//   learned:    up to twice the largest measured size, and the size asked for
//   guessed:    up to the largest measured size, and the size asked for; its running teaches nothing
// and of sizes above one node that nobody measured or asked for, only whole nodes or the maximum: for most
// jobs two half nodes are slower than one.
//
// From what is spare, and only there, jobs of which nothing is measured may try more: up to one node, if the
// size asked for fits on one, and twice as much for each `reach` that the job has run. A job that reports
// does so once kTrialAfter seconds have passed without a measurement; one that reports nothing, at once.
#pragma once

#include <cstddef>
#include <deque>
#include <memory_resource>
#include <span>
#include <vector>

#include "model/snapshot.h"
#include "policy/price.h"

namespace voda {

inline constexpr double kTrialAfter = 900;  // seconds of running

struct PriceCandidate {
  int index = 0;  // on the curve
  int gpus = 0;
  double speedup = 0;
  double slowness = 0;  // 1 / speedup
};

// Sizes of a job, ascending.
struct PriceCandidates {
  std::span<const PriceCandidate> sizes;
  int jobs = 0;  // that share the list

  int count() const { return static_cast<int>(sizes.size()); }
  // The candidates from this index on the curve on.
  std::span<const PriceCandidate> From(int index) const;
  bool Has(int index) const;
};

class PriceSizes {
 public:
  PriceSizes(const Snapshot& snapshot, const PriceOptions& options, int capacity);

  // The most workers that a job may want, and that it may be given of what is spare.
  int Wanted(const Job& job) const;
  int Spare(const Job& job) const;
  // Whether a size above one node may be tried.
  bool Plausible(const Job& job, int size) const;
  // Whether the job reports and has not run long enough to try sizes that nobody measured.
  bool BeforeTrial(const Job& job) const;
  // When the job will have run long enough for its Spare bound to rise; kNever: the bound does not rise.
  double NextTrial(const Job& job) const;

  // The candidates up to `most`, as jobs with the same curve share them.
  PriceCandidates& Shared(const Job& job, int most);
  // The same with the size that the job holds, `current` as an index on the curve or -1.
  const PriceCandidates& With(const PriceCandidates& shared, const Job& job, int most, int current);
  const std::pmr::deque<PriceCandidates>& lists() const { return lists_; }

 private:
  // Whether all sizes of which anything is known fit on one node.
  bool OneNode(const Job& job) const;
  PriceCandidates Find(const Job& job, int most, int current);

  // What a list depends on.
  struct Shape {
    const Curve* curve = nullptr;
    const std::vector<int>* measured = nullptr;
    int width = 0;
    int num = 0;
    int most = 0;
    bool operator==(const Shape&) const = default;
  };
  // Of a hash table without chains. Looked up, never iterated: addresses cannot reach a decision.
  struct Slot {
    Shape shape;
    PriceCandidates* list = nullptr;  // null: free
  };
  Slot& SlotOf(const Shape& shape);

  const PriceOptions& options_;
  double now_;
  int capacity_;
  int node_gpus_ = 1;  // of the largest ready node
  // There may be as many lists as jobs, each of a few entries: they are laid down side by side.
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::deque<PriceCandidates> lists_{&memory_};  // shared, in the order of their first job
  std::pmr::deque<PriceCandidates> own_{&memory_};
  std::vector<PriceCandidate> found_;  // the list that is being made
  std::vector<Slot> slots_{256};       // a power of two, at most half of them taken
};

}  // namespace voda
