// CurvePool: one Curve for all jobs of a snapshot that have the same sizes and speed-ups. Private to
// src/codec.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "model/curve.h"

namespace voda::internal {

class CurvePool {
 public:
  // Every size from min to max, linear.
  CurvePtr Linear(int min, int max);
  // `speedup` is empty (linear) or has a value for each size.
  CurvePtr Of(const std::vector<int>& sizes, const std::vector<double>& speedup);

 private:
  // By hash; of two curves with one hash the later is kept, and the other merely is not shared further.
  std::unordered_map<std::size_t, CurvePtr> curves_;
};

}  // namespace voda::internal
