// Philly and ITP: real arrivals, sizes and durations of jobs whose programs are unknown.
//
// A job ran for `duration` on num GPUs, so its work on one worker is duration × speed-up at num under the
// assumed curve. It becomes elastic from 1 to twice num, at most 64 workers and at least num. Its category is
// its (virtual) cluster and size: people of one group running at one size are the nearest the traces come to
// "the same program again".
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/job.h"
#include "sim/csv.h"
#include "sim/traces.h"
#include "sim/workload_builder.h"

namespace voda::sim {
namespace {

constexpr int kElasticLimit = 64;
constexpr int kEpochsAssumed = 10;

struct TraceRow {
  std::string id;
  std::string_view cluster;
  double submit = 0;
  double duration = 0;
  int gpus = 0;
};

// Collects the jobs of one trace; the row holds what differs between traces.
class TraceReader {
 public:
  TraceReader(CsvReader& reader, std::string_view format, int cluster_column,
              const ClusterTraceOptions& options)
      : reader_(reader),
        format_(format),
        cluster_column_(cluster_column),
        options_(options),
        curves_(options.profiles != nullptr ? *options.profiles : no_profiles_) {}

  void Add(const TraceRow& row) {
    if (!IsName(row.cluster, 200)) {
      reader_.Fail(cluster_column_, "is not 1 to 200 visible ASCII characters without spaces");
    }
    if (reader_.failed() || (!options_.select.empty() && row.cluster != options_.select)) return;
    if (row.duration == 0 || row.gpus == 0) {
      ++skipped_;
      return;
    }
    WorkloadJob job;
    job.name = row.id;
    job.category = fmt::format("{}-{}-{}gpu", format_, row.cluster, row.gpus);
    job.submit_time = row.submit;
    job.num = row.gpus;
    job.max = std::max(job.num, std::min(2 * job.num, kElasticLimit));
    job.epochs = kEpochsAssumed;
    const Result<CurveMaker::Made> made = curves_.Make(options_.curve, job.min, job.num, job.max, {});
    if (!made) {
      reader_.FailRow(fmt::format("curve {} {}", Quoted(options_.curve), made.error().message));
      return;
    }
    job.curve = made->curve;
    job.spans = made->spans;
    job.work_seconds = row.duration * made->speedup_at_num;
    if (!builder_.Add(std::move(job))) reader_.FailRow(fmt::format("job {} appears twice", row.id));
    ++jobs_;
  }

  Result<Workload> Finish() && {
    if (reader_.failed()) return reader_.error();
    if (jobs_ == 0 && !options_.select.empty()) {
      return Error{fmt::format("{}: no jobs of cluster {}; leave out '#' and what follows it to take all",
                               format_, Quoted(options_.select))};
    }
    if (skipped_ > 0 && options_.notes != nullptr) {
      options_.notes->push_back(
          fmt::format("{}: {} jobs without duration or GPUs were left out", format_, skipped_));
    }
    return std::move(builder_).Finish();
  }

 private:
  CsvReader& reader_;
  std::string_view format_;
  int cluster_column_;
  const ClusterTraceOptions& options_;
  ProfileTable no_profiles_;
  CurveMaker curves_;
  WorkloadBuilder builder_;
  std::int64_t skipped_ = 0;
  std::int64_t jobs_ = 0;
};

}  // namespace

Result<Workload> ReadPhilly(const std::string& path, const ClusterTraceOptions& options) {
  enum Column { kSubmit, kDuration, kGpus, kCluster };
  Result<CsvReader> opened =
      CsvReader::Open(path, {.columns = {{"submit_s"}, {"duration_s"}, {"num_gpus"}, {"virtual_cluster"}}});
  if (!opened) return opened.error();
  CsvReader& reader = *opened;
  TraceReader trace(reader, "philly", kCluster, options);
  for (std::int64_t row = 0; reader.Next(); ++row) {
    trace.Add({.id = fmt::format("philly-{:06}", row),
               .cluster = reader.Text(kCluster),
               .submit = reader.Number(kSubmit, 0, kMaxSubmitSeconds),
               .duration = reader.Number(kDuration, 0, kMaxSubmitSeconds),
               .gpus = reader.Int(kGpus, 0, kMaxWorkers / 2)});
  }
  return std::move(trace).Finish();
}

Result<Workload> ReadItp(const std::string& path, const ClusterTraceOptions& options) {
  enum Column { kCluster, kRow, kSubmit, kDuration, kGpus };
  Result<CsvReader> opened = CsvReader::Open(
      path, {.columns = {{"cluster"}, {"row"}, {"submit_time_s"}, {"duration_s"}, {"num_gpu"}}});
  if (!opened) return opened.error();
  CsvReader& reader = *opened;
  TraceReader trace(reader, "itp", kCluster, options);
  while (reader.Next()) {
    trace.Add({.id = fmt::format("itp-{}-{:05}", reader.Text(kCluster), reader.Int(kRow, 0, kMaxJobs)),
               .cluster = reader.Text(kCluster),
               .submit = reader.Number(kSubmit, 0, kMaxSubmitSeconds),
               .duration = reader.Number(kDuration, 0, kMaxSubmitSeconds),
               .gpus = reader.Int(kGpus, 0, kMaxWorkers / 2)});
  }
  return std::move(trace).Finish();
}

}  // namespace voda::sim
