#include "estimate/job_epochs.h"

#include <cmath>
#include <vector>

namespace voda {

namespace {

// The mean of what `value_of` says of each element.
template <class List, class ValueOf>
double MeanOver(const List& list, const ValueOf& value_of) {
  double sum = 0;
  for (const auto& element : list) sum += value_of(element);
  return sum / static_cast<double>(list.size());
}

}  // namespace

bool JobEpochs::Add(const std::string& job, Layout layout, double seconds) {
  const auto [seen, inserted] = jobs_.try_emplace(job);
  if (inserted) {
    order_.push_back(job);
    if (order_.size() > kMost) {
      jobs_.erase(order_.front());
      order_.pop_front();
    }
  }
  return seen->second[layout].Add(seconds);
}

bool JobEpochs::Uneven() const {
  constexpr double kScatter = 0.26;  // ln 1.3
  std::map<Layout, std::vector<double>> by_layout;
  for (const auto& [job, seen] : jobs_) {
    for (const auto& [layout, mean] : seen) by_layout[layout].push_back(std::log(mean.value));
  }
  double squares = 0;
  std::size_t degrees = 0;
  for (const auto& [layout, logs] : by_layout) {
    const double middle = MeanOver(logs, [](double value) { return value; });
    for (const double value : logs) squares += (value - middle) * (value - middle);
    degrees += logs.size() - 1;
  }
  return squares > kScatter * kScatter * static_cast<double>(degrees);
}

std::map<Layout, double> JobEpochs::Times() const {
  constexpr double kExponent = 0.8;  // where no job connects two layouts, n workers are n^0.8 times as fast
  constexpr int kTurns = 10;
  std::map<Layout, int> number;  // of a layout, in the order of its first job
  std::vector<double> times;
  struct Entry {
    int layout;
    double log;
  };
  std::vector<std::vector<Entry>> jobs;
  for (const auto& [job, seen] : jobs_) {
    auto& entries = jobs.emplace_back();
    for (const auto& [layout, mean] : seen) {
      const auto [at, inserted] = number.try_emplace(layout, static_cast<int>(times.size()));
      if (inserted) times.push_back(-kExponent * std::log(layout.workers));
      entries.push_back({at->second, std::log(mean.value)});
    }
  }
  // Lengths for given times and times for given lengths, in turn.
  for (int turn = 0; turn < kTurns; ++turn) {
    std::vector<Mean> next(times.size());
    for (const auto& entries : jobs) {
      if (entries.size() < 2) continue;  // it compares nothing
      const double length =
          MeanOver(entries, [&](const Entry& entry) { return entry.log - times[entry.layout]; });
      for (const Entry& entry : entries) next[entry.layout].Add(entry.log - length);
    }
    for (std::size_t layout = 0; layout < times.size(); ++layout) {
      if (next[layout].count > 0) times[layout] = next[layout].value;
    }
  }
  std::map<Layout, double> found;
  for (const auto& [layout, at] : number) found[layout] = std::exp(times[at]);
  return found;
}

double JobEpochs::Length(const std::string& job, const std::function<double(Layout)>& time_of) const {
  const auto length = [&](const Seen& seen) {
    return MeanOver(seen,
                    [&](const auto& entry) { return std::log(entry.second.value / time_of(entry.first)); });
  };
  if (const auto known = jobs_.find(job); known != jobs_.end()) return std::exp(length(known->second));
  return std::exp(MeanOver(jobs_, [&](const auto& entry) { return length(entry.second); }));
}

}  // namespace voda
