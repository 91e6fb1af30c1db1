#include "codec/curve_pool.h"

#include <functional>

namespace voda::internal {

namespace {

std::size_t Mix(std::size_t hash, std::size_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15u + (hash >> 29);
}

bool Same(const Curve& curve, const std::vector<int>& sizes, const std::vector<double>& speedup) {
  if (curve.count() != static_cast<int>(sizes.size()) || curve.linear() != speedup.empty()) return false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (curve.size(static_cast<int>(i)) != sizes[i]) return false;
    if (!speedup.empty() && curve.speedup(static_cast<int>(i)) != speedup[i]) return false;
  }
  return true;
}

}  // namespace

CurvePtr CurvePool::Linear(int min, int max) {
  CurvePtr& curve = curves_[Mix(min, max)];
  if (!curve || !curve->linear() || curve->min() != min || curve->max() != max ||
      curve->count() != max - min + 1) {
    curve = Curve::Linear(min, max);
  }
  return curve;
}

CurvePtr CurvePool::GuessedOver(const CurvePtr& sizes) {
  auto& [over, curve] = guessed_[sizes.get()];
  if (!curve) {
    over = sizes;  // so that its address stays its own
    curve = Curve::GuessedOver(*sizes);
  }
  return curve;
}

CurvePtr CurvePool::Of(const std::vector<int>& sizes, const std::vector<double>& speedup) {
  std::size_t hash = sizes.size();
  for (const int size : sizes) hash = Mix(hash, size);
  for (const double value : speedup) hash = Mix(hash, std::hash<double>{}(value));
  CurvePtr& curve = curves_[hash];
  if (!curve || !Same(*curve, sizes, speedup)) {
    curve = speedup.empty() ? Curve::LinearOver(sizes) : Curve::Of(sizes, speedup);
  }
  return curve;
}

}  // namespace voda::internal
