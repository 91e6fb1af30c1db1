// voda wait: waits until jobs have reached a status, for scripts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/duration.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "client/text.h"

namespace voda {

namespace {

constexpr const char* kFooter = R"(Exit codes, for all the jobs together:
  0  every job got there            5  one failed
  3  there is no such job           6  the time ran out
  4  the server is not reachable    7  one was canceled
  1  one ended in another way (for example completed, with --for failed)
Of several, a failure counts before a cancellation. A lost connection is made again until the time runs out.
Example:
  voda wait mnist-20260101-120000
  voda wait mnist-20260101-120000 --for running --timeout 10m)";

using Clock = std::chrono::steady_clock;

struct Args {
  ConnectFlags connect;
  std::vector<std::string> names;
  std::string goal = "completed";
  std::string timeout;
};

constexpr int kUndecided = -1;
constexpr const char* kAnyEnd = "ended";

// The exit code that the status of a job means for the goal.
int Outcome(const std::string& goal, const Value& job) {
  const std::optional<JobStatus> status = StatusOf(job);
  if (!status) return kUndecided;
  const auto wanted = [&](JobStatus one) { return goal == CLI::detail::to_lower(std::string(Name(one))); };
  if (wanted(*status)) return 0;
  if (wanted(JobStatus::kRunning) && status == JobStatus::kCompleted) return 0;  // it has run
  if (!Terminal(*status)) return kUndecided;
  if (goal == kAnyEnd) return 0;
  if (status == JobStatus::kFailed) return kExitJobFailed;
  return status == JobStatus::kCanceled ? kExitJobCanceled : kExitError;
}

class Waiting {
 public:
  Waiting(Session& session, const Args& args) : session_(session), args_(args) {
    for (const std::string& name : args.names) outcomes_[name] = kUndecided;
  }

  // Asks for a job and prints its status once it is decided.
  void Look(const std::string& name) {
    int& outcome = outcomes_.at(name);
    if (outcome != kUndecided) return;
    const ApiAnswer answer = GetJson(session_.side(), JobPath(name));
    if (answer.trouble == Trouble::kUnreachable) return;  // the stream will notice, too
    if (!answer.ok()) {
      session_.Report(answer);
      outcome = ExitCodeOf(answer);
      return;
    }
    outcome = Outcome(args_.goal, answer.value);
    if (outcome == kUndecided) return;
    const std::string& message = answer.value["message"].Text();
    session_.Print(fmt::format("Training job {}: {}{}{}\n",
                               CLI::detail::to_lower(Printable(answer.value["status"].Text())),
                               Printable(name), message.empty() ? "" : ": ",
                               Printable(std::string_view(message).substr(0, message.find('\n')))));
  }

  bool LookAtAll() {
    for (const std::string& name : args_.names) Look(name);
    return !Decided();
  }

  bool LookAtThoseOf(const std::vector<Value>& events) {
    for (const Value& event : events) {
      const std::string& name = event["job"].Text();
      if (event["type"].Text() != "job.progress" && outcomes_.count(name) > 0) Look(name);
    }
    return !Decided();
  }

  bool Decided() const {
    return std::none_of(outcomes_.begin(), outcomes_.end(),
                        [](const auto& entry) { return entry.second == kUndecided; });
  }

  // The exit code that most deserves attention.
  int Code() const {
    for (const int code : {kExitUnreachable, kExitNotFound, kExitJobFailed, kExitJobCanceled, kExitError}) {
      for (const auto& entry : outcomes_) {
        if (entry.second == code) return code;
      }
    }
    return Decided() ? 0 : kExitTimeout;
  }

  std::string Undecided() const {
    std::string list;
    for (const std::string& name : args_.names) {
      if (outcomes_.at(name) == kUndecided && list.find(name) == list.npos) list += " " + Printable(name);
    }
    return list;
  }

 private:
  Session& session_;
  const Args& args_;
  std::map<std::string, int> outcomes_;
};

void Run(const Args& args) {
  Session session("voda wait", args.connect);
  FollowEvents follow;
  if (!args.timeout.empty()) {
    const auto seconds = ParseDuration(args.timeout);
    if (!seconds) session.Stop("--timeout: " + seconds.error().message, kExitBadInput);
    follow.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(std::min(*seconds, 1e8)));
  }
  if (args.names.size() == 1) follow.job = args.names.front();
  follow.name_space = CommonNamespace(args.names);
  Waiting waiting(session, args);
  follow.on_subscribed = [&] { return waiting.LookAtAll(); };
  follow.on_events = [&](const std::vector<Value>& events) { return waiting.LookAtThoseOf(events); };
  follow.on_lost = [&](const std::string& message) { session.Warn(message + "; trying again"); };
  const ApiAnswer end = Follow(session.http(), follow);
  if (!end.ok()) session.Stop(end);
  const int code = waiting.Code();
  if (code == kExitTimeout) {
    session.Stop(fmt::format("not {} after {}:{}", args.goal, args.timeout, waiting.Undecided()), code);
  }
  if (code != 0) throw CLI::RuntimeError(code);
}

}  // namespace

void AddWait(CLI::App& app) {
  auto* command = app.add_subcommand("wait", "wait until jobs have ended, or run")->group("Jobs");
  const auto args = std::make_shared<Args>();
  command->add_option("names", args->names, "the jobs")->required()->type_name("JOB");
  command->add_option("--for", args->goal, "what to wait for; ended is any end")
      ->capture_default_str()
      ->type_name("running|completed|failed|canceled|ended")
      ->check(CLI::IsMember({"running", "completed", "failed", "canceled", kAnyEnd}).description(""));
  command->add_option("--timeout", args->timeout, "give up after this long, such as 10m")
      ->type_name("DURATION");
  AddNamespaceFlag(*command, args->connect.name_space, &args->names);
  AddConnectFlags(*command, args->connect);
  command->footer(kFooter);
  command->callback([args] { Run(*args); });
}

}  // namespace voda
