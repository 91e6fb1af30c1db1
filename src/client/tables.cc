#include "client/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/duration.h"
#include "client/api.h"
#include "client/text.h"
#include "model/guess.h"

namespace voda {

namespace {

constexpr const char* kNone = "<none>";
constexpr const char* kReset = "\x1b[0m";
constexpr std::array<int, 13> kColumnWidths = {60, 10, 10, 10, 10, 10, 10, 10, 6, 6, 20, 14, 10};
constexpr std::size_t kStatus = 1;

std::string Shown(const Value& value) {
  const std::string& text = value.Text();
  return text.empty() ? kNone : Printable(text);
}

std::string_view StatusColor(const Value& job) {
  const std::optional<JobStatus> status = StatusOf(job);
  if (!status) return {};
  if (status == JobStatus::kRunning) return "\x1b[32m";
  if (status == JobStatus::kFailed) return "\x1b[31m";
  return Terminal(*status) ? "\x1b[2m" : "\x1b[33m";
}

}  // namespace

JobTable::JobTable(bool wide, bool color)
    : wide_(wide), color_(color), widths_(kColumnWidths.begin(), kColumnWidths.end()) {}

void JobTable::Fit(const Value& job) {
  const std::vector<std::string> cells = Cells(job);
  for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], CellWidth(cells[i]));
}

std::string JobTable::Header() const {
  std::vector<std::string> cells = {"NAME", "STATUS", "WORKERS", "SCHEDULER", "WAITING", "RUNNING", "TOTAL"};
  if (wide_) cells.insert(cells.end(), {"PRIORITY", "MIN", "MAX", "NODES", "PROGRESS", "ETA"});
  return Line(cells);
}

std::string JobTable::Row(const Value& job) const {
  std::vector<std::string> cells = Cells(job);
  if (color_) {
    // The text is padded first, because an escape sequence takes no cells.
    const std::string_view shade = StatusColor(job);
    if (!shade.empty())
      cells[kStatus] = std::string(shade) + PadRight(cells[kStatus], widths_[kStatus]) + kReset;
  }
  return Line(cells);
}

std::vector<std::string> JobTable::Cells(const Value& job) const {
  std::vector<std::string> cells = {Printable(job["name"].Text()),
                                    Printable(job["status"].Text()),
                                    std::to_string(job["workers"].Whole()),
                                    Printable(job["gpu_type"].Text()),
                                    GoDuration(job["waiting_seconds"].Number()),
                                    GoDuration(job["running_seconds"].Number()),
                                    GoDuration(job["total_seconds"].Number())};
  if (wide_) {
    cells.insert(cells.end(),
                 {std::to_string(job["priority"].Whole()), std::to_string(job["min"].Whole()),
                  std::to_string(job["max"].Whole()), NodesOf(job), ProgressOf(job), EtaOf(job)});
  }
  return cells;
}

std::string JobTable::Line(const std::vector<std::string>& cells) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : " ") + PadRight(cells[i], widths_[i]);
  if (wide_) line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Table::Text() const {
  std::vector<int> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], CellWidth(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += i + 1 == row.size() ? row[i] : PadRight(row[i], widths[i] + 3);
    }
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

std::string NodeTable(const Value& nodes, bool wide) {
  std::vector<std::string> header = {"NAME", "STATE", "GPU-TYPE", "GPUS", "USED", "JOBS"};
  if (wide) header.insert(header.end() - 1, {"FREE", "DEVICES"});
  Table table(std::move(header));
  for (const Value& node : nodes.items()) {
    std::string jobs;
    for (const Value& job : node["jobs"].items()) {
      jobs += fmt::format("{}{}:{}", jobs.empty() ? "" : ",", Printable(job["name"].Text()),
                          job["workers"].Whole());
    }
    const auto gpus = node["gpus"].Whole();
    const auto used = node["used"].Whole();
    std::vector<std::string> row = {Shown(node["name"]),  Shown(node["state"]), Shown(node["gpu_type"]),
                                    std::to_string(gpus), std::to_string(used), jobs.empty() ? kNone : jobs};
    if (wide) {
      std::string devices;
      for (const Value& device : node["devices"].items())
        devices += fmt::format("{}{}", devices.empty() ? "" : ",", device.Whole());
      const bool ready = node["state"].Text() == "ready";
      row.insert(row.end() - 1,
                 {std::to_string(ready && gpus > used ? gpus - used : 0), devices.empty() ? kNone : devices});
    }
    table.Add(std::move(row));
  }
  return table.Text();
}

std::string AlgorithmTable(const Value& answer) {
  Table table({"NAME", "DEFAULT", "OPTIONS", "SUMMARY"});
  for (const Value& algorithm : answer["algorithms"].items()) {
    std::string options;
    for (const Value& option : algorithm["options"].items()) {
      const Value& value = option["default"];
      options += fmt::format("{}{}={}", options.empty() ? "" : ",", Printable(option["name"].Text()),
                             value.text() ? Printable(value.Text()) : ToJsonLine(value));
    }
    table.Add({Shown(algorithm["name"]), algorithm["name"].Text() == answer["default"].Text() ? "yes" : "no",
               options.empty() ? kNone : options, Printable(algorithm["summary"].Text())});
  }
  return table.Text();
}

std::string RoundTable(const Value& rounds) {
  Table table({"ROUND", "TIME", "GPU-TYPE", "ALGORITHM", "TOOK", "CHANGES", "TRIGGER"});
  for (const Value& round : rounds.items()) {
    std::string changes;
    for (const Value& change : round["changes"].items()) {
      changes += fmt::format("{}{}:{}->{}", changes.empty() ? "" : ",", Printable(change["job"].Text()),
                             change["from"].Whole(), change["to"].Whole());
    }
    table.Add({std::to_string(round["round"].Whole()), LocalTime(round["time"].Number()),
               Shown(round["gpu_type"]), Shown(round["algorithm"]), FineDuration(round["seconds"].Number()),
               changes.empty() ? kNone : changes, Shown(round["trigger"])});
  }
  return table.Text();
}

std::string NodesOf(const Value& job) {
  std::vector<std::pair<std::string, int>> counts;  // in the order of their first worker
  for (const Value& node : job["nodes"].items()) {
    const std::string name = node.Text().empty() ? "down" : Printable(node.Text());
    const auto known =
        std::find_if(counts.begin(), counts.end(), [&](const auto& count) { return count.first == name; });
    if (known == counts.end()) {
      counts.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  std::string out;
  for (const auto& [name, count] : counts) out += fmt::format("{}{}:{}", out.empty() ? "" : ",", name, count);
  return out.empty() ? kNone : out;
}

std::string ProgressOf(const Value& job) {
  const Value& progress = job["progress"];
  if (progress.null()) return kNone;
  std::string out;
  if (progress["epoch"].number()) {
    const Value& total = progress["total_epochs"];
    out = fmt::format("{}/{}", progress["epoch"].Whole(), total.number() ? ToJsonLine(total) : "?");
  }
  if (progress["fraction"].number()) {
    const double share = std::clamp(progress["fraction"].Number(), 0.0, 1.0);
    out += fmt::format("{}{:.0f}%", out.empty() ? "" : " ", std::floor(share * 100));
  }
  return out.empty() ? kNone : out;
}

bool IsGuessed(const Value& job) {
  return job["estimate"].Text() == Name(Estimate::kGuessed);
}

std::string EtaOf(const Value& job) {
  if (HasEnded(job)) return kNone;
  if (job["held"].Flag()) return "held";
  if (!job["remaining_seconds"].number()) return kNone;
  const double remaining = job["remaining_seconds"].Number();
  if (!IsGuessed(job)) return GoDuration(remaining);
  // A guess is not known to the second.
  constexpr double kMinute = 60;
  const double step = remaining < 10 * kMinute ? 10 : kMinute;
  return "~" + GoDuration(std::round(remaining / step) * step);
}

}  // namespace voda
