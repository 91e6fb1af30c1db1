// Curve: the sizes (in workers) a job may run at, and the speed-up over one worker at each.
//
// Immutable and shared: the jobs of one category point at the same curve, so a snapshot of 100,000 jobs
// copies pointers. Real curves are not monotone (a job can be slower on 8 workers than on 4); nothing here
// assumes they are.
#pragma once

#include <memory>
#include <vector>

namespace voda {

class Curve {
 public:
  // Every integer from min to max with speedup(n) = n: what is believed of a job nothing is known about.
  // Takes constant space whatever max is.
  static std::shared_ptr<const Curve> Linear(int min, int max);
  // The given sizes, ascending and positive; `speedup` holds one finite positive value for each.
  static std::shared_ptr<const Curve> Of(std::vector<int> sizes, std::vector<double> speedup);
  // The given sizes with speedup(n) = n.
  static std::shared_ptr<const Curve> LinearOver(std::vector<int> sizes);

  int count() const { return count_; }
  int min() const { return size(0); }
  int max() const { return size(count_ - 1); }
  int size(int index) const {
    return sizes_.empty() ? first_ + index : sizes_[static_cast<std::size_t>(index)];
  }
  double speedup(int index) const {
    return speedup_.empty() ? size(index) : speedup_[static_cast<std::size_t>(index)];
  }

  // Index of a size, or -1 where the job may not run at it.
  int IndexOf(int size) const;
  // Index of the largest allowed size that is <= size, or -1.
  int FloorIndex(int size) const;
  // A step: the smallest larger size whose speed-up is strictly higher than at `index`, or -1.
  int NextBetter(int index) const {
    if (!next_better_.empty()) return next_better_[static_cast<std::size_t>(index)];
    return index + 1 < count_ ? index + 1 : -1;
  }
  // Whether sizes are consecutive and no marginal gain exceeds the one before it by more than rounding
  // (1e-12).
  bool concave() const { return concave_; }
  bool SameSizes(const Curve& other) const {
    return first_ == other.first_ && count_ == other.count_ && sizes_ == other.sizes_;
  }
  bool linear() const { return speedup_.empty(); }

 private:
  Curve() = default;
  void Derive();

  int first_ = 1;
  int count_ = 0;
  bool concave_ = true;
  std::vector<int> sizes_;        // empty: consecutive integers from first_
  std::vector<double> speedup_;   // empty: linear
  std::vector<int> next_better_;  // empty: always the next size
};

using CurvePtr = std::shared_ptr<const Curve>;

}  // namespace voda
