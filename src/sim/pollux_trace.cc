// Pollux: synthetic submissions of six measured applications, run at a fixed batch size.
//
// The curve of an (application, batch size) comes from total times on 1 to 64 GPUs packed four to a node;
// sizes that were not measured are interpolated. Where one GPU was not measured, the smallest measured size m
// is taken to scale linearly from one: work = m × its time, speed-up m there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "model/job.h"
#include "sim/csv.h"
#include "sim/pollux_spans.h"
#include "sim/traces.h"
#include "sim/workload_builder.h"

namespace voda::sim {
namespace {

constexpr int kLargestSize = 64;
constexpr int kMaxBatch = 1'000'000'000;
constexpr int kEpochsOfOthers = 10;
constexpr std::array<std::pair<std::string_view, int>, 6> kEpochsOfModels{
    {{"bert", 2}, {"cifar10", 100}, {"ncf", 10}, {"imagenet", 90}, {"deepspeech2", 80}, {"yolov3", 50}}};

int EpochsOf(std::string_view app) {
  for (const auto& [name, epochs] : kEpochsOfModels) {
    if (name == app) return epochs;
  }
  return kEpochsOfOthers;
}

struct Times {
  std::map<int, double> total_seconds;  // by GPUs
  double one_gpu_iteration = 0;
};
struct TimesTable {
  std::map<std::pair<std::string, int>, Times> times;  // by (application, batch size)
  std::map<std::string, int> largest_local;            // by application: most samples that a GPU took at once
};

Result<TimesTable> ReadTimes(const std::string& path) {
  enum Column { kApp, kBatch, kGpus, kIteration, kTotal, kAtomic };
  Result<CsvReader> opened = CsvReader::Open(
      path,
      {.columns =
           {{"app"}, {"batch_size"}, {"num_gpus"}, {"iter_time_s"}, {"total_time_s"}, {"atomic_bsz", false}},
       .allow_unknown = true});
  if (!opened) return opened.error();
  CsvReader& reader = *opened;
  TimesTable table;
  while (reader.Next()) {
    const int batch = reader.Int(kBatch, 1, kMaxBatch);
    const int gpus = reader.Int(kGpus, 1, kMaxWorkers);
    const double iteration = reader.Number(kIteration, 1e-9, kMaxWorkSeconds);
    const double total = reader.Number(kTotal, 1e-6, kMaxWorkSeconds / kMaxWorkers);
    if (!IsName(reader.Text(kApp), 200))
      reader.Fail(kApp, "is not 1 to 200 visible ASCII characters without spaces");
    if (reader.failed()) break;
    if (gpus > kLargestSize) continue;
    const std::string app(reader.Text(kApp));
    if (reader.Has(kAtomic)) {
      int& largest = table.largest_local[app];
      largest = std::max(largest, reader.Int(kAtomic, 1, kMaxBatch));
    }
    Times& times = table.times[{app, batch}];
    if (!times.total_seconds.emplace(gpus, total).second) {
      reader.Fail(kGpus, "appears twice for its app and batch size");
    }
    if (gpus == 1) times.one_gpu_iteration = iteration;
  }
  if (reader.failed()) return reader.error();
  return table;
}

// What all jobs of one application and batch size share.
struct ModelRun {
  std::string category;
  Profile profile;
  double work_seconds = 0;
  int epochs = 1;
};
using Kinds = std::map<std::pair<std::string, int>, ModelRun>;

Result<Kinds> MakeKinds(const TimesTable& table, const std::optional<PlacementProfiles>& placements) {
  Kinds kinds;
  for (const auto& [key, times] : table.times) {
    const auto& [app, batch] = key;
    const auto& [smallest, seconds] = *times.total_seconds.begin();
    const double work = smallest * seconds;
    std::vector<SpanSpeedup> points;
    for (const auto& [gpus, total] : times.total_seconds) {
      points.push_back({.workers = gpus, .nodes = 0, .speedup = work / total});
    }
    if (placements && times.one_gpu_iteration > 0) {
      const auto local = table.largest_local.find(app);
      const auto next = table.times.upper_bound(key);
      const FixedBatch fixed{.app = app,
                             .size = batch,
                             .largest_local = local == table.largest_local.end() ? 0 : local->second,
                             .may_grow = next != table.times.end() && next->first.first == app};
      // Only sizes with a packed point: a row with nodes alone would become the packed curve.
      for (const SpanSpeedup& span : placements->Spans(fixed, times.one_gpu_iteration)) {
        if (times.total_seconds.contains(span.workers)) points.push_back(span);
      }
    }
    Result<Profile> profile = Profile::Measured(std::move(points));
    if (!profile)
      return Error{fmt::format("app {} at batch size {} {}", app, batch, profile.error().message)};
    kinds.emplace(key, ModelRun{.category = fmt::format("{}-{}", app, batch),
                                .profile = *std::move(profile),
                                .work_seconds = work,
                                .epochs = EpochsOf(app)});
  }
  return kinds;
}

}  // namespace

Result<Workload> ReadPollux(const std::string& path, std::string_view select) {
  if (select.empty()) select = "1.0/1";
  const std::size_t slash = select.find('/');
  const auto number = slash == std::string_view::npos ? std::nullopt : ParseInt(select.substr(slash + 1));
  if (!number)
    return Error{fmt::format("pollux workload {} is not SET/NUMBER such as 1.0/3", Quoted(select))};
  const std::string_view set = select.substr(0, slash);

  enum Column { kSet, kWorkload, kName, kSubmit, kApp, kReplicas, kBatch };
  Result<CsvReader> opened = CsvReader::Open(path, {.columns = {{"set"},
                                                                {"workload"},
                                                                {"name"},
                                                                {"submit_time_s"},
                                                                {"application"},
                                                                {"num_replicas"},
                                                                {"batch_size"}}});
  if (!opened) return opened.error();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const Result<TimesTable> times = ReadTimes((folder / "job_time_vs_gpus.csv").string());
  if (!times) return times.error();
  std::optional<PlacementProfiles> placements;
  if (const auto file = folder / "profiles_placements.csv"; std::filesystem::exists(file)) {
    Result<PlacementProfiles> read = PlacementProfiles::Read(file.string());
    if (!read) return read.error();
    placements = *std::move(read);
  }
  const Result<Kinds> kinds = MakeKinds(*times, placements);
  if (!kinds) return kinds.error();
  ProfileTable profiles;
  for (const auto& [key, kind] : *kinds) profiles.emplace(kind.category, kind.profile);

  CsvReader& reader = *opened;
  CurveMaker curves(profiles);
  WorkloadBuilder builder;
  bool any = false;
  while (reader.Next()) {
    if (reader.Text(kSet) != set || reader.Int(kWorkload, 0, kMaxJobs) != *number) continue;
    any = true;
    WorkloadJob job;
    if (!IsName(reader.Text(kName)))
      reader.Fail(kName, "is not 1 to 253 visible ASCII characters without spaces");
    job.name = reader.Text(kName);
    job.submit_time = reader.Number(kSubmit, 0, kMaxSubmitSeconds);
    job.num = reader.Int(kReplicas, 1, kMaxWorkers);
    const int batch = reader.Int(kBatch, 1, kMaxBatch);
    if (reader.failed()) break;
    const auto kind = kinds->find({std::string(reader.Text(kApp)), batch});
    if (kind == kinds->end()) {
      reader.Fail(kApp,
                  fmt::format("at batch size {} is not in job_time_vs_gpus.csv beside this file", batch));
      break;
    }
    job.category = kind->second.category;
    job.work_seconds = kind->second.work_seconds;
    job.epochs = kind->second.epochs;
    job.max = std::max(job.num, kind->second.profile.largest());
    const Result<CurveMaker::Made> made = curves.Make(job.category, job.min, job.num, job.max, {});
    if (!made) {
      reader.Fail(kApp, made.error().message);
      break;
    }
    job.curve = made->curve;
    job.spans = made->spans;
    if (!builder.Add(std::move(job))) reader.Fail(kName, "names a second job of this workload");
  }
  if (reader.failed()) return reader.error();
  if (!any) {
    return Error{fmt::format("{}: no workload {} of set {}; the artifact has 1 to 8 of 1.0 and of 0.5", path,
                             *number, Quoted(set))};
  }
  return std::move(builder).Finish();
}

}  // namespace voda::sim
