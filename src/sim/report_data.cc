#include "sim/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "document/json_writer.h"
#include "sim/report_text.h"
#include "sim/report_thin.h"

namespace voda::sim {
namespace {

// The part of a job that is the same in every run, written once.
struct JobTable {
  std::vector<const JobResult*> jobs;
  std::vector<size_t> category_of;
  std::vector<std::string> categories;
  std::vector<std::vector<size_t>> rows;  // per run, its jobs as indices into `jobs`
};

// With so many decimals, which keeps the file short.
double Rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const double scaled = value * scale;
  // Beyond 2^53 a double has no decimals to round away.
  const double rounded = std::abs(scaled) < 9e15 ? std::round(scaled) / scale : value;
  return rounded == 0 ? 0.0 : rounded;  // and not -0
}

class DataWriter {
 public:
  DataWriter(const ReportInput& input, const ReportLimits& limits) : input_(input), limits_(limits) {
    if (!input.runs.empty()) {
      jobs_max_ = std::max<size_t>(1, limits.job_rows / input.runs.size());
      segments_max_ = std::max<size_t>(1, limits.segments / input.runs.size());
    }
    FindTimes();
    CollectJobs();
  }

  std::string Write() {
    out_.Object();
    List("runs", input_.runs, [&](const RunResult& run) { WriteRun(run); });
    List("categories", table_.categories, [&](const std::string& name) { WriteName(name); });
    out_.Key("jobs").Object();
    List("name", table_.jobs, [&](const JobResult* job) { WriteName(job->name); });
    List("category", table_.category_of, [&](size_t index) { out_.Value(index); });
    List("submit", table_.jobs, [&](const JobResult* job) { WriteTime(job->submit_time); });
    List("gpus_per_worker", table_.jobs, [&](const JobResult* job) { out_.Value(job->gpus_per_worker); });
    out_.End();
    out_.Texts("notes", notes_);
    if (input_.bound) WriteBound(*input_.bound);
    out_.End();
    return SafeInHtml(out_.text());
  }

 private:
  size_t RowsOf(const RunResult& run) const { return std::min(run.jobs.size(), jobs_max_); }

  // Times are written relative to the first submission; a tenth of a second is enough for the plots of a
  // long run.
  void FindTimes() {
    double first = std::numeric_limits<double>::infinity();
    double span = 0;
    for (const RunResult& run : input_.runs) {
      for (const JobResult& job : run.jobs) first = std::min(first, job.submit_time);
      if (std::isfinite(run.makespan_s)) span = std::max(span, run.makespan_s);
    }
    origin_ = std::isfinite(first) ? first : 0;
    time_decimals_ = span >= 36'000 ? 1 : 3;
  }

  void CollectJobs() {
    std::unordered_map<std::string, size_t> job_index;
    std::unordered_map<std::string, size_t> category_index;
    for (const RunResult& run : input_.runs) {
      auto& rows = table_.rows.emplace_back();
      for (const JobResult& job : std::span(run.jobs).first(RowsOf(run))) {
        const auto key =
            fmt::format("{}\n{}\n{}\n{}", job.name, job.category, job.submit_time, job.gpus_per_worker);
        const auto [found, added] = job_index.try_emplace(key, table_.jobs.size());
        rows.push_back(found->second);
        if (!added) continue;
        table_.jobs.push_back(&job);
        const auto [category, new_category] =
            category_index.try_emplace(job.category, table_.categories.size());
        if (new_category) table_.categories.push_back(job.category);
        table_.category_of.push_back(category->second);
      }
    }
  }

  // An array of what `write` writes of each item.
  template <class Range, class Write>
  void List(const Range& range, const Write& write) {
    out_.Array();
    for (const auto& item : range) write(item);
    out_.EndArray();
  }
  template <class Range, class Write>
  void List(std::string_view key, const Range& range, const Write& write) {
    out_.Key(key);
    List(range, write);
  }

  void WriteRun(const RunResult& run) {
    out_.Object().Key("algorithm");
    WriteName(run.algorithm);
    const std::pair<std::string_view, double> figures[] = {
        {"jobs", double(run.jobs.size())},
        {"completed", run.completed},
        {"makespan_s", run.makespan_s},
        {"avg_jct_s", run.avg_jct_s},
        {"p50_jct_s", run.p50_jct_s},
        {"p95_jct_s", run.p95_jct_s},
        {"p99_jct_s", run.p99_jct_s},
        {"avg_wait_s", run.avg_wait_s},
        {"gpu_utilization", run.gpu_utilization},
        {"rescales", run.rescales},
        {"preemptions", run.preemptions},
        {"migrated_workers", run.migrated_workers},
        {"rounds", run.rounds},
        {"decision_ms_p50", run.decision_ms_p50},
        {"decision_ms_p99", run.decision_ms_p99},
    };
    for (const auto& [name, value] : figures) out_.Field(name, Rounded(value, 6));
    WriteRows(run);
    WriteUsage(run);
    List("cdf", JctDistribution(run.jobs, limits_.cdf_points_per_run),
         [&](const CdfPoint& point) { out_.Value(Rounded(point.x, 3)).Value(Rounded(point.share, 6)); });
    out_.End();
  }

  void WriteRows(const RunResult& run) {
    const std::span<const JobResult> jobs(run.jobs.data(), RowsOf(run));
    if (jobs.size() < run.jobs.size()) {
      Note(run,
           fmt::format("the timeline and the job table hold the first {} of {} jobs; every figure and the "
                       "distribution count all of them",
                       jobs.size(), run.jobs.size()));
    }
    out_.Key("rows").Object();
    const auto index = static_cast<size_t>(&run - input_.runs.data());
    List("job", table_.rows[index], [&](size_t job) { out_.Value(job); });
    List("start", jobs, [&](const JobResult& job) { WriteTime(job.first_start); });
    List("end", jobs, [&](const JobResult& job) { WriteTime(job.end); });
    List("wait", jobs,
         [&](const JobResult& job) { out_.Value(Rounded(job.waiting_seconds, time_decimals_)); });
    List("gpu_s", jobs, [&](const JobResult& job) { out_.Value(Rounded(job.gpu_seconds, 0)); });
    List("rescales", jobs, [&](const JobResult& job) { out_.Value(job.rescales); });
    List("preemptions", jobs, [&](const JobResult& job) { out_.Value(job.preemptions); });
    List("migrated", jobs, [&](const JobResult& job) { out_.Value(job.migrated_workers); });
    WriteSegments(run, jobs);
    out_.End();
  }

  void WriteSegments(const RunResult& run, std::span<const JobResult> jobs) {
    std::vector<std::vector<Segment>> histories;
    std::vector<size_t> sizes;
    for (const JobResult& job : jobs) {
      histories.push_back(Canonical(job.history));
      sizes.push_back(histories.back().size());
    }
    const size_t cap = CapPerJob(sizes, segments_max_);
    size_t thinned = 0;
    List("segments", histories, [&](const std::vector<Segment>& history) {
      thinned += history.size() > cap ? 1 : 0;
      List(KeepLongest(history, cap), [&](const Segment& segment) {
        WriteTime(segment.from);
        out_.Value(segment.workers).Value(segment.nodes);
      });
    });
    if (thinned > 0) {
      Note(run, fmt::format(
                    "{} jobs changed size more than {} times; the timeline shows their longest {} intervals",
                    thinned, cap, cap));
    }
  }

  void WriteUsage(const RunResult& run) {
    const std::vector<MeanUsage> usage = AverageUsage(run.usage, limits_.usage_points_per_run);
    if (run.usage.size() > limits_.usage_points_per_run) {
      Note(run, fmt::format("utilisation is drawn as means over {} equal intervals ({} changes)",
                            limits_.usage_points_per_run, run.usage.size()));
    }
    List("usage", usage, [&](const MeanUsage& point) {
      WriteTime(point.from);
      out_.Value(Rounded(point.capacity, 2)).Value(Rounded(point.used, 2));
    });
  }

  void WriteBound(const LowerBound& bound) {
    out_.Key("bound").Object();
    out_.Field("avg_jct_s", Rounded(bound.avg_jct_s, 6)).Field("makespan_s", Rounded(bound.makespan_s, 6));
    out_.Field("jobs", bound.jobs).End();
  }

  void Note(const RunResult& run, const std::string& text) {
    notes_.push_back(fmt::format("{}: {}.", Shorten(ValidUtf8(run.algorithm), limits_.name_bytes), text));
  }

  void WriteName(const std::string& name) { out_.Value(Shorten(ValidUtf8(name), limits_.name_bytes)); }
  void WriteTime(double time) { out_.Value(Rounded(time - origin_, time_decimals_)); }
  void WriteTime(const std::optional<double>& time) {
    if (time) {
      WriteTime(*time);
    } else {
      out_.Null();
    }
  }

  const ReportInput& input_;
  const ReportLimits& limits_;
  size_t jobs_max_ = 0;
  size_t segments_max_ = 0;
  double origin_ = 0;
  int time_decimals_ = 3;
  JobTable table_;
  std::vector<std::string> notes_;
  JsonWriter out_;
};

}  // namespace

std::string ReportData(const ReportInput& input, const ReportLimits& limits) {
  return DataWriter(input, limits).Write();
}

}  // namespace voda::sim
