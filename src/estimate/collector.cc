#include "estimate/collector.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace voda {

namespace {

constexpr double kShortest = 1e-6, kLongest = 1e9;  // these limits also keep every ratio of two finite
constexpr double kExponentBeyond = 0.8;

// Of two epochs.
bool PossibleRatio(double ratio) {
  return ratio >= kShortest / kLongest && ratio <= kLongest / kShortest;
}

std::vector<int> SizesOf(const Curve& shape) {
  std::vector<int> sizes;
  sizes.reserve(shape.count());
  for (int i = 0; i < shape.count(); ++i) sizes.push_back(shape.size(i));
  return sizes;
}

// The curve over the sizes of `shape`, made only if nobody has it.
template <class Curves, class Make>
CurvePtr Shared(Curves& curves, const Curve& shape, const Make& make) {
  if (curves.known.size() >= curves.sweep_at) {
    std::erase_if(curves.known, [](const auto& entry) { return entry.second.expired(); });
    curves.sweep_at = std::max<std::size_t>(64, 2 * curves.known.size());
  }
  const bool consecutive = shape.max() - shape.min() + 1 == shape.count();
  auto& known = curves.known[consecutive ? std::vector<int>{0, shape.min(), shape.max()} : SizesOf(shape)];
  CurvePtr curve = known.lock();
  if (!curve) known = curve = make();
  return curve;
}

}  // namespace

Collector::Said& Collector::SaidOf(const std::string& category) const {
  return said_[Measured(category) ? category : std::string()];
}

double Collector::Size::seconds() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [nodes, mean] : by_nodes) least = std::min(least, mean.value);
  return least;
}

bool Collector::Epoch(const std::string& category, const std::string& job, int workers, int nodes,
                      double seconds) {
  if (workers < 1 || nodes < 1 || !(seconds >= kShortest && seconds <= kLongest)) return false;
  Category& known = categories_[category];
  bool news = known.pooled[workers].by_nodes[nodes].Add(seconds);
  if (known.jobs.Add(job, {workers, nodes}, seconds)) {
    const bool was_uneven = std::exchange(known.uneven, known.jobs.Uneven());
    news = news || known.uneven || was_uneven;
    known.fitted.reset();
  }
  if (news) said_.erase(category);
  return news;
}

const Collector::Sizes* Collector::SizesFor(const std::string& category) const {
  const auto known = categories_.find(category);
  if (known == categories_.end()) return nullptr;
  const Category& found = known->second;
  if (!found.uneven) return found.pooled.empty() ? nullptr : &found.pooled;
  if (!found.fitted) {
    found.fitted.emplace();
    for (const auto& [layout, time] : found.jobs.Times()) {
      (*found.fitted)[layout.workers].by_nodes[layout.nodes].Add(time);
    }
  }
  return &*found.fitted;
}

bool Collector::Stall(const std::string& category, StallKind kind, double seconds) {
  if (!(seconds >= 0 && seconds <= kLongest)) return false;
  return stalls_[{category, kind}].Add(seconds);
}

bool Collector::Finished(const std::string& category, double work_seconds) {
  return RestoreFinished(category, work_seconds, FinishedCount(category) + 1);
}

void Collector::Ended(const std::string& category, const std::string& job) {
  if (const auto known = categories_.find(category); known != categories_.end())
    known->second.jobs.Ended(job);
}

int Collector::FinishedCount(const std::string& category) const {
  const auto known = finishes_.find(category);
  return known == finishes_.end() ? 0 : known->second.count;
}

bool Collector::RestoreFinished(const std::string& category, double work_seconds, int count) {
  constexpr int kMostCounted = 1'000'000'000;
  if (count < 1 || count > kMostCounted) return false;
  if (!(work_seconds >= kShortest && work_seconds <= kLongest)) return false;
  Finishes& finishes = finishes_[category];
  finishes.work[count % kFinishedKept] = work_seconds;
  finishes.count = std::max(finishes.count, count);
  FinishedWork sorted;
  for (const auto& [number, seconds] : finishes.work) sorted.push_back(seconds);
  std::sort(sorted.begin(), sorted.end());
  finishes.sorted = std::make_shared<const FinishedWork>(std::move(sorted));
  return true;
}

std::shared_ptr<const FinishedWork> Collector::FinishedOf(const std::string& category) const {
  const auto known = finishes_.find(category);
  return known == finishes_.end() ? nullptr : known->second.sorted;
}

Mean Collector::EpochMean(const std::string& category, int workers, int nodes) const {
  const auto known = categories_.find(category);
  if (known == categories_.end()) return {};
  const auto size = known->second.pooled.find(workers);
  if (size == known->second.pooled.end()) return {};
  const auto mean = size->second.by_nodes.find(nodes);
  return mean == size->second.by_nodes.end() ? Mean{} : mean->second;
}

Mean Collector::StallMean(const std::string& category, StallKind kind) const {
  const auto known = stalls_.find({category, kind});
  return known == stalls_.end() ? Mean{} : known->second;
}

bool Collector::RestoreEpoch(const std::string& category, int workers, int nodes, Mean mean) {
  if (workers < 1 || nodes < 1 || mean.count < 1 || !(mean.value >= kShortest && mean.value <= kLongest))
    return false;
  mean.told = mean.value;
  categories_[category].pooled[workers].by_nodes[nodes] = mean;
  said_.erase(category);
  return true;
}

bool Collector::Uneven(const std::string& category) const {
  const auto known = categories_.find(category);
  return known != categories_.end() && known->second.uneven;
}

EpochFit Collector::FitOf(const std::string& category) const {
  const auto known = categories_.find(category);
  return known == categories_.end() ? EpochFit{} : known->second.jobs.Fit();
}

bool Collector::RestoreTime(const std::string& category, Layout layout, EpochFit::Time time) {
  if (layout.workers < 1 || layout.nodes < 1 || time.jobs < 0 || !PossibleRatio(time.value)) return false;
  Category& known = categories_[category];
  known.jobs.RestoreTime(layout, time);
  Refit(category, known);
  return true;
}

bool Collector::RestoreTypical(const std::string& category, double length, int jobs) {
  if (jobs < 0 || !PossibleRatio(length)) return false;
  Category& known = categories_[category];
  known.jobs.RestoreTypical(length, jobs);
  Refit(category, known);
  return true;
}

void Collector::Refit(const std::string& category, Category& known) {
  known.uneven = known.jobs.Uneven();
  known.fitted.reset();
  said_.erase(category);
}

bool Collector::RestoreStall(const std::string& category, StallKind kind, Mean mean) {
  if (mean.count < 1 || !(mean.value >= 0 && mean.value <= kLongest)) return false;
  mean.told = mean.value;
  stalls_[{category, kind}] = mean;
  return true;
}

double Collector::OneWorker(const Sizes& sizes) {
  return sizes.begin()->second.seconds() * sizes.begin()->first;
}

double Collector::Speedup(const Sizes& sizes, int workers) {
  const double one = OneWorker(sizes);
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
  return Shared(SaidOf(category).curves, shape, [&] {
    std::vector<int> sizes = SizesOf(shape);
    const Sizes* known = SizesFor(category);
    if (known == nullptr) return Curve::LinearOver(std::move(sizes));
    std::vector<double> speedup;
    speedup.reserve(sizes.size());
    for (const int size : sizes) speedup.push_back(Speedup(*known, size));
    return Curve::Of(std::move(sizes), std::move(speedup));
  });
}

CurvePtr Collector::GuessedCurveFor(const std::string& category, const Curve& shape) const {
  if (Measured(category)) return CurveFor(category, shape);
  return Shared(SaidOf(category).guesses, shape, [&] { return Curve::GuessedOver(shape); });
}

std::shared_ptr<const std::vector<int>> Collector::MeasuredOf(const std::string& category) const {
  Said& said = SaidOf(category);
  if (!said.measured) {
    std::vector<int> measured;
    if (const Sizes* known = SizesFor(category)) {
      for (const auto& [workers, size] : *known) measured.push_back(workers);
    }
    said.measured = std::make_shared<const std::vector<int>>(std::move(measured));
  }
  return said.measured;
}

std::shared_ptr<const SpanTable> Collector::SpansOf(const std::string& category) const {
  const Sizes* sizes = SizesFor(category);
  if (sizes == nullptr) return nullptr;
  Said& said = SaidOf(category);
  if (said.spans) return said.spans;
  const double one = OneWorker(*sizes);
  SpanTable table;
  for (const auto& [workers, size] : *sizes) {
    if (size.by_nodes.size() < 2) continue;
    for (const auto& [nodes, mean] : size.by_nodes) table.push_back({workers, nodes, one / mean.value});
  }
  if (table.empty()) return nullptr;
  said.spans = std::make_shared<const SpanTable>(std::move(table));
  return said.spans;
}

double Collector::EpochSeconds(const std::string& category, const std::string& job) const {
  const auto of = [&](const std::string& name, const Category& known) {
    const Sizes& sizes = *SizesFor(name);
    if (!known.uneven) return OneWorker(sizes);
    const auto time_of = [&](Layout layout) {
      return sizes.at(layout.workers).by_nodes.at(layout.nodes).value;
    };
    return OneWorker(sizes) * known.jobs.Length(job, time_of);
  };
  if (Measured(category)) return of(category, categories_.find(category)->second);
  double sum = 0;
  int count = 0;
  for (const auto& [name, other] : categories_) {
    if (!Measured(name)) continue;
    sum += of(name, other);
    ++count;
  }
  return count == 0 ? kUnknownEpochSeconds : sum / count;
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
