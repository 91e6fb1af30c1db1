#include "estimate/job_epochs.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace voda {

namespace {

struct WeightedMean {
  double sum = 0;
  int weight = 0;
  void Add(double sample, int times) {
    sum += sample * times;
    weight += times;
  }
  double value() const { return sum / weight; }
};

// The weight of what is kept: restart by restart it would grow.
int Bounded(int jobs) {
  return std::min(jobs, static_cast<int>(JobEpochs::kMost));
}

}  // namespace

void JobEpochs::Forget() {
  if (FromEarlier() && jobs_.size() >= kMost) earlier_ = {};
  while (jobs_.size() > kMost && !ended_.empty()) {
    jobs_.erase(ended_.front());
    ended_.pop_front();
  }
}

bool JobEpochs::Add(const std::string& job, Layout layout, double seconds) {
  if (const auto ended = std::find(ended_.begin(), ended_.end(), job); ended != ended_.end()) {
    ended_.erase(ended);
    jobs_.erase(job);
  }
  const auto [seen, inserted] = jobs_.try_emplace(job);
  if (inserted) Forget();
  return seen->second[layout].Add(seconds);
}

void JobEpochs::Ended(const std::string& job) {
  if (!jobs_.contains(job)) return;
  ended_.push_back(job);
  Forget();
}

bool JobEpochs::Uneven() const {
  constexpr double kScatter = 0.26;  // ln 1.3
  if (FromEarlier()) return true;
  std::map<Layout, std::vector<double>> by_layout;
  for (const auto& [job, seen] : jobs_) {
    for (const auto& [layout, mean] : seen) by_layout[layout].push_back(std::log(mean.value));
  }
  double squares = 0;
  std::size_t degrees = 0;
  for (const auto& [layout, logs] : by_layout) {
    WeightedMean middle;
    for (const double value : logs) middle.Add(value, 1);
    for (const double value : logs) squares += (value - middle.value()) * (value - middle.value());
    degrees += logs.size() - 1;
  }
  return squares > kScatter * kScatter * static_cast<double>(degrees);
}

EpochFit JobEpochs::FitTimes() const {
  constexpr double kExponent = 0.8;  // where no job connects two layouts, n workers are n^0.8 times as fast
  constexpr int kTurns = 10;
  std::map<Layout, int> number;  // of a layout, in the order of its first job
  std::vector<double> times;
  const auto number_of = [&](Layout layout) {
    const auto [at, inserted] = number.try_emplace(layout, static_cast<int>(times.size()));
    if (inserted) times.push_back(-kExponent * std::log(layout.workers));
    return at->second;
  };
  struct Entry {
    int layout;
    double log;
    int weight;
  };
  // Those that compare layouts.
  std::vector<std::vector<Entry>> jobs;
  const auto compare = [&](std::vector<Entry> entries) {
    if (entries.size() > 1) jobs.push_back(std::move(entries));
  };
  for (const auto& [job, seen] : jobs_) {
    std::vector<Entry> entries;
    for (const auto& [layout, mean] : seen) entries.push_back({number_of(layout), std::log(mean.value), 1});
    compare(std::move(entries));
  }
  if (FromEarlier()) {
    std::vector<Entry> entries;
    for (const auto& [layout, time] : earlier_.times) {
      const int at = number_of(layout);
      if (time.jobs > 0) entries.push_back({at, std::log(time.value), time.jobs});
    }
    compare(std::move(entries));
  }
  // Lengths for given times and times for given lengths, in turn.
  std::vector<WeightedMean> next;
  for (int turn = 0; turn < kTurns; ++turn) {
    next.assign(times.size(), {});
    for (const auto& entries : jobs) {
      WeightedMean length;
      for (const Entry& entry : entries) length.Add(entry.log - times[entry.layout], entry.weight);
      for (const Entry& entry : entries) next[entry.layout].Add(entry.log - length.value(), entry.weight);
    }
    for (std::size_t layout = 0; layout < times.size(); ++layout) {
      if (next[layout].weight > 0) times[layout] = next[layout].value();
    }
  }
  EpochFit fit;
  for (const auto& [layout, at] : number) fit.times[layout] = {std::exp(times[at]), Bounded(next[at].weight)};
  return fit;
}

std::map<Layout, double> JobEpochs::Times() const {
  std::map<Layout, double> found;
  for (const auto& [layout, time] : FitTimes().times) found[layout] = time.value;
  return found;
}

double JobEpochs::Length(const std::string& job, const std::function<double(Layout)>& time_of) const {
  const auto length = [&](const Seen& seen) {
    WeightedMean mean;
    for (const auto& [layout, one] : seen) mean.Add(std::log(one.value / time_of(layout)), 1);
    return mean.value();
  };
  if (const auto known = jobs_.find(job); known != jobs_.end()) return std::exp(length(known->second));
  WeightedMean typical;
  for (const auto& [name, seen] : jobs_) typical.Add(length(seen), 1);
  if (FromEarlier()) {
    WeightedMean mean;
    for (const auto& [layout, time] : earlier_.times)
      mean.Add(std::log(earlier_.length * time.value / time_of(layout)), 1);
    typical.Add(mean.value(), earlier_.jobs);
  }
  return std::exp(typical.value());
}

EpochFit JobEpochs::Fit() const {
  if (!Uneven()) return {};
  EpochFit fit = FitTimes();
  fit.length = Length({}, [&](Layout layout) { return fit.times.at(layout).value; });
  fit.jobs = Bounded(static_cast<int>(jobs_.size()) + (FromEarlier() ? earlier_.jobs : 0));
  return fit;
}

void JobEpochs::RestoreTime(Layout layout, EpochFit::Time time) {
  earlier_.times[layout] = {time.value, Bounded(time.jobs)};
}

void JobEpochs::RestoreTypical(double length, int jobs) {
  earlier_.length = length;
  earlier_.jobs = Bounded(jobs);
}

}  // namespace voda
