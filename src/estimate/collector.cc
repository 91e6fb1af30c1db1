#include "estimate/collector.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

namespace voda {

bool Collector::Epoch(const std::string& category, int workers, double seconds) {
  constexpr double kShortest = 1e-6, kLongest = 1e9;  // also keeps every ratio of two finite
  if (workers < 1 || !(seconds >= kShortest && seconds <= kLongest)) return false;
  Mean& mean = categories_[category][workers];
  const double before = mean.seconds;
  mean.count = std::min(mean.count + 1, 1000);  // old epochs fade out once there are many
  mean.seconds += (seconds - mean.seconds) / mean.count;
  return std::abs(mean.seconds - before) > 1e-6 * mean.seconds;
}

namespace {

double OneWorker(int workers, double seconds) {
  return seconds * workers;
}

}  // namespace

double Collector::Speedup(const Sizes& sizes, int workers) const {
  const double one = OneWorker(sizes.begin()->first, sizes.begin()->second.seconds);
  const auto at = [&](Sizes::const_iterator size) { return one / size->second.seconds; };
  const auto above = sizes.lower_bound(workers);
  if (above == sizes.end()) {
    const auto last = std::prev(sizes.end());
    double exponent = 1;
    if (sizes.size() > 1) {
      const auto before = std::prev(last);
      exponent = std::log(at(last) / at(before)) / std::log(static_cast<double>(last->first) / before->first);
      exponent = std::clamp(exponent, 0.0, 1.0);
    }
    return at(last) * std::pow(static_cast<double>(workers) / last->first, exponent);
  }
  if (above->first == workers) return at(above);
  if (above == sizes.begin()) return workers;
  const auto below = std::prev(above);
  const double share = static_cast<double>(workers - below->first) / (above->first - below->first);
  return at(below) + share * (at(above) - at(below));
}

CurvePtr Collector::CurveFor(const std::string& category, const Curve& shape) const {
  std::vector<int> sizes;
  sizes.reserve(static_cast<std::size_t>(shape.count()));
  for (int i = 0; i < shape.count(); ++i) sizes.push_back(shape.size(i));
  const auto known = categories_.find(category);
  if (known == categories_.end()) return Curve::LinearOver(std::move(sizes));
  std::vector<double> speedup;
  speedup.reserve(sizes.size());
  for (const int size : sizes) speedup.push_back(Speedup(known->second, size));
  return Curve::Of(std::move(sizes), std::move(speedup));
}

double Collector::EpochSeconds(const std::string& category) const {
  const auto known = categories_.find(category);
  if (known != categories_.end()) {
    const auto& smallest = *known->second.begin();
    return OneWorker(smallest.first, smallest.second.seconds);
  }
  if (categories_.empty()) return kUnknownEpochSeconds;
  double sum = 0;
  for (const auto& [name, sizes] : categories_)
    sum += OneWorker(sizes.begin()->first, sizes.begin()->second.seconds);
  return sum / static_cast<double>(categories_.size());
}

}  // namespace voda
