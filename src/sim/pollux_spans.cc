#include "sim/pollux_spans.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/csv.h"

namespace voda::sim {
namespace {

constexpr int kGpusPerNode = 4;
constexpr int kLargestMeasured = 16;

int CeilDiv(int a, int b) {
  return (a + b - 1) / b;
}

}  // namespace

Result<PlacementProfiles> PlacementProfiles::Read(const std::string& path) {
  enum Column { kApp, kPlacement, kGpus, kNodes, kLocal, kStep, kSync };
  Result<CsvReader> opened = CsvReader::Open(path, {.columns = {{"app"},
                                                                {"placement"},
                                                                {"num_gpus"},
                                                                {"num_nodes"},
                                                                {"local_bsz"},
                                                                {"step_time_s"},
                                                                {"sync_time_s"}},
                                                    .allow_unknown = true});
  if (!opened) return opened.error();
  CsvReader& reader = *opened;
  PlacementProfiles profiles;
  while (reader.Next()) {
    const std::pair<int, int> shape{reader.Int(kGpus, 1, 1024), reader.Int(kNodes, 1, 1024)};
    const Sample sample{.local_batch = reader.Int(kLocal, 1, 1'000'000'000),
                        .step = reader.Number(kStep, 1e-9, 1e9),
                        .sync = reader.Number(kSync, 0, 1e9)};
    if (sample.sync > sample.step) reader.Fail(kSync, "is more than step_time_s, of which it is a part");
    if (reader.failed()) break;
    Samples& samples =
        profiles.apps_[std::string(reader.Text(kApp))][shape][std::string(reader.Text(kPlacement))];
    if (!samples.empty() && samples.back().local_batch >= sample.local_batch) {
      reader.Fail(kLocal, "does not ascend within its placement; sort the file");
    }
    samples.push_back(sample);
  }
  if (reader.failed()) return reader.error();
  return profiles;
}

std::optional<double> PlacementProfiles::IterationSeconds(const FixedBatch& batch, int gpus,
                                                          int nodes) const {
  const auto shapes = apps_.find(batch.app);
  if (shapes == apps_.end()) return std::nullopt;
  const auto placements = shapes->second.find({gpus, nodes});
  if (placements == shapes->second.end()) return std::nullopt;

  double sum = 0;
  int count = 0;
  for (const auto& [name, samples] : placements->second) {
    const int local = CeilDiv(batch.size, gpus);
    const int measured = samples.back().local_batch;
    const int pieces =
        CeilDiv(local, batch.largest_local > 0 ? std::min(batch.largest_local, measured) : measured);
    const int atomic = batch.may_grow ? CeilDiv(local, pieces) : batch.size / gpus / pieces;
    const auto above =
        std::lower_bound(samples.begin(), samples.end(), atomic,
                         [](const Sample& sample, int size) { return sample.local_batch < size; });
    if (above == samples.end() || (above == samples.begin() && above->local_batch != atomic)) continue;
    double step = above->step;
    double sync = above->sync;
    if (above->local_batch != atomic) {
      const Sample& below = *(above - 1);
      const double share =
          static_cast<double>(atomic - below.local_batch) / (above->local_batch - below.local_batch);
      step = below.step + share * (above->step - below.step);
      sync = below.sync + share * (above->sync - below.sync);
    }
    sum += step + (pieces - 1) * (step - sync);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

std::vector<SpanSpeedup> PlacementProfiles::Spans(const FixedBatch& batch, double one_gpu_seconds) const {
  std::vector<SpanSpeedup> spans;
  for (int gpus = 2; gpus <= kLargestMeasured; ++gpus) {
    for (int nodes = CeilDiv(gpus, kGpusPerNode) + 1; nodes <= gpus; ++nodes) {
      const auto seconds = IterationSeconds(batch, gpus, nodes);
      if (seconds) spans.push_back({.workers = gpus, .nodes = nodes, .speedup = one_gpu_seconds / *seconds});
    }
  }
  return spans;
}

}  // namespace voda::sim
