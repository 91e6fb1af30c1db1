// voda describe: everything that is known about one job or node, for people.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "client/tables.h"
#include "client/text.h"

namespace voda {

namespace {

struct Args {
  ConnectFlags connect;
  std::vector<std::string> names;
  Output output = Output::kDefault;
};

class Sheet {
 public:
  void Field(std::string_view name, std::string_view value) {
    text_ += fmt::format("{:<14} {}\n", fmt::format("{}:", name), value);
  }
  void Lines(std::string_view title, const std::string& block) {
    text_ += fmt::format("{}:\n", title);
    for (const std::string_view line : SplitEnded(block)) text_ += "  " + Printable(line) + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string TimeOf(const Value& time) {
  return time.number() ? LocalTime(time.Number()) : "<none>";
}

std::string JobText(const Value& job) {
  Sheet sheet;
  sheet.Field("Name", Printable(job["name"].Text()));
  sheet.Field("Status",
              fmt::format("{}{}", Printable(job["status"].Text()), job["held"].Flag() ? ", held" : ""));
  if (!job["message"].Text().empty() && job["message"].Text().find('\n') == std::string::npos) {
    sheet.Field("Message", Printable(job["message"].Text()));
  }
  sheet.Field("Kind", Printable(job["kind"].Text()));
  sheet.Field("Category", Printable(job["category"].Text()));
  sheet.Field("GPU type", Printable(job["gpu_type"].Text()));
  sheet.Field("Priority", std::to_string(job["priority"].Whole()));
  sheet.Field("Size", fmt::format("{} now, {} planned; min {}, num {}, max {}; {} each",
                                  Counted(job["workers"].Whole(), "worker"), job["planned"].Whole(),
                                  job["min"].Whole(), job["num"].Whole(), job["max"].Whole(),
                                  Counted(job["gpus_per_worker"].Whole(), "GPU")));
  sheet.Field("Nodes", NodesOf(job));
  const Value& progress = job["progress"];
  std::string shown = ProgressOf(job);
  if (progress["loss"].number()) shown += fmt::format(", loss {:.6g}", progress["loss"].Number());
  if (progress["updated"].number()) shown += ", reported " + TimeOf(progress["updated"]);
  sheet.Field("Progress", shown);
  sheet.Field("Remaining", EtaOf(job));
  sheet.Field("Submitted", TimeOf(job["submitted"]));
  sheet.Field("First started", TimeOf(job["first_started"]));
  sheet.Field("Ended", TimeOf(job["ended"]));
  sheet.Field("Times", fmt::format("waiting {}, running {}, total {}; {} GPU-seconds",
                                   GoDuration(job["waiting_seconds"].Number()),
                                   GoDuration(job["running_seconds"].Number()),
                                   GoDuration(job["total_seconds"].Number()),
                                   fmt::format("{:.0f}", job["gpu_seconds"].Number())));
  sheet.Field("Starts",
              fmt::format("{}; {}", job["starts"].Whole(), Counted(job["failures"].Whole(), "failure")));
  if (job["exit_code"].number()) sheet.Field("Exit code", std::to_string(job["exit_code"].Whole()));
  if (!job["speedup"].members().empty()) {
    std::string curve;
    for (const auto& [size, speedup] : job["speedup"].members()) {
      curve += fmt::format("{}{}: {:.2f}", curve.empty() ? "" : ", ", Printable(size), speedup.Number());
    }
    sheet.Field("Speed-up", curve);
    std::string measured;
    for (const Value& size : job["measured"].items()) {
      measured += fmt::format("{}{}", measured.empty() ? "" : ", ", size.Whole());
    }
    sheet.Field("Measured at", measured.empty() ? "<none>" : measured);
  }
  for (const Value& warning : job["warnings"].items()) sheet.Field("Warning", Printable(warning.Text()));
  if (job["message"].Text().find('\n') != std::string::npos) sheet.Lines("Message", job["message"].Text());
  if (!job["sizes"].items().empty()) {
    Table table({"TIME", "ROUND", "SIZE", "TRIGGER", "REASON"});
    for (const Value& change : job["sizes"].items()) {
      table.Add({TimeOf(change["time"]), std::to_string(change["round"].Whole()),
                 fmt::format("{}->{}", change["from"].Whole(), change["to"].Whole()),
                 Printable(change["trigger"].Text()), Printable(change["reason"].Text())});
    }
    sheet.Lines("Sizes", table.Text());
  }
  return sheet.text();
}

std::string NodeText(const Value& node) {
  Sheet sheet;
  sheet.Field("Name", Printable(node["name"].Text()));
  sheet.Field("State", Printable(node["state"].Text()));
  sheet.Field("GPU type", Printable(node["gpu_type"].Text()));
  sheet.Field("GPUs", fmt::format("{} of {} in use", node["used"].Whole(), node["gpus"].Whole()));
  std::string devices;
  for (const Value& device : node["devices"].items()) {
    devices +=
        (devices.empty() ? "" : ", ") + (device.text() ? Printable(device.Text()) : ToJsonLine(device));
  }
  sheet.Field("Devices", devices.empty() ? "<none>" : devices);
  Table table({"JOB", "WORKERS"});
  for (const Value& job : node["jobs"].items()) {
    table.Add({Printable(job["name"].Text()), std::to_string(job["workers"].Whole())});
  }
  if (!node["jobs"].items().empty()) sheet.Lines("Jobs", table.Text());
  return sheet.text();
}

// Nodes have no route of their own, so the node is taken from the list.
ApiAnswer FindNode(HttpClient& http, const std::string& name) {
  ApiAnswer answer = GetJson(http, "/api/v1/nodes");
  if (!answer.ok()) return answer;
  for (const Value& node : answer.value["nodes"].items()) {
    if (node["name"].Text() == name) return {.value = node, .status = 200};
  }
  return {.trouble = Trouble::kNotFound,
          .message = fmt::format("there is no node \"{}\"; `voda get nodes` lists them", Printable(name))};
}

void Run(const Args& args, bool jobs) {
  Session session(jobs ? "voda describe job" : "voda describe node", args.connect);
  bool first = true;
  for (const std::string& name : args.names) {
    const ApiAnswer answer = jobs ? GetJson(session.http(), JobPath(name)) : FindNode(session.http(), name);
    if (!answer.ok()) {
      session.Report(answer);
      continue;
    }
    if (PrintsObject(args.output)) {
      if (!first && args.output == Output::kYaml) session.Print("---\n");
      session.PrintObject(answer.value, args.output);
    } else {
      session.Print((first ? "" : "\n") + (jobs ? JobText(answer.value) : NodeText(answer.value)));
    }
    first = false;
  }
  session.Finish();
}

}  // namespace

void AddDescribe(CLI::App& app) {
  auto* describe = app.add_subcommand("describe", "all about a job or a node")->group("Jobs");
  describe->require_subcommand(1);
  for (const bool jobs : {true, false}) {
    auto* command = describe->add_subcommand(
        jobs ? "job" : "node",
        jobs ? "state, times, progress and history of sizes of a job" : "state, GPUs and jobs of a node");
    command->alias(jobs ? "jobs" : "nodes");
    const auto args = std::make_shared<Args>();
    command->add_option("names", args->names, "which")->required()->type_name(jobs ? "JOB" : "NODE");
    AddOutputFlag(*command, args->output, "json|yaml");
    if (jobs) AddNamespaceFlag(*command, args->connect.name_space, &args->names);
    AddConnectFlags(*command, args->connect);
    command->callback([args, jobs] { Run(*args, jobs); });
  }
}

}  // namespace voda
