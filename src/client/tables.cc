#include "client/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "client/api.h"
#include "client/text.h"

namespace voda {

namespace {

constexpr const char* kNone = "<none>";
constexpr const char* kReset = "\x1b[0m";
constexpr int kNameCells = 60;
constexpr int kCells = 10;

std::string Line(const std::vector<std::string>& cells, bool wide) {
  // What -o wide adds is ours: as wide as it mostly is.
  constexpr std::array<int, 6> kMore = {10, 6, 6, 20, 14, 10};
  constexpr std::size_t kFirstMore = 7;
  std::string line = PadRight(cells[0], kNameCells);
  for (std::size_t i = 1; i < cells.size(); ++i) {
    line += " " + PadRight(cells[i], i < kFirstMore ? kCells : kMore[i - kFirstMore]);
  }
  if (wide) line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string Shown(const JsonValue& value) {
  const std::string& text = value.Text();
  return text.empty() ? kNone : Printable(text);
}

}  // namespace

std::string JobHeader(bool wide) {
  std::vector<std::string> cells = {"NAME", "STATUS", "WORKERS", "SCHEDULER", "WAITING", "RUNNING", "TOTAL"};
  if (wide) cells.insert(cells.end(), {"PRIORITY", "MIN", "MAX", "NODES", "PROGRESS", "ETA"});
  return Line(cells, wide);
}

std::string JobRow(const JsonValue& job, bool wide, bool color) {
  std::vector<std::string> cells = {Printable(job["name"].Text()),
                                    Printable(job["status"].Text()),
                                    std::to_string(job["workers"].Whole()),
                                    Printable(job["gpu_type"].Text()),
                                    GoDuration(job["waiting_seconds"].Number()),
                                    GoDuration(job["running_seconds"].Number()),
                                    GoDuration(job["total_seconds"].Number())};
  if (wide) {
    cells.insert(cells.end(),
                 {std::to_string(job["priority"].Whole()), std::to_string(job["min"].Whole()),
                  std::to_string(job["max"].Whole()), NodesOf(job), ProgressOf(job), EtaOf(job)});
  }
  if (color) {
    // Padded first: an escape sequence takes no cells.
    const std::string_view shade = StatusColor(cells[1]);
    if (!shade.empty()) cells[1] = std::string(shade) + PadRight(cells[1], kCells) + kReset;
  }
  return Line(cells, wide);
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

std::string NodeTable(const JsonValue& nodes) {
  Table table({"NAME", "STATE", "GPU-TYPE", "GPUS", "USED", "JOBS"});
  for (const JsonValue& node : nodes.items()) {
    std::string jobs;
    for (const JsonValue& job : node["jobs"].items()) {
      jobs += fmt::format("{}{}:{}", jobs.empty() ? "" : ",", Printable(job["name"].Text()),
                          job["workers"].Whole());
    }
    table.Add({Shown(node["name"]), Shown(node["state"]), Shown(node["gpu_type"]),
               std::to_string(node["gpus"].Whole()), std::to_string(node["used"].Whole()),
               jobs.empty() ? kNone : jobs});
  }
  return table.Text();
}

std::string AlgorithmTable(const JsonValue& answer) {
  Table table({"NAME", "DEFAULT", "OPTIONS", "SUMMARY"});
  for (const JsonValue& algorithm : answer["algorithms"].items()) {
    std::string options;
    for (const JsonValue& option : algorithm["options"].items()) {
      const JsonValue& value = option["default"];
      options += fmt::format("{}{}={}", options.empty() ? "" : ",", Printable(option["name"].Text()),
                             value.text() ? Printable(value.Text()) : ToJson(value));
    }
    table.Add({Shown(algorithm["name"]), algorithm["name"].Text() == answer["default"].Text() ? "yes" : "no",
               options.empty() ? kNone : options, Printable(algorithm["summary"].Text())});
  }
  return table.Text();
}

std::string RoundTable(const JsonValue& rounds) {
  Table table({"ROUND", "TIME", "GPU-TYPE", "ALGORITHM", "TOOK", "CHANGES", "TRIGGER"});
  for (const JsonValue& round : rounds.items()) {
    std::string changes;
    for (const JsonValue& change : round["changes"].items()) {
      changes += fmt::format("{}{}:{}->{}", changes.empty() ? "" : ",", Printable(change["job"].Text()),
                             change["from"].Whole(), change["to"].Whole());
    }
    table.Add({std::to_string(round["round"].Whole()), LocalTime(round["time"].Number()),
               Shown(round["gpu_type"]), Shown(round["algorithm"]), FineDuration(round["seconds"].Number()),
               changes.empty() ? kNone : changes, Shown(round["trigger"])});
  }
  return table.Text();
}

std::string NodesOf(const JsonValue& job) {
  std::vector<std::pair<std::string, int>> counts;  // in the order of their first worker
  for (const JsonValue& node : job["nodes"].items()) {
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

std::string ProgressOf(const JsonValue& job) {
  const JsonValue& progress = job["progress"];
  if (progress.null()) return kNone;
  std::string out;
  if (progress["epoch"].number()) {
    const JsonValue& total = progress["total_epochs"];
    out = fmt::format("{}/{}", progress["epoch"].Whole(), total.number() ? ToJson(total) : "?");
  }
  if (progress["fraction"].number()) {
    const double share = std::clamp(progress["fraction"].Number(), 0.0, 1.0);
    out += fmt::format("{}{:.0f}%", out.empty() ? "" : " ", std::floor(share * 100));
  }
  return out.empty() ? kNone : out;
}

std::string EtaOf(const JsonValue& job) {
  if (IsTerminal(job["status"].Text())) return kNone;
  if (job["held"].Flag()) return "held";
  return job["remaining_seconds"].number() ? GoDuration(job["remaining_seconds"].Number()) : kNone;
}

std::string_view StatusColor(std::string_view status) {
  if (status == "Running") return "\x1b[32m";
  if (status == "Waiting" || status == "Submitted") return "\x1b[33m";
  if (status == "Failed") return "\x1b[31m";
  if (status == "Completed" || status == "Canceled") return "\x1b[2m";
  return {};
}

}  // namespace voda
