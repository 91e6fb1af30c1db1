// The experiments with the reference (the Go research prototype whose design Voda started from): jobs of
// four categories with measured speed-ups and fitted work.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <utility>

#include "model/job.h"
#include "sim/csv.h"
#include "sim/traces.h"
#include "sim/workload_builder.h"

namespace voda::sim {
namespace {

struct Measured {
  ProfileTable profiles;
  std::map<std::string, double, std::less<>> work_seconds;  // by category, on one GPU
};

Result<Measured> ReadSpeedups(const std::string& path) {
  enum Column { kCategory, kGpus, kSpeedup, kWork };
  Result<CsvReader> opened =
      CsvReader::Open(path, {.columns = {{"category"}, {"gpus"}, {"speedup"}, {"one_gpu_seconds"}}});
  if (!opened) return opened.error();
  CsvReader& reader = *opened;
  Measured measured;
  std::map<std::string, std::vector<SpanSpeedup>, std::less<>> points;
  while (reader.Next()) {
    const std::string category(reader.Text(kCategory));
    if (!IsName(category, 200))
      reader.Fail(kCategory, "is not 1 to 200 visible ASCII characters without spaces");
    const double work = reader.Number(kWork, 1e-6, kMaxWorkSeconds);
    if (measured.work_seconds.emplace(category, work).first->second != work) {
      reader.Fail(kWork, "differs from the category's other rows; a category has one total of work");
    }
    points[category].push_back({.workers = reader.Int(kGpus, 1, kMaxWorkers),
                                .nodes = 0,
                                .speedup = reader.Number(kSpeedup, 1e-6, 1e9)});
  }
  if (reader.failed()) return reader.error();
  for (auto& [category, list] : points) {
    Result<Profile> profile = Profile::Measured(std::move(list));
    if (!profile) return Error{fmt::format("{}: category {} {}", path, category, profile.error().message)};
    measured.profiles.emplace(category, *std::move(profile));
  }
  return measured;
}

}  // namespace

Result<Workload> ReadThesis(const std::string& path) {
  enum Column { kIndex, kSubmit, kCategory, kNum, kMin, kMax, kEpochs };
  Result<CsvReader> opened = CsvReader::Open(path, {.columns = {{"job_index"},
                                                                {"submit_s"},
                                                                {"category"},
                                                                {"num_proc"},
                                                                {"min_num_proc"},
                                                                {"max_num_proc"},
                                                                {"epochs"}}});
  if (!opened) return opened.error();
  const Result<Measured> measured =
      ReadSpeedups((std::filesystem::path(path).parent_path() / "speedup.csv").string());
  if (!measured) return measured.error();

  CsvReader& reader = *opened;
  CurveMaker curves(measured->profiles);
  WorkloadBuilder builder;
  while (reader.Next()) {
    WorkloadJob job;
    const int index = reader.Int(kIndex, 0, kMaxJobs);
    job.category = reader.Text(kCategory);
    job.name = fmt::format("{}-{:04}", job.category, index);
    job.submit_time = reader.Number(kSubmit, 0, kMaxSubmitSeconds);
    job.min = reader.Int(kMin, 1, kMaxWorkers);
    job.num = reader.Int(kNum, job.min, kMaxWorkers);
    job.max = reader.Int(kMax, job.num, kMaxWorkers);
    job.epochs = reader.Int(kEpochs, 1, kMaxEpochs);
    if (reader.failed()) break;
    const auto work = measured->work_seconds.find(job.category);
    if (work == measured->work_seconds.end()) {
      reader.Fail(kCategory, "is not in speedup.csv beside this file; add its rows there");
      break;
    }
    job.work_seconds = work->second;
    const Result<CurveMaker::Made> made = curves.Make(job.category, job.min, job.num, job.max, {});
    if (!made) {
      reader.Fail(kCategory, made.error().message);
      break;
    }
    job.curve = made->curve;
    if (!builder.Add(std::move(job))) reader.Fail(kIndex, "appears twice with this category");
  }
  if (reader.failed()) return reader.error();
  return std::move(builder).Finish();
}

}  // namespace voda::sim
