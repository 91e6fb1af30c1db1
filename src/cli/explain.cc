// voda explain: why a job has the size it has, what it waits for and when that should end.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "client/text.h"

namespace voda {

namespace {

constexpr std::size_t kAheadShown = 10;

struct Args {
  ConnectFlags connect;
  std::string name;
  Output output = Output::kDefault;
};

// No more exact than SpokenDuration says how long it is until then.
double RoundedTime(double time, double left) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  const double step = left < 595 ? 10 : left < 24 * kHour ? kMinute : kHour;
  return std::round(time / step) * step;
}

// "in 100 s, at 2026-01-01 12:00:00"; a time in the past is "now". The server's clock is the one that
// counts.
std::string Ahead(double time, const Value& answer, bool guessed = false) {
  const double left = time - (answer["now"].number() ? answer["now"].Number() : WallNow());
  if (left <= 0) return "now";
  return fmt::format("in {}{}, at {}{}", guessed ? "about " : "", SpokenDuration(left),
                     LocalTime(guessed ? RoundedTime(time, left) : time),
                     guessed ? " (a guess: other jobs report no progress)" : "");
}

std::string ExplainText(const Value& answer) {
  std::string out = fmt::format("{}: {}{}", Printable(answer["job"].Text()),
                                Printable(answer["status"].Text()), answer["held"].Flag() ? ", held" : "");
  const auto workers = answer["workers"].Whole();
  const auto planned = answer["planned"].Whole();
  if (workers > 0 || planned > 0) out += fmt::format(", {}", Counted(workers, "worker"));
  if (planned != workers) out += fmt::format(" (the plan says {})", planned);
  if (workers == 0 && answer["position"].Whole() > 0) {
    out += fmt::format(", number {} in the algorithm's order; {} waiting", answer["position"].Whole(),
                       Counted(answer["waiting"].Whole(), "job"));
  }
  out += "\n";
  const auto field = [&](std::string_view name, std::string_view value) {
    out += fmt::format("{:<16} {}\n", name.empty() ? "" : fmt::format("{}:", name), value);
  };
  if (!answer["text"].Text().empty()) field("Why", Printable(answer["text"].Text()));
  if (answer["numbers"]["until"].number())
    field("May grow", Ahead(answer["numbers"]["until"].Number(), answer));
  if (!answer["belief"].Text().empty()) field("Assumed", Printable(answer["belief"].Text()));
  if (!answer["code"].Text().empty()) field("Reason code", Printable(answer["code"].Text()));
  if (answer["needs_gpus"].Whole() > 0) {
    field("Needs", fmt::format("{}; {} free", Counted(answer["needs_gpus"].Whole(), "GPU"),
                               answer["free_gpus"].Whole()));
  }
  const Value::List& ahead = answer["ahead"].items();
  for (std::size_t i = 0; i < ahead.size() && i < kAheadShown; ++i) {
    const auto count = ahead[i]["workers"].Whole();
    field(i == 0 ? "Ahead of it" : "",
          fmt::format("{} {}{}", Printable(ahead[i]["name"].Text()), Printable(ahead[i]["status"].Text()),
                      count > 0 ? fmt::format(", {} on {}", Counted(count, "worker"),
                                              Counted(ahead[i]["gpus"].Whole(), "GPU"))
                                : ""));
  }
  if (ahead.size() > kAheadShown) field("", fmt::format("and {} more", ahead.size() - kAheadShown));
  if (answer["expected_start"].number()) {
    field("Expected start",
          Ahead(answer["expected_start"].Number(), answer, answer["expected_start_guessed"].Flag()));
  }
  const Value& change = answer["last_change"];
  if (!change.null()) {
    field("Last change", fmt::format("{}->{} at {}, round {}: {}", change["from"].Whole(),
                                     change["to"].Whole(), LocalTime(change["time"].Number()),
                                     change["round"].Whole(), Printable(change["reason"].Text())));
    if (!change["trigger"].Text().empty()) field("", "after: " + Printable(change["trigger"].Text()));
  }
  if (answer["next_round"].number()) field("Next round", Ahead(answer["next_round"].Number(), answer));
  return out;
}

void Run(const Args& args) {
  Session session("voda explain", args.connect);
  const Value answer = session.Get(JobPath(args.name, "/explain"));
  if (PrintsObject(args.output)) return session.PrintObject(answer, args.output);
  session.Print(ExplainText(answer));
}

}  // namespace

void AddExplain(CLI::App& app) {
  auto* command = app.add_subcommand("explain", "why a job waits or has its size, and what would change that")
                      ->group("Jobs");
  const auto args = std::make_shared<Args>();
  command->add_option("name", args->name, "the job")->required()->type_name("JOB");
  AddOutputFlag(*command, args->output, "json|yaml");
  AddNamespaceFlag(*command, args->connect.name_space, args->name);
  AddConnectFlags(*command, args->connect);
  command->callback([args] { Run(*args); });
}

}  // namespace voda
