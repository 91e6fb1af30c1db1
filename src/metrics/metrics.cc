#include "metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/indexed.h"
#include "base/log.h"
#include "metrics/label_text.h"
#include "metrics/process.h"
#include "metrics/series.h"

namespace voda {

namespace {

using Kind = SeriesInfo::Kind;
using LabelValues = std::vector<std::string>;

// One label set of one series; the kind says which member is used.
struct Value {
  prometheus::Counter counter;
  prometheus::Gauge gauge;
  std::unique_ptr<prometheus::Histogram> histogram;
};

struct Family {
  mutable std::mutex mutex;
  std::map<LabelValues, Value> values;  // ordered: the text is the same for the same numbers
};

prometheus::MetricType TypeOf(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return prometheus::MetricType::Counter;
    case Kind::kGauge:
      return prometheus::MetricType::Gauge;
    case Kind::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  return prometheus::MetricType::Untyped;
}

LabelValues ValuesOf(const SeriesInfo& info, Metrics::Labels labels) {
  VODA_CHECK(labels.size() == info.labels.size());
  LabelValues values;
  values.reserve(labels.size());
  for (const std::string_view label : labels) values.push_back(LabelText(label, Metrics::kMostLabelBytes));
  return values;
}

prometheus::MetricFamily Collect(const SeriesInfo& info, const Family& family) {
  prometheus::MetricFamily out;
  out.name = info.name;
  out.help = info.help;
  out.type = TypeOf(info.kind);
  const std::lock_guard lock(family.mutex);
  for (const auto& [labels, value] : family.values) {
    auto metric = info.kind == Kind::kCounter ? value.counter.Collect()
                  : info.kind == Kind::kGauge ? value.gauge.Collect()
                                              : value.histogram->Collect();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      metric.label.push_back({std::string(info.labels[i]), labels[i]});
    }
    out.metric.push_back(std::move(metric));
  }
  return out;
}

}  // namespace

struct Metrics::State {
  IndexedVector<Series, Family> families = IndexedVector<Series, Family>(SeriesTable().size());
  std::mutex process_mutex;
  double cpu_counted = 0;
  std::uint64_t lines_counted = 0;  // of the log, dropped

  // Calls `change` with the value of that label set, which is made if it is new. Returns false if it was
  // dropped.
  template <class Change>
  void Apply(Series series, Labels labels, bool usable, Change&& change) {
    const SeriesInfo& info = InfoOf(series);
    if (!usable || !TryApply(info, ValuesOf(info, labels), change)) {
      TryApply(InfoOf(Series::kMetricsDropped), {std::string(info.name)},
               [](Value& dropped) { dropped.counter.Increment(); });
    }
  }

  template <class Change>
  bool TryApply(const SeriesInfo& info, LabelValues labels, Change&& change) {
    Family& family = families[info.series];
    const std::lock_guard lock(family.mutex);
    auto found = family.values.find(labels);
    if (found == family.values.end()) {
      if (family.values.size() >= kMostLabelSets) return false;
      found = family.values.try_emplace(std::move(labels)).first;
      if (info.kind == Kind::kHistogram) {
        found->second.histogram = std::make_unique<prometheus::Histogram>(info.buckets);
      }
    }
    change(found->second);
    return true;
  }

  void CountProcess() {
    const ProcessFacts facts = ReadProcessFacts();
    const auto set = [&](Series series, double number) {
      Apply(series, {}, true, [&](Value& value) { value.gauge.Set(number); });
    };
    set(Series::kProcessResidentMemory, facts.resident_bytes);
    set(Series::kProcessVirtualMemory, facts.virtual_bytes);
    set(Series::kProcessOpenFds, facts.open_fds);
    set(Series::kProcessMaxFds, facts.max_fds);
    set(Series::kProcessStartTime, facts.start_time);
    const std::lock_guard lock(process_mutex);
    if (const std::uint64_t dropped = LogLinesDropped(); dropped > lines_counted) {
      const auto more = static_cast<double>(dropped - std::exchange(lines_counted, dropped));
      Apply(Series::kLogLinesLost, {}, true, [&](Value& value) { value.counter.Increment(more); });
    }
    if (facts.cpu_seconds <= cpu_counted) return;
    const double more = facts.cpu_seconds - std::exchange(cpu_counted, facts.cpu_seconds);
    Apply(Series::kProcessCpu, {}, true, [&](Value& value) { value.counter.Increment(more); });
  }
};

Metrics::Metrics(std::string_view version) : state_(std::make_unique<State>()) {
  // Series without labels begin at 0, not with their first event.
  for (const SeriesInfo& info : SeriesTable()) {
    if (info.labels.empty()) state_->TryApply(info, {}, [](Value&) {});
  }
  Set(Series::kBuildInfo, {version}, 1);
}

Metrics::~Metrics() = default;

void Metrics::Add(Series series, Labels labels, double by) {
  const bool counter = InfoOf(series).kind == Kind::kCounter;
  VODA_CHECK(counter || InfoOf(series).kind == Kind::kGauge);
  state_->Apply(series, labels, std::isfinite(by) && (by >= 0 || !counter), [&](Value& value) {
    if (counter) {
      value.counter.Increment(by);
    } else {
      value.gauge.Increment(by);
    }
  });
}

void Metrics::Set(Series series, Labels labels, double value) {
  VODA_CHECK(InfoOf(series).kind == Kind::kGauge);
  state_->Apply(series, labels, std::isfinite(value), [&](Value& one) { one.gauge.Set(value); });
}

void Metrics::Observe(Series series, Labels labels, double value) {
  VODA_CHECK(InfoOf(series).kind == Kind::kHistogram);
  state_->Apply(series, labels, std::isfinite(value), [&](Value& one) { one.histogram->Observe(value); });
}

void Metrics::Remove(Series series, Labels labels) {
  Family& family = state_->families[series];
  const LabelValues values = ValuesOf(InfoOf(series), labels);
  const std::lock_guard lock(family.mutex);
  family.values.erase(values);
}

void Metrics::RemoveAll(Series series, std::string_view first_label) {
  VODA_CHECK(InfoOf(series).kind == Kind::kGauge && !InfoOf(series).labels.empty());
  Family& family = state_->families[series];
  const std::string first = LabelText(first_label, kMostLabelBytes);
  const std::lock_guard lock(family.mutex);
  std::erase_if(family.values, [&](const auto& entry) { return entry.first.front() == first; });
}

std::string Metrics::Text(Role role) const {
  state_->CountProcess();
  std::vector<prometheus::MetricFamily> families;
  for (const SeriesInfo& info : SeriesTable()) {
    if ((info.roles & static_cast<int>(role)) == 0) continue;
    auto family = Collect(info, state_->families[info.series]);
    if (!family.metric.empty()) families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace voda
