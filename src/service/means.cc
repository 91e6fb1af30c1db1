#include "service/means.h"

#include <array>
#include <utility>

namespace voda {

namespace {

constexpr const char* kEpoch = "epoch";
constexpr const char* kTime = "time";
constexpr const char* kTypical = "typical";
constexpr std::array<std::pair<StallKind, const char*>, 3> kStalls = {
    {{StallKind::kStart, "start"}, {StallKind::kRescale, "rescale"}, {StallKind::kMigration, "migration"}}};

}  // namespace

MeanRecord EpochMean(const Collector& collector, const std::string& category, int workers, int nodes) {
  const Mean mean = collector.EpochMean(category, workers, nodes);
  return {{}, category, kEpoch, workers, nodes, mean.value, mean.count};
}

MeanRecord StallMean(const Collector& collector, const std::string& category, StallKind kind) {
  const Mean mean = collector.StallMean(category, kind);
  MeanRecord record{{}, category, {}, 0, 0, mean.value, mean.count};
  for (const auto& [one, name] : kStalls) {
    if (one == kind) record.kind = name;
  }
  return record;
}

std::vector<MeanRecord> FitMeans(const Collector& collector, const std::string& category) {
  const EpochFit fit = collector.FitOf(category);
  std::vector<MeanRecord> records = {{{}, category, kTypical, 0, 0, fit.length, fit.jobs}};
  for (const auto& [layout, time] : fit.times)
    records.push_back({{}, category, kTime, layout.workers, layout.nodes, time.value, time.jobs});
  return records;
}

MeanRecord FinishedMean(const Collector& collector, const std::string& category, double work_seconds) {
  const int count = collector.FinishedCount(category);
  return {{}, category, std::string(kWorkMean), count % kFinishedKept, 0, work_seconds, count};
}

bool RestoreMean(const MeanRecord& mean, Collector& collector) {
  const Mean value{mean.value, mean.count};
  if (mean.kind == kEpoch) return collector.RestoreEpoch(mean.category, mean.workers, mean.nodes, value);
  if (mean.kind == kTime)
    return collector.RestoreTime(mean.category, {mean.workers, mean.nodes}, {mean.value, mean.count});
  if (mean.kind == kTypical) return collector.RestoreTypical(mean.category, mean.value, mean.count);
  if (mean.kind == kWorkMean) return collector.RestoreFinished(mean.category, mean.value, mean.count);
  for (const auto& [kind, name] : kStalls) {
    if (mean.kind == name) return collector.RestoreStall(mean.category, kind, value);
  }
  return false;
}

}  // namespace voda
