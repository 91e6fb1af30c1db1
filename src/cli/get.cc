// voda get: tables of jobs, nodes, algorithms and rounds; `get jobs -w` follows them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

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

const std::vector<std::string> kStatuses = {"Submitted", "Waiting", "Running",
                                            "Completed", "Failed",  "Canceled"};

struct JobsArgs {
  ConnectFlags connect;
  std::vector<std::string> names;
  std::string status;
  JobQuery filter;
  int limit = 0;
  bool active = false;
  bool watch = false;
  std::string output;
};

struct ListArgs {
  ConnectFlags connect;
  std::string output;
  std::string gpu_type;
  int limit = 20;
};

std::string SameCase(std::string_view text) {
  const auto known = std::find_if(kStatuses.begin(), kStatuses.end(), [&](const std::string& status) {
    return CLI::detail::to_lower(status) == CLI::detail::to_lower(std::string(text));
  });
  return known == kStatuses.end() ? "" : *known;
}

void ParseStatuses(const Session& session, JobsArgs& args) {
  if (args.active) args.filter.statuses = {"Submitted", "Waiting", "Running"};
  for (std::size_t at = 0; !args.status.empty() && at <= args.status.size();) {
    const std::size_t end = std::min(args.status.find(',', at), args.status.size());
    const std::string given = args.status.substr(at, end - at);
    const std::string known = SameCase(given);
    if (known.empty()) {
      session.Stop(fmt::format("--status \"{}\" is unknown; known are {}", given, fmt::join(kStatuses, ", ")),
                   kExitBadInput);
    }
    args.filter.statuses.push_back(known);
    at = end + 1;
  }
}

class JobPrinter {
 public:
  JobPrinter(const Session& session, const std::string& output)
      : session_(session), output_(output), wide_(output == "wide"), color_(UseColor()) {}

  void Header() const {
    if (output_.empty() || wide_) session_.Print(JobHeader(wide_));
  }
  std::string Row(const JsonValue& job) const {
    if (output_ == "name") return Printable(job["name"].Text()) + "\n";
    if (output_ == "json") return ToJson(job) + "\n";
    if (output_ == "yaml") return "---\n" + ToYaml(job);
    return JobRow(job, wide_, color_);
  }
  // What must differ for a row to be printed again: everything shown but the times that run by themselves.
  std::string Face(const JsonValue& job) const {
    JsonValue::Array face = {job["status"],   job["held"],     job["workers"], job["planned"],
                             job["priority"], job["min"],      job["max"],     job["nodes"],
                             job["starts"],   job["failures"], job["message"]};
    if (!output_.empty() && output_ != "name") face.push_back(job["progress"]);
    return ToJson(face);
  }

 private:
  const Session& session_;
  const std::string& output_;
  bool wide_;
  bool color_;
};

// The jobs named, or those of the filter; names that do not exist are reported.
JsonValue::Array Fetch(Session& session, HttpClient& http, const JobsArgs& args) {
  JsonValue::Array jobs;
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
  if (args.limit > 0 && jobs.size() > static_cast<std::size_t>(args.limit)) {
    jobs.erase(jobs.begin(), jobs.end() - args.limit);
  }
  return jobs;
}

void Watch(Session& session, const JobsArgs& args) {
  const JobPrinter printer(session, args.output);
  std::map<std::string, std::string> faces;  // by name
  bool first = true;
  const auto show = [&](const JsonValue& job) {
    std::string face = printer.Face(job);
    std::string& last = faces[job["name"].Text()];
    if (last == face) return std::string();
    last = std::move(face);
    return printer.Row(job);
  };
  FollowEvents follow;
  if (args.names.size() == 1) follow.job = args.names.front();
  follow.name_space = args.names.empty() ? args.filter.name_space : CommonNamespace(args.names);
  follow.on_subscribed = [&] {
    const JsonValue::Array jobs = Fetch(session, session.side(), args);
    if (first) {
      session.Finish();
      printer.Header();
    }
    first = false;
    std::string text;
    for (const JsonValue& job : jobs) text += show(job);
    session.Print(text);
    return true;
  };
  follow.on_events = [&](const std::vector<JsonValue>& events) {
    std::vector<std::string> touched;
    for (const JsonValue& event : events) {
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
  JsonValue::Array jobs = Fetch(session, session.http(), args);
  const JobPrinter printer(session, args.output);
  if (args.output == "json" || args.output == "yaml") {
    if (args.names.size() == 1) {
      if (!jobs.empty()) session.PrintObject(jobs.front(), args.output);
    } else {
      session.PrintObject(JsonValue::Object{{"jobs", std::move(jobs)}}, args.output);
    }
  } else {
    std::string text;
    for (const JsonValue& job : jobs) text += printer.Row(job);
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
      ->check(CLI::PositiveNumber);
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
  const char* key;         // of the array in the answer
  const char* name_field;  // what -o name prints
  std::string (*table)(const JsonValue& answer);
};

const Listing kListings[] = {
    {"nodes", "node", "nodes, their GPUs and who uses them", "/api/v1/nodes", "nodes", "name",
     [](const JsonValue& answer) { return NodeTable(answer["nodes"]); }},
    {"algorithms", "algorithm", "the algorithms that the server knows", "/api/v1/algorithms", "algorithms",
     "name", [](const JsonValue& answer) { return AlgorithmTable(answer); }},
    {"rounds", "round", "the latest decisions, newest first", "/api/v1/rounds", "rounds", "round",
     [](const JsonValue& answer) { return RoundTable(answer["rounds"]); }},
};

void RunList(const Listing& list, const ListArgs& args, bool rounds) {
  Session session(fmt::format("voda get {}", list.name), args.connect);
  std::string path = list.path;
  if (rounds) path += fmt::format("?limit={}", args.limit);
  if (rounds && !args.gpu_type.empty()) path += "&gpu_type=" + UrlEscape(args.gpu_type);
  const JsonValue answer = session.Get(path);
  if (args.output == "json" || args.output == "yaml") return session.PrintObject(answer, args.output);
  if (args.output != "name") return session.Print(list.table(answer));
  std::string text;
  for (const JsonValue& item : answer[list.key].items()) {
    const JsonValue& name = item[list.name_field];
    text += (name.text() ? Printable(name.Text()) : ToJson(name)) + "\n";
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
    AddOutputFlag(*command, args->output, "json|yaml|name");
    if (rounds) {
      command->add_option("--limit", args->limit, "at most so many")
          ->type_name("N")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
      command->add_option("--gpu-type", args->gpu_type, "only of this GPU type")->type_name("TYPE");
    }
    AddConnectFlags(*command, args->connect);
    command->callback([args, rounds, &list] { RunList(list, *args, rounds); });
  }
}

}  // namespace voda
