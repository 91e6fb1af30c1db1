// Collector: what is learned of jobs from the epochs they finish, per category.
//
// Measured: the mean time of an epoch on n workers. From it, with m the smallest and M the largest size
// measured:
//   one worker:      epoch(1) = epoch(m) · m          (linear below what was measured)
//   speed-up at n:   epoch(1) / epoch(n) where measured; linear in n between measured sizes;
//                    n below m; above M   s(M) · (n / M)^e   with e the exponent between the two largest
//                    sizes measured, within [0, 1], and 1 while only one size was measured.
// A category nothing is known of is linear, and an epoch of it is taken to last as long as the mean over the
// categories that are known (one worker), or kUnknownEpochSeconds at the very start.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/curve.h"

namespace voda {

inline constexpr double kUnknownEpochSeconds = 60;

class Collector {
 public:
  // One epoch of a job of this category took so long on so many workers, undisturbed. Returns whether that is
  // news: the speed-ups of the category changed. Values that cannot be (no number, under a microsecond, over
  // thirty years) are refused.
  bool Epoch(const std::string& category, int workers, double seconds);

  // The curve over the sizes of `shape` as the category is known now.
  CurvePtr CurveFor(const std::string& category, const Curve& shape) const;
  // Seconds of one epoch on one worker.
  double EpochSeconds(const std::string& category) const;

 private:
  struct Mean {
    double seconds = 0;
    int count = 0;
  };
  using Sizes = std::map<int, Mean>;

  double Speedup(const Sizes& sizes, int workers) const;

  std::map<std::string, Sizes, std::less<>> categories_;
};

}  // namespace voda
