#include "model/curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace voda {

double GuessedSpeedup(int workers) {
  constexpr double kExponent = 0.8;
  static const std::vector<double> usual = [] {
    std::vector<double> values;
    for (int n = 0; n <= 1024; ++n) values.push_back(std::pow(static_cast<double>(n), kExponent));
    return values;
  }();
  return workers < static_cast<int>(usual.size()) ? usual[workers]
                                                  : std::pow(static_cast<double>(workers), kExponent);
}

CurvePtr Curve::Linear(int min, int max) {
  VODA_CHECK(min >= 1 && max >= min);
  auto curve = std::shared_ptr<Curve>(new Curve);
  curve->first_ = min;
  curve->count_ = max - min + 1;
  return curve;
}

CurvePtr Curve::Of(std::vector<int> sizes, std::vector<double> speedup) {
  VODA_CHECK(!sizes.empty() && speedup.size() == sizes.size());
  auto curve = std::shared_ptr<Curve>(new Curve);
  curve->sizes_ = std::move(sizes);
  curve->speedup_ = std::move(speedup);
  curve->Derive();
  return curve;
}

CurvePtr Curve::LinearOver(std::vector<int> sizes) {
  VODA_CHECK(!sizes.empty());
  for (std::size_t i = 1; i < sizes.size(); ++i) VODA_CHECK(sizes[i] > sizes[i - 1]);
  if (sizes.back() - sizes.front() + 1 == static_cast<int>(sizes.size())) {
    return Linear(sizes.front(), sizes.back());
  }
  auto curve = std::shared_ptr<Curve>(new Curve);
  curve->sizes_ = std::move(sizes);
  curve->Derive();
  return curve;
}

CurvePtr Curve::GuessedOver(const Curve& sizes) {
  auto curve = std::shared_ptr<Curve>(new Curve);
  curve->guessed_ = true;
  curve->first_ = sizes.first_;
  curve->count_ = sizes.count_;
  curve->sizes_ = sizes.sizes_;
  curve->concave_ = sizes.sizes_.empty();
  return curve;
}

void Curve::Derive() {
  first_ = sizes_.front();
  count_ = static_cast<int>(sizes_.size());
  VODA_CHECK(first_ >= 1);
  bool consecutive = true;
  for (std::size_t i = 1; i < sizes_.size(); ++i) {
    VODA_CHECK(sizes_[i] > sizes_[i - 1]);
    consecutive = consecutive && sizes_[i] == sizes_[i - 1] + 1;
  }
  for (const double value : speedup_) VODA_CHECK(std::isfinite(value) && value > 0);
  if (consecutive) sizes_.clear();

  concave_ = consecutive;
  double last_gain = 0;
  for (int i = 1; i < count_ && concave_; ++i) {
    const double gain = speedup(i) - speedup(i - 1);
    if (i > 1 && gain > last_gain + 1e-12 * std::max(std::abs(gain), std::abs(last_gain))) concave_ = false;
    last_gain = gain;
  }

  if (linear()) return;  // the next size is always better
  next_better_.assign(speedup_.size(), -1);
  std::vector<int> open;  // indices still looking for a better size, speed-ups not increasing
  for (int i = 0; i < count_; ++i) {
    while (!open.empty() && speedup(open.back()) < speedup(i)) {
      next_better_[open.back()] = i;
      open.pop_back();
    }
    open.push_back(i);
  }
}

int Curve::FloorIndex(int size) const {
  if (size < first_) return -1;
  if (sizes_.empty()) return std::min(size - first_, count_ - 1);
  return static_cast<int>(std::upper_bound(sizes_.begin(), sizes_.end(), size) - sizes_.begin()) - 1;
}

int Curve::IndexOf(int size) const {
  const int index = FloorIndex(size);
  return index >= 0 && this->size(index) == size ? index : -1;
}

}  // namespace voda
