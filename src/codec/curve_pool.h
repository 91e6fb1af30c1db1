// CurvePool: one Curve for all jobs of a snapshot that have the same sizes and speed-ups. Private to
// src/codec.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/curve.h"

namespace voda::internal {

class CurvePool {
 public:
  // Every size from min to max, linear.
  CurvePtr Linear(int min, int max);
  // The sizes of a curve that came from here, with what is guessed of a job that says nothing.
  CurvePtr GuessedOver(const CurvePtr& sizes);
  // `speedup` is empty (linear) or has a value for each size.
  CurvePtr Of(const std::vector<int>& sizes, const std::vector<double>& speedup);

 private:
  // By hash; of two curves with one hash the later is kept, and the other merely is not shared further.
  std::unordered_map<std::size_t, CurvePtr> curves_;
  std::unordered_map<const Curve*, std::pair<CurvePtr, CurvePtr>> guessed_;  // with the curve it is over
};

}  // namespace voda::internal
