// Curve: the sizes (in workers) a job may run at, and the speed-up over one worker at each.
//
// Immutable and shared: the jobs of one category point at the same curve, so a snapshot of 100,000 jobs
// copies pointers. Real curves are not monotone (a job can be slower on 8 workers than on 4); nothing here
// assumes they are.
#pragma once

#include <memory>
#include <vector>

namespace voda {

// What is guessed of a job that says nothing of itself: n^0.8 on n workers.
double GuessedSpeedup(int workers);

class Curve {
 public:
  // Every integer from min to max with speedup(n) = n: what is believed of a job of which nothing is known.
  // Such a curve takes the same space whatever max is.
  static std::shared_ptr<const Curve> Linear(int min, int max);
  // The given sizes, ascending and positive; `speedup` holds one finite positive value for each.
  static std::shared_ptr<const Curve> Of(std::vector<int> sizes, std::vector<double> speedup);
  // The given sizes with speedup(n) = n.
  static std::shared_ptr<const Curve> LinearOver(std::vector<int> sizes);
  // The sizes of another curve with speedup(n) = GuessedSpeedup(n), in no more space than the other.
  static std::shared_ptr<const Curve> GuessedOver(const Curve& sizes);

  int count() const { return count_; }
  int min() const { return size(0); }
  int max() const { return size(count_ - 1); }
  int size(int index) const { return sizes_.empty() ? first_ + index : sizes_[index]; }
  double speedup(int index) const {
    if (!speedup_.empty()) return speedup_[index];
    return guessed_ ? GuessedSpeedup(size(index)) : size(index);
  }

  // Index of a size, or -1 where the job may not run at it.
  int IndexOf(int size) const;
  // Index of the largest allowed size that is <= size, or -1.
  int FloorIndex(int size) const;
  // A step: the smallest larger size whose speed-up is strictly higher than at `index`, or -1.
  int NextBetter(int index) const {
    if (!next_better_.empty()) return next_better_[index];
    return index + 1 < count_ ? index + 1 : -1;
  }
  // Whether sizes are consecutive and no marginal gain exceeds the one before it by more than rounding
  // (1e-12).
  bool concave() const { return concave_; }
  bool SameSizes(const Curve& other) const {
    return first_ == other.first_ && count_ == other.count_ && sizes_ == other.sizes_;
  }
  bool linear() const { return speedup_.empty() && !guessed_; }
  bool guessed() const { return guessed_; }

 private:
  Curve() = default;
  void Derive();

  int first_ = 1;
  int count_ = 0;
  bool concave_ = true;
  bool guessed_ = false;
  std::vector<int> sizes_;        // empty: consecutive integers from first_
  std::vector<double> speedup_;   // empty: linear or guessed
  std::vector<int> next_better_;  // empty: always the next size
};

using CurvePtr = std::shared_ptr<const Curve>;

}  // namespace voda
