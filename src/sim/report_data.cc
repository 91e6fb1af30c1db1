#include "sim/report_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/report_json.h"
#include "sim/report_thin.h"

namespace voda::sim {
namespace {

// What is the same of a job in every run, written once for all of them.
struct JobTable {
  std::vector<const JobResult*> jobs;
  std::vector<size_t> category_of;
  std::vector<std::string> categories;
  std::vector<std::vector<size_t>> rows;  // per run, its jobs as indices into `jobs`
};

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
    out_ += "{\"runs\":";
    AppendJsonArray(out_, input_.runs, [&](const RunResult& run) { WriteRun(run); });
    out_ += ",\"categories\":";
    AppendJsonArray(out_, table_.categories, [&](const std::string& name) { WriteName(name); });
    out_ += ",\"jobs\":{\"name\":";
    AppendJsonArray(out_, table_.jobs, [&](const JobResult* job) { WriteName(job->name); });
    out_ += ",\"category\":";
    AppendJsonArray(out_, table_.category_of, [&](size_t index) { WriteInteger(index); });
    out_ += ",\"submit\":";
    AppendJsonArray(out_, table_.jobs, [&](const JobResult* job) { WriteTime(job->submit_time); });
    out_ += ",\"gpus_per_worker\":";
    AppendJsonArray(out_, table_.jobs, [&](const JobResult* job) { WriteInteger(job->gpus_per_worker); });
    out_ += "},\"notes\":";
    AppendJsonArray(out_, notes_, [&](const std::string& note) { AppendJsonString(out_, note); });
    if (input_.bound) WriteBound(*input_.bound);
    out_ += '}';
    return std::move(out_);
  }

 private:
  size_t RowsOf(const RunResult& run) const { return std::min(run.jobs.size(), jobs_max_); }

  // Times are written from the first submission on; a tenth of a second is enough for the plots of a long
  // run.
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
      for (size_t i = 0; i < RowsOf(run); ++i) {
        const JobResult& job = run.jobs[i];
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

  void WriteRun(const RunResult& run) {
    out_ += "{\"algorithm\":";
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
    for (const auto& [name, value] : figures) {
      fmt::format_to(std::back_inserter(out_), ",\"{}\":", name);
      AppendJsonNumber(out_, value, 6);
    }
    WriteRows(run);
    WriteUsage(run);
    out_ += ",\"cdf\":";
    AppendJsonArray(out_, JctDistribution(run.jobs, limits_.cdf_points_per_run), [&](const CdfPoint& point) {
      AppendJsonNumber(out_, point.x, 3);
      out_ += ',';
      AppendJsonNumber(out_, point.share, 6);
    });
    out_ += '}';
  }

  void WriteRows(const RunResult& run) {
    const std::span<const JobResult> jobs(run.jobs.data(), RowsOf(run));
    if (jobs.size() < run.jobs.size()) {
      Note(run,
           fmt::format("the timeline and the job table hold the first {} of {} jobs; every figure and the "
                       "distribution count all of them",
                       jobs.size(), run.jobs.size()));
    }
    const auto column = [&](std::string_view name, auto append) {
      fmt::format_to(std::back_inserter(out_), ",\"{}\":", name);
      AppendJsonArray(out_, jobs, append);
    };
    out_ += ",\"rows\":{\"job\":";
    const auto index = static_cast<size_t>(&run - input_.runs.data());
    AppendJsonArray(out_, table_.rows[index], [&](size_t job) { WriteInteger(job); });
    column("start", [&](const JobResult& job) { WriteTime(job.first_start); });
    column("end", [&](const JobResult& job) { WriteTime(job.end); });
    column("wait",
           [&](const JobResult& job) { AppendJsonNumber(out_, job.waiting_seconds, time_decimals_); });
    column("gpu_s", [&](const JobResult& job) { AppendJsonNumber(out_, job.gpu_seconds, 0); });
    column("rescales", [&](const JobResult& job) { WriteInteger(job.rescales); });
    column("preemptions", [&](const JobResult& job) { WriteInteger(job.preemptions); });
    column("migrated", [&](const JobResult& job) { WriteInteger(job.migrated_workers); });
    WriteSegments(run, jobs);
    out_ += '}';
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
    out_ += ",\"segments\":";
    AppendJsonArray(out_, histories, [&](const std::vector<Segment>& history) {
      thinned += history.size() > cap ? 1 : 0;
      AppendJsonArray(out_, KeepLongest(history, cap), [&](const Segment& segment) {
        WriteTime(segment.from);
        fmt::format_to(std::back_inserter(out_), ",{},{}", segment.workers, segment.nodes);
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
    out_ += ",\"usage\":";
    AppendJsonArray(out_, usage, [&](const MeanUsage& point) {
      WriteTime(point.from);
      out_ += ',';
      AppendJsonNumber(out_, point.capacity, 2);
      out_ += ',';
      AppendJsonNumber(out_, point.used, 2);
    });
  }

  void WriteBound(const LowerBound& bound) {
    out_ += ",\"bound\":{\"avg_jct_s\":";
    AppendJsonNumber(out_, bound.avg_jct_s, 6);
    out_ += ",\"makespan_s\":";
    AppendJsonNumber(out_, bound.makespan_s, 6);
    out_ += ",\"jobs\":";
    WriteInteger(bound.jobs);
    out_ += '}';
  }

  void Note(const RunResult& run, const std::string& text) {
    notes_.push_back(fmt::format("{}: {}.", Shorten(ValidUtf8(run.algorithm), limits_.name_bytes), text));
  }

  void WriteName(const std::string& name) {
    AppendJsonString(out_, Shorten(ValidUtf8(name), limits_.name_bytes));
  }
  void WriteTime(double time) { AppendJsonNumber(out_, time - origin_, time_decimals_); }
  void WriteTime(const std::optional<double>& time) {
    if (time) {
      WriteTime(*time);
    } else {
      out_ += "null";
    }
  }
  template <class Integer>
  void WriteInteger(Integer value) {
    fmt::format_to(std::back_inserter(out_), "{}", value);
  }

  const ReportInput& input_;
  const ReportLimits& limits_;
  size_t jobs_max_ = 0;
  size_t segments_max_ = 0;
  double origin_ = 0;
  int time_decimals_ = 3;
  JobTable table_;
  std::vector<std::string> notes_;
  std::string out_;
};

}  // namespace

std::string ReportData(const ReportInput& input, const ReportLimits& limits) {
  return DataWriter(input, limits).Write();
}

}  // namespace voda::sim
