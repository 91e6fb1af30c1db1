#include "cli/run_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "document/json_text.h"

namespace voda {

namespace {

using sim::JobResult;
using sim::RunResult;

struct Figure {
  std::string_view name;    // in JSON and CSV
  std::string_view header;  // in the table
  int decimals;             // in the table; -1 for a percentage
  double (*of)(const RunResult&);
};

// In the order of the output. Only the last two differ between equal runs.
constexpr Figure kFigures[] = {
    {"jobs", "JOBS", 0, [](const RunResult& r) { return static_cast<double>(r.jobs.size()); }},
    {"completed", "DONE", 0, [](const RunResult& r) { return static_cast<double>(r.completed); }},
    {"makespan_s", "MAKESPAN", 0, [](const RunResult& r) { return r.makespan_s; }},
    {"avg_jct_s", "AVG-JCT", 0, [](const RunResult& r) { return r.avg_jct_s; }},
    {"p50_jct_s", "P50", 0, [](const RunResult& r) { return r.p50_jct_s; }},
    {"p95_jct_s", "P95", 0, [](const RunResult& r) { return r.p95_jct_s; }},
    {"p99_jct_s", "P99", 0, [](const RunResult& r) { return r.p99_jct_s; }},
    {"avg_wait_s", "AVG-WAIT", 0, [](const RunResult& r) { return r.avg_wait_s; }},
    {"gpu_utilization", "UTIL", -1, [](const RunResult& r) { return r.gpu_utilization; }},
    {"rescales", "RESCALES", 0, [](const RunResult& r) { return static_cast<double>(r.rescales); }},
    {"preemptions", "PREEMPTED", 0, [](const RunResult& r) { return static_cast<double>(r.preemptions); }},
    {"migrated_workers", "MIGRATED", 0,
     [](const RunResult& r) { return static_cast<double>(r.migrated_workers); }},
    {"rounds", "ROUNDS", 0, [](const RunResult& r) { return static_cast<double>(r.rounds); }},
    {"decision_ms_p50", "MS-P50", 2, [](const RunResult& r) { return r.decision_ms_p50; }},
    {"decision_ms_p99", "MS-P99", 2, [](const RunResult& r) { return r.decision_ms_p99; }},
};

struct JobFigure {
  std::string_view name;
  std::function<void(std::string&, const JobResult&)> append;  // a JSON value
};

void AppendOptional(std::string& out, const std::optional<double>& value) {
  if (value) {
    AppendNumber(out, *value);
  } else {
    out += "null";
  }
}

const std::vector<JobFigure>& JobFigures() {
  static const std::vector<JobFigure> figures = {
      {"name", [](std::string& out, const JobResult& j) { AppendQuoted(out, j.name); }},
      {"category", [](std::string& out, const JobResult& j) { AppendQuoted(out, j.category); }},
      {"submit_s", [](std::string& out, const JobResult& j) { AppendNumber(out, j.submit_time); }},
      {"first_start_s", [](std::string& out, const JobResult& j) { AppendOptional(out, j.first_start); }},
      {"end_s", [](std::string& out, const JobResult& j) { AppendOptional(out, j.end); }},
      {"jct_s",
       [](std::string& out, const JobResult& j) {
         AppendOptional(out, j.end ? std::optional(*j.end - j.submit_time) : std::nullopt);
       }},
      {"wait_s",
       [](std::string& out, const JobResult& j) {
         AppendOptional(out, j.end ? std::optional(j.waiting_seconds) : std::nullopt);
       }},
      {"gpu_seconds", [](std::string& out, const JobResult& j) { AppendNumber(out, j.gpu_seconds); }},
      {"rescales", [](std::string& out, const JobResult& j) { AppendNumber(out, j.rescales); }},
      {"preemptions", [](std::string& out, const JobResult& j) { AppendNumber(out, j.preemptions); }},
      {"migrated_workers",
       [](std::string& out, const JobResult& j) { AppendNumber(out, j.migrated_workers); }},
  };
  return figures;
}

// Writes a CSV field, quoted if it must be, empty for null.
std::string CsvField(std::string_view json) {
  if (json == "null") return {};
  if (json.empty() || json.front() != '"') return std::string(json);
  const std::string_view text = json.substr(1, json.size() - 2);
  if (text.find_first_of(",\\") == std::string_view::npos) return std::string(text);
  std::string field = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '"') {
      field += "\"\"";
      ++i;
    } else {
      field += text[i];
    }
  }
  return field + '"';
}

std::string TableCell(const Figure& figure, const RunResult& run) {
  const double value = figure.of(run);
  return figure.decimals < 0 ? fmt::format("{:.1f}%", 100 * value)
                             : fmt::format("{:.{}f}", value, figure.decimals);
}

}  // namespace

std::string RunsAsTable(const std::vector<RunResult>& runs) {
  std::size_t name_width = std::string_view("ALGORITHM").size();
  for (const RunResult& run : runs) name_width = std::max(name_width, run.algorithm.size());
  std::string out = fmt::format("{:<{}}", "ALGORITHM", name_width);
  std::vector<std::size_t> widths;
  for (const Figure& figure : kFigures) {
    std::size_t width = figure.header.size();
    for (const RunResult& run : runs) width = std::max(width, TableCell(figure, run).size());
    widths.push_back(width);
    out += fmt::format("  {:>{}}", figure.header, width);
  }
  out += '\n';
  for (const RunResult& run : runs) {
    out += fmt::format("{:<{}}", run.algorithm, name_width);
    for (std::size_t i = 0; i < std::size(kFigures); ++i)
      out += fmt::format("  {:>{}}", TableCell(kFigures[i], run), widths[i]);
    out += '\n';
  }
  return out;
}

namespace {

// A run is only comparable with the bound if it completed every job of the bound.
bool Comparable(const RunResult& run, const sim::LowerBound& bound) {
  return run.completed == bound.jobs;
}

}  // namespace

std::string BoundAsText(const std::vector<RunResult>& runs, const sim::LowerBound& bound) {
  std::string out = fmt::format(
      "No schedule of this workload can have an average JCT below {:.0f} s or a makespan below "
      "{:.0f} s. Above that are:\n",
      bound.avg_jct_s, bound.makespan_s);
  for (const RunResult& run : runs) {
    if (!Comparable(run, bound)) {
      out += fmt::format("  {:<16} not comparable: it did not complete every job\n", run.algorithm);
      continue;
    }
    out += fmt::format("  {:<16} {:>6.1f} % in average JCT, {:>6.1f} % in makespan\n", run.algorithm,
                       100 * (run.avg_jct_s / bound.avg_jct_s - 1),
                       100 * (run.makespan_s / bound.makespan_s - 1));
  }
  return out;
}

std::string RunsAsJson(const std::vector<RunResult>& runs, bool jobs,
                       const std::optional<sim::LowerBound>& bound) {
  std::string out = "{\"runs\": [";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    out += i == 0 ? "\n  {\"algorithm\": " : ",\n  {\"algorithm\": ";
    AppendQuoted(out, runs[i].algorithm);
    for (const Figure& figure : kFigures) {
      out += fmt::format(", \"{}\": ", figure.name);
      AppendNumber(out, figure.of(runs[i]));
    }
    if (bound && Comparable(runs[i], *bound)) {
      out += ", \"avg_jct_over_bound\": ";
      AppendNumber(out, runs[i].avg_jct_s / bound->avg_jct_s);
      out += ", \"makespan_over_bound\": ";
      AppendNumber(out, runs[i].makespan_s / bound->makespan_s);
    }
    if (jobs) {
      out += ", \"per_job\": [";
      bool first = true;
      for (const JobResult& job : runs[i].jobs) {
        out += std::exchange(first, false) ? "\n    " : ",\n    ";
        char before = '{';
        for (const JobFigure& figure : JobFigures()) {
          out += before;
          out += fmt::format("\"{}\": ", figure.name);
          figure.append(out, job);
          before = ',';
        }
        out += '}';
      }
      out += ']';
    }
    out += '}';
  }
  out += ']';
  if (bound) {
    out += ",\n \"bound\": {\"avg_jct_s\": ";
    AppendNumber(out, bound->avg_jct_s);
    out += ", \"makespan_s\": ";
    AppendNumber(out, bound->makespan_s);
    out += fmt::format(", \"jobs\": {}}}", bound->jobs);
  }
  return out + "}\n";
}

std::string RunsAsCsv(const std::vector<RunResult>& runs, bool jobs) {
  std::string out = "algorithm";
  if (jobs) {
    for (const JobFigure& figure : JobFigures()) out += fmt::format(",{}", figure.name);
  } else {
    for (const Figure& figure : kFigures) out += fmt::format(",{}", figure.name);
  }
  out += '\n';
  std::string value;
  for (const RunResult& run : runs) {
    const std::string algorithm = CsvField(Quoted(run.algorithm));
    if (!jobs) {
      out += algorithm;
      for (const Figure& figure : kFigures) {
        out += ',';
        AppendNumber(out, figure.of(run));
      }
      out += '\n';
      continue;
    }
    for (const JobResult& job : run.jobs) {
      out += algorithm;
      for (const JobFigure& figure : JobFigures()) {
        value.clear();
        figure.append(value, job);
        out += ',' + CsvField(value);
      }
      out += '\n';
    }
  }
  return out;
}

}  // namespace voda
