#include "sim/workload_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/job.h"
#include "sim/csv.h"
#include "sim/workload_builder.h"

namespace voda::sim {
namespace {

enum Column {
  kName,
  kCategory,
  kSubmit,
  kMin,
  kNum,
  kMax,
  kWork,
  kGpusPerWorker,
  kPriority,
  kEpochs,
  kSizes,
  kCurve,
  kStartCost,
  kRescaleCost,
  kMigrationCost,
  kPreemptible,
};

constexpr int kDefaultEpochs = 10;

CsvSchema Schema() {
  return {.columns = {{"name"},
                      {"category"},
                      {"submit_s"},
                      {"min"},
                      {"num"},
                      {"max"},
                      {"work_s"},
                      {"gpus_per_worker", false},
                      {"priority", false},
                      {"epochs", false},
                      {"sizes", false},
                      {"curve", false},
                      {"start_cost", false},
                      {"rescale_cost", false},
                      {"migration_cost", false},
                      {"preemptible", false}},
          .allow_unknown = false};
}

// Reads "1;2;4;8": ascending from min to max, with min, num and max among them.
std::vector<int> ReadSizes(CsvReader& reader, const WorkloadJob& job) {
  std::vector<int> sizes;
  for (const std::string_view part : Split(reader.Text(kSizes), ';')) {
    const auto size = ParseInt(part);
    if (!size || *size < job.min || *size > job.max || (!sizes.empty() && *size <= sizes.back())) {
      reader.Fail(kSizes, fmt::format("is not a list of ascending sizes from {} to {} such as '1;2;4;8'",
                                      job.min, job.max));
      return sizes;
    }
    sizes.push_back(static_cast<int>(*size));
  }
  for (const int size : {job.min, job.num, job.max}) {
    if (!std::binary_search(sizes.begin(), sizes.end(), size)) {
      reader.Fail(kSizes, fmt::format("lacks {}; min, num and max are allowed sizes", size));
      return sizes;
    }
  }
  return sizes;
}

void CheckName(CsvReader& reader, int column) {
  if (!IsName(reader.Text(column)))
    reader.Fail(column, "is not 1 to 253 visible ASCII characters without spaces");
}

std::optional<double> ReadCost(CsvReader& reader, int column) {
  if (!reader.Has(column)) return std::nullopt;
  return reader.Number(column, 0, kMaxCostSeconds);
}

WorkloadJob ReadJob(CsvReader& reader) {
  WorkloadJob job;
  CheckName(reader, kName);
  CheckName(reader, kCategory);
  job.name = reader.Text(kName);
  job.category = reader.Text(kCategory);
  job.submit_time = reader.Number(kSubmit, 0, kMaxSubmitSeconds);
  job.min = reader.Int(kMin, 1, kMaxWorkers);
  job.num = reader.Int(kNum, 1, kMaxWorkers);
  job.max = reader.Int(kMax, 1, kMaxWorkers);
  if (job.num < job.min) reader.Fail(kNum, fmt::format("is less than min {}; min <= num <= max", job.min));
  if (job.max < job.num) reader.Fail(kMax, fmt::format("is less than num {}; min <= num <= max", job.num));
  job.work_seconds = reader.Number(kWork, 0, kMaxWorkSeconds);
  if (job.work_seconds <= 0) reader.Fail(kWork, "is not more than 0; give the seconds of work on one worker");
  if (reader.Has(kGpusPerWorker)) job.gpus_per_worker = reader.Int(kGpusPerWorker, 1, kMaxGpusPerWorker);
  if (reader.Has(kPriority)) job.priority = reader.Int(kPriority, -kMaxPriority, kMaxPriority);
  job.epochs = reader.Has(kEpochs) ? reader.Int(kEpochs, 1, kMaxEpochs) : kDefaultEpochs;
  job.start_cost = ReadCost(reader, kStartCost);
  job.rescale_cost = ReadCost(reader, kRescaleCost);
  job.migration_cost = ReadCost(reader, kMigrationCost);
  if (reader.Has(kPreemptible)) {
    job.preemptible = reader.Text(kPreemptible) == "true";
    if (!job.preemptible && reader.Text(kPreemptible) != "false")
      reader.Fail(kPreemptible, "is not true or false");
  }
  return job;
}

Result<Workload> Read(Result<CsvReader> opened, const ProfileTable& profiles,
                      std::string_view default_curve) {
  if (!opened) return opened.error();
  CsvReader& reader = *opened;
  CurveMaker curves(profiles);
  WorkloadBuilder builder;
  while (reader.Next()) {
    WorkloadJob job = ReadJob(reader);
    if (reader.failed()) break;
    const std::vector<int> sizes = reader.Has(kSizes) ? ReadSizes(reader, job) : std::vector<int>();
    if (reader.failed()) break;
    std::string_view curve = reader.Text(kCurve);
    if (curve.empty())
      curve = profiles.contains(job.category) ? std::string_view(job.category) : default_curve;
    const Result<CurveMaker::Made> made = curves.Make(curve, job.min, job.num, job.max, sizes);
    if (!made) {
      if (reader.Has(kCurve)) {
        reader.Fail(kCurve, made.error().message);
      } else {
        reader.FailRow(fmt::format("default curve {} {}", Quoted(curve), made.error().message));
      }
      break;
    }
    job.curve = made->curve;
    job.spans = made->spans;
    if (!builder.Add(std::move(job))) reader.Fail(kName, "names a second job; names are unique");
  }
  if (reader.failed()) return reader.error();
  return std::move(builder).Finish();
}

std::string OptionalText(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string SizesText(const Curve& curve) {
  if (curve.max() - curve.min() + 1 == curve.count()) return "";
  std::string text;
  for (int i = 0; i < curve.count(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ";", curve.size(i));
  return text;
}

}  // namespace

Result<Workload> ReadWorkloadCsv(const std::string& path, const ProfileTable& profiles,
                                 std::string_view default_curve) {
  return Read(CsvReader::Open(path, Schema()), profiles, default_curve);
}

Result<Workload> ParseWorkloadCsv(std::string name, std::string_view text, const ProfileTable& profiles,
                                  std::string_view default_curve) {
  return Read(CsvReader::FromText(std::move(name), text, Schema()), profiles, default_curve);
}

void WriteWorkloadCsv(const Workload& workload, std::ostream& out) {
  out << "name,category,submit_s,min,num,max,work_s,gpus_per_worker,priority,epochs,sizes,curve,start_cost,"
         "rescale_cost,migration_cost,preemptible\n";
  for (const WorkloadJob& job : workload.jobs) {
    out << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", CsvField(job.name),
                       CsvField(job.category), job.submit_time, job.min, job.num, job.max, job.work_seconds,
                       job.gpus_per_worker, job.priority, job.epochs, SizesText(*job.curve),
                       CurveText(*job.curve, job.spans.get()), OptionalText(job.start_cost),
                       OptionalText(job.rescale_cost), OptionalText(job.migration_cost), job.preemptible);
  }
}

}  // namespace voda::sim
