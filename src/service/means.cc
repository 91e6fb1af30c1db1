#include "service/means.h"

#include <array>
#include <utility>

namespace voda {

namespace {

constexpr const char* kEpoch = "epoch";
constexpr const char* kWork = "work";
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

MeanRecord FinishedMean(const Collector& collector, const std::string& category, double work_seconds) {
  const int count = collector.FinishedCount(category);
  return {{}, category, kWork, count % kFinishedKept, 0, work_seconds, count};
}

bool RestoreMean(const MeanRecord& mean, Collector& collector) {
  const Mean value{mean.value, mean.count};
  if (mean.kind == kEpoch) return collector.RestoreEpoch(mean.category, mean.workers, mean.nodes, value);
  if (mean.kind == kWork) return collector.RestoreFinished(mean.category, mean.value, mean.count);
  for (const auto& [kind, name] : kStalls) {
    if (mean.kind == name) return collector.RestoreStall(mean.category, kind, value);
  }
  return false;
}

}  // namespace voda
