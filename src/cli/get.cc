// voda get: tables of jobs, nodes, algorithms and rounds; `get jobs -w` follows them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "client/tables.h"
#include "client/text.h"
#include "client/yaml.h"

namespace voda {

namespace {

constexpr const char* kJobsFooter = R"(Example:
  voda get jobs
  voda get jobs --status Running,Waiting -o wide
  voda get jobs -w
  voda get jobs mnist-20260101-120000 -o yaml)";

struct JobsArgs {
  ConnectFlags connect;
  std::vector<std::string> names;
  std::string status;
  JobQuery filter;
  int limit = 0;
  bool active = false;
  bool watch = false;
  Output output = Output::kDefault;
};

struct ListArgs {
  ConnectFlags connect;
  Output output = Output::kDefault;
  std::string gpu_type;
  int limit = 20;
};

std::optional<JobStatus> ParseAnyCase(std::string_view text) {
  std::string name = CLI::detail::to_lower(std::string(text));
  if (!name.empty()) name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return ParseJobStatus(name);
}

void ParseStatuses(const Session& session, JobsArgs& args) {
  if (args.active) args.filter.statuses = {JobStatus::kSubmitted, JobStatus::kWaiting, JobStatus::kRunning};
  if (args.status.empty()) return;
  for (const std::string_view given : Split(args.status, ',')) {
    const std::optional<JobStatus> known = ParseAnyCase(given);
    if (!known) {
      session.Stop(
          fmt::format("--status \"{}\" is unknown; known are {}", given, fmt::join(kJobStatusNames, ", ")),
          kExitBadInput);
    }
    args.filter.statuses.push_back(*known);
  }
}

class JobPrinter {
 public:
  JobPrinter(const Session& session, Output output)
      : session_(session), output_(output), table_(output == Output::kWide, UseColor()) {}

  // Before their rows are printed.
  void Fit(const Value::List& jobs) {
    for (const Value& job : jobs) table_.Fit(job);
  }
  void Header() const {
    if (output_ == Output::kDefault || output_ == Output::kWide) session_.Print(table_.Header());
  }
  std::string Row(const Value& job) const {
    if (output_ == Output::kName) return Printable(job["name"].Text()) + "\n";
    if (output_ == Output::kJson) return ToJsonLine(job) + "\n";
    if (output_ == Output::kYaml) return "---\n" + ToYaml(job);
    return table_.Row(job);
  }
  // A row is printed again when this differs: everything shown except the running times.
  std::string Face(const Value& job) const {
    Value::List face = {job["status"],   job["held"],     job["workers"], job["planned"],
                        job["priority"], job["min"],      job["max"],     job["nodes"],
                        job["starts"],   job["failures"], job["message"]};
    if (output_ != Output::kDefault && output_ != Output::kName) face.push_back(job["progress"]);
    return ToJson(face);
  }

 private:
  const Session& session_;
  Output output_;
  JobTable table_;
};

// Fetches the named jobs, or those that match the filter; names that do not exist are reported.
Value::List Fetch(Session& session, HttpClient& http, const JobsArgs& args) {
  Value::List jobs;
  if (args.names.empty()) {
    ApiAnswer answer = ListJobs(http, args.filter);
    if (!answer.ok()) session.Stop(answer);
    jobs = std::move(answer.value).TakeItems();
  }
  for (const std::string& name : args.names) {
    ApiAnswer answer = GetJson(http, JobPath(name));
    if (answer.ok()) {
      if (args.filter.Matches(answer.value)) jobs.push_back(std::move(answer.value));
    } else if (answer.trouble == Trouble::kNotFound) {
      session.Report(answer);
    } else {
      session.Stop(answer);
    }
  }
  if (args.limit > 0 && std::ssize(jobs) > args.limit) {
    jobs.erase(jobs.begin(), jobs.end() - args.limit);
  }
  return jobs;
}

void Watch(Session& session, const JobsArgs& args) {
  JobPrinter printer(session, args.output);
  std::map<std::string, std::string> faces;  // by job
  bool first = true;
  const auto show = [&](const Value& job) {
    std::string face = printer.Face(job);
    std::string& last = faces[job["name"].Text()];
    if (last == face) return std::string();
    last = std::move(face);
    printer.Fit({job});
    return printer.Row(job);
  };
  FollowEvents follow;
  if (args.names.size() == 1) follow.job = args.names.front();
  follow.name_space = args.names.empty() ? args.filter.name_space : CommonNamespace(args.names);
  follow.on_subscribed = [&] {
    const Value::List jobs = Fetch(session, session.side(), args);
    if (first) {
      session.Finish();
      printer.Fit(jobs);
      printer.Header();
    }
    first = false;
    std::string text;
    for (const Value& job : jobs) text += show(job);
    session.Print(text);
    return true;
  };
  follow.on_events = [&](const std::vector<Value>& events) {
    std::vector<std::string> touched;
    for (const Value& event : events) {
      const std::string& name = event["job"].Text();
      const bool wanted =
          args.names.empty() || std::find(args.names.begin(), args.names.end(), name) != args.names.end();
      if (!name.empty() && wanted && std::find(touched.begin(), touched.end(), name) == touched.end()) {
        touched.push_back(name);
      }
    }
    std::string text;
    for (const std::string& name : touched) {
      const ApiAnswer answer = GetJson(session.side(), JobPath(name));
      if (answer.ok() && (faces.count(name) > 0 || args.filter.Matches(answer.value)))
        text += show(answer.value);
    }
    session.Print(text);
    return true;
  };
  follow.on_lost = [&](const std::string& message) {
    session.Warn(fmt::format("{}; trying again", message));
  };
  const ApiAnswer end = Follow(session.http(), follow);
  if (!end.ok()) session.Stop(end);
}

void RunJobs(JobsArgs& args) {
  Session session("voda get jobs", args.connect);
  ParseStatuses(session, args);
  if (args.watch) return Watch(session, args);
  Value::List jobs = Fetch(session, session.http(), args);
  JobPrinter printer(session, args.output);
  printer.Fit(jobs);
  if (PrintsObject(args.output)) {
    if (args.names.size() == 1) {
      if (!jobs.empty()) session.PrintObject(jobs.front(), args.output);
    } else {
      session.PrintObject(Value::Map{{"jobs", std::move(jobs)}}, args.output);
    }
  } else {
    std::string text;
    for (const Value& job : jobs) text += printer.Row(job);
    if (args.names.empty() || !jobs.empty()) printer.Header();
    session.Print(text);
  }
  session.Finish();
}

void AddGetJobs(CLI::App& get) {
  auto* command = get.add_subcommand("jobs", "training jobs, oldest first")->alias("job");
  const auto args = std::make_shared<JobsArgs>();
  command->add_option("names", args->names, "only these jobs")->type_name("JOB");
  command->add_flag("-w,--watch", args->watch, "then print the rows that change, until Ctrl-C");
  AddOutputFlag(*command, args->output, "wide|json|yaml|name");
  command->add_option("--status", args->status, "only these, separated by commas")
      ->type_name("Submitted|Waiting|Running|Completed|Failed|Canceled");
  command->add_flag("--active", args->active, "only jobs that have not ended");
  command->add_option("--gpu-type", args->filter.gpu_type, "only of this GPU type")->type_name("TYPE");
  command->add_option("--category", args->filter.category, "only of this category")->type_name("NAME");
  command->add_option("--limit", args->limit, "only the newest N")
      ->type_name("N")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
  AddNamespaceFlag(*command, args->filter.name_space, &args->names);
  AddConnectFlags(*command, args->connect);
  command->footer(kJobsFooter);
  command->callback([args] { RunJobs(*args); });
}

struct Listing {
  const char* name;
  const char* alias;
  const char* help;
  const char* path;
  const char* key;         // the array's key in the answer
  const char* name_field;  // what -o name prints
  bool has_wide;
  std::string (*table)(const Value& answer, bool wide);
};

const Listing kListings[] = {
    {"nodes", "node", "nodes, their GPUs and who uses them", "/api/v1/nodes", "nodes", "name", true,
     [](const Value& answer, bool wide) { return NodeTable(answer["nodes"], wide); }},
    {"algorithms", "algorithm", "the algorithms that the server knows", "/api/v1/algorithms", "algorithms",
     "name", false, [](const Value& answer, bool) { return AlgorithmTable(answer); }},
    {"rounds", "round", "the latest decisions, newest first", "/api/v1/rounds", "rounds", "round", false,
     [](const Value& answer, bool) { return RoundTable(answer["rounds"]); }},
};

void RunList(const Listing& list, const ListArgs& args, bool rounds) {
  Session session(fmt::format("voda get {}", list.name), args.connect);
  std::string path = list.path;
  if (rounds) path += fmt::format("?limit={}", args.limit);
  if (rounds && !args.gpu_type.empty()) path += "&gpu_type=" + PercentEncode(args.gpu_type);
  const Value answer = session.Get(path);
  if (PrintsObject(args.output)) return session.PrintObject(answer, args.output);
  if (args.output != Output::kName) return session.Print(list.table(answer, args.output == Output::kWide));
  std::string text;
  for (const Value& item : answer[list.key].items()) {
    const Value& name = item[list.name_field];
    text += (name.text() ? Printable(name.Text()) : ToJsonLine(name)) + "\n";
  }
  session.Print(text);
}

}  // namespace

void AddGet(CLI::App& app) {
  auto* get = app.add_subcommand("get", "list jobs, nodes, algorithms or rounds")->group("Jobs");
  get->require_subcommand(1);
  AddGetJobs(*get);
  for (const Listing& list : kListings) {
    auto* command = get->add_subcommand(list.name, list.help)->alias(list.alias);
    const auto args = std::make_shared<ListArgs>();
    const bool rounds = std::string_view(list.name) == "rounds";
    AddOutputFlag(*command, args->output, list.has_wide ? "wide|json|yaml|name" : "json|yaml|name");
    if (rounds) {
      command->add_option("--limit", args->limit, "at most this many")
          ->type_name("N")
          ->capture_default_str()
          ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
      command->add_option("--gpu-type", args->gpu_type, "only of this GPU type")->type_name("TYPE");
    }
    AddConnectFlags(*command, args->connect);
    command->callback([args, rounds, &list] { RunList(list, *args, rounds); });
  }
}

}  // namespace voda
