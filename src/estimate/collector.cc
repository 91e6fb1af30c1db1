#include "estimate/collector.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace voda {

namespace {

constexpr double kShortest = 1e-6, kLongest = 1e9;  // also keeps every ratio of two finite
constexpr double kExponentBeyond = 0.8;

bool Changed(double before, double after) {
  return std::abs(after - before) > 1e-6 * after;
}

}  // namespace

void Collector::Mean::Add(double sample) {
  count = std::min(count + 1, 1000);  // old samples fade out once there are many
  value += (sample - value) / count;
}

double Collector::Size::seconds() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [nodes, mean] : by_nodes) least = std::min(least, mean.value);
  return least;
}

bool Collector::Epoch(const std::string& category, int workers, int nodes, double seconds) {
  if (workers < 1 || nodes < 1 || !(seconds >= kShortest && seconds <= kLongest)) return false;
  Mean& mean = categories_[category][workers].by_nodes[nodes];
  const double before = mean.value;
  mean.Add(seconds);
  return Changed(before, mean.value);
}

bool Collector::Stall(const std::string& category, StallKind kind, double seconds) {
  if (!(seconds >= 0 && seconds <= kLongest)) return false;
  Mean& mean = stalls_[{category, kind}];
  const bool first = mean.count == 0;
  const double before = mean.value;
  mean.Add(seconds);
  return first || Changed(before, mean.value);
}

Collector::Mean Collector::EpochMean(const std::string& category, int workers, int nodes) const {
  const auto known = categories_.find(category);
  if (known == categories_.end()) return {};
  const auto size = known->second.find(workers);
  if (size == known->second.end()) return {};
  const auto mean = size->second.by_nodes.find(nodes);
  return mean == size->second.by_nodes.end() ? Mean{} : mean->second;
}

Collector::Mean Collector::StallMean(const std::string& category, StallKind kind) const {
  const auto known = stalls_.find({category, kind});
  return known == stalls_.end() ? Mean{} : known->second;
}

bool Collector::RestoreEpoch(const std::string& category, int workers, int nodes, Mean mean) {
  if (workers < 1 || nodes < 1 || mean.count < 1 || !(mean.value >= kShortest && mean.value <= kLongest))
    return false;
  categories_[category][workers].by_nodes[nodes] = mean;
  return true;
}

bool Collector::RestoreStall(const std::string& category, StallKind kind, Mean mean) {
  if (mean.count < 1 || !(mean.value >= 0 && mean.value <= kLongest)) return false;
  stalls_[{category, kind}] = mean;
  return true;
}

namespace {

double OneWorker(int workers, double seconds) {
  return seconds * workers;
}

}  // namespace

double Collector::Speedup(const Sizes& sizes, int workers) {
  const double one = OneWorker(sizes.begin()->first, sizes.begin()->second.seconds());
  const auto at = [&](Sizes::const_iterator size) { return one / size->second.seconds(); };
  const auto above = sizes.lower_bound(workers);
  if (above == sizes.end()) {
    const auto last = std::prev(sizes.end());
    return at(last) * std::pow(static_cast<double>(workers) / last->first, kExponentBeyond);
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

std::shared_ptr<const std::vector<int>> Collector::MeasuredOf(const std::string& category) const {
  auto measured = std::make_shared<std::vector<int>>();
  if (const auto known = categories_.find(category); known != categories_.end()) {
    for (const auto& [workers, size] : known->second) measured->push_back(workers);
  }
  return measured;
}

std::shared_ptr<const SpanTable> Collector::SpansOf(const std::string& category) const {
  const auto known = categories_.find(category);
  if (known == categories_.end()) return nullptr;
  const Sizes& sizes = known->second;
  const double one = OneWorker(sizes.begin()->first, sizes.begin()->second.seconds());
  SpanTable table;
  for (const auto& [workers, size] : sizes) {
    if (size.by_nodes.size() < 2) continue;
    for (const auto& [nodes, mean] : size.by_nodes) table.push_back({workers, nodes, one / mean.value});
  }
  if (table.empty()) return nullptr;
  return std::make_shared<const SpanTable>(std::move(table));
}

double Collector::EpochSeconds(const std::string& category) const {
  const auto known = categories_.find(category);
  const auto one = [](const Sizes& sizes) {
    return OneWorker(sizes.begin()->first, sizes.begin()->second.seconds());
  };
  if (known != categories_.end()) return one(known->second);
  if (categories_.empty()) return kUnknownEpochSeconds;
  double sum = 0;
  for (const auto& [name, sizes] : categories_) sum += one(sizes);
  return sum / static_cast<double>(categories_.size());
}

Stalls Collector::StallsOf(const std::string& category) const {
  const auto observed = [&](StallKind kind, double fallback) {
    const auto known = stalls_.find({category, kind});
    return known == stalls_.end() ? fallback : known->second.value;
  };
  const Stalls unknown;
  return {.start = observed(StallKind::kStart, unknown.start),
          .rescale = observed(StallKind::kRescale, unknown.rescale),
          .migration = observed(StallKind::kMigration, unknown.migration)};
}

}  // namespace voda
