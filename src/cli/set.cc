// voda set: the algorithm and rate limit of the schedulers, the priority and size of a job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/policy_args.h"
#include "cli/session.h"
#include "client/text.h"
#include "model/job.h"

namespace voda {

namespace {

struct Args {
  ConnectFlags connect;
  std::string name;  // of the algorithm or of the job
  std::string value;
  std::string gpu_type;
  std::vector<std::string> options;
  int priority = 0;
  int min = 0;
  int num = 0;
  int max = 0;
};

std::string SettingsPath(const Args& args) {
  return args.gpu_type.empty() ? "/api/v1/settings"
                               : "/api/v1/settings?gpu_type=" + PercentEncode(args.gpu_type);
}

std::string Where(const Args& args) {
  return args.gpu_type.empty() ? "all GPU types" : "GPU type " + Printable(args.gpu_type);
}

void SetAlgorithm(const Args& args) {
  Session session("voda set algorithm", args.connect);
  const auto options = ParsePolicyOptions(args.options);
  if (!options) session.Stop(options.error().message, kExitBadInput);
  Value::Map chosen;
  for (const auto& [key, value] : *options) chosen.emplace_back(key, value);
  session.Send("PUT", SettingsPath(args),
               Value::Map{{"algorithm", args.name}, {"options", std::move(chosen)}});
  session.Print(fmt::format("Algorithm set: {} ({})\n", Printable(args.name), Where(args)));
}

void SetRateLimit(const Args& args) {
  Session session("voda set ratelimit", args.connect);
  const auto seconds = ParseDuration(args.value);
  if (!seconds) session.Stop(seconds.error().message, kExitBadInput);
  session.Send("PUT", SettingsPath(args), Value::Map{{"rate_limit_seconds", *seconds}});
  session.Print(fmt::format("Rate limit set: {} ({})\n", FineDuration(*seconds), Where(args)));
}

void SetPriority(const Args& args) {
  Session session("voda set priority", args.connect);
  session.Send("PATCH", JobPath(args.name), Value::Map{{"priority", args.priority}});
  session.Print(fmt::format("Training job changed: {}: priority {}\n", Printable(args.name), args.priority));
}

void SetSize(const Args& args) {
  Session session("voda set size", args.connect);
  Value::Map change;
  if (args.min > 0) change.emplace_back("min", args.min);
  if (args.num > 0) change.emplace_back("num", args.num);
  if (args.max > 0) change.emplace_back("max", args.max);
  if (change.empty()) session.Stop("nothing to change; give --min, --num or --max", kExitBadInput);
  const Value job = session.Send("PATCH", JobPath(args.name), change);
  session.Print(fmt::format("Training job changed: {}: {} to {} workers, asks for {}\n", Printable(args.name),
                            job["min"].Whole(), job["max"].Whole(), job["num"].Whole()));
}

}  // namespace

void AddSet(CLI::App& app) {
  auto* set = app.add_subcommand("set", "change the algorithm, the rate limit, or a job")->group("Cluster");
  set->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, void (*run)(const Args&)) {
    auto* command = set->add_subcommand(name, help);
    const auto args = std::make_shared<Args>();
    AddConnectFlags(*command, args->connect);
    command->callback([args, run] { run(*args); });
    return std::pair(command, args);
  };
  {
    const auto [command, args] = add("algorithm", "how GPUs are shared from now on", &SetAlgorithm);
    command->add_option("algorithm", args->name, "see `voda get algorithms`")
        ->required()
        ->type_name("ALGORITHM");
    command->add_option("--gpu-type", args->gpu_type, "only of this GPU type; else of all")
        ->type_name("TYPE");
    command->add_option("--option", args->options, "an option of the algorithm; may be repeated")
        ->type_name("KEY=VALUE")
        ->allow_extra_args(false);
  }
  {
    const auto [command, args] = add("ratelimit", "least time between two rounds", &SetRateLimit);
    command->add_option("time", args->value, "such as 30s")->required()->type_name("DURATION");
    command->add_option("--gpu-type", args->gpu_type, "only of this GPU type; else of all")
        ->type_name("TYPE");
  }
  {
    const auto [command, args] = add("priority", "priority of a job", &SetPriority);
    command->add_option("job", args->name, "the job")->required()->type_name("JOB");
    command->add_option("priority", args->priority, "a whole number")->required()->type_name("N");
    AddNamespaceFlag(*command, args->connect.name_space, args->name);
  }
  {
    const auto [command, args] = add("size", "fewest, requested and most workers of a job", &SetSize);
    command->add_option("job", args->name, "the job")->required()->type_name("JOB");
    command->add_option("--min", args->min, "fewest workers")
        ->type_name("N")
        ->check(CLI::Range(1, kMaxWorkers).description(""));
    command->add_option("--num", args->num, "requested workers")
        ->type_name("N")
        ->check(CLI::Range(1, kMaxWorkers).description(""));
    command->add_option("--max", args->max, "most workers")
        ->type_name("N")
        ->check(CLI::Range(1, kMaxWorkers).description(""));
    AddNamespaceFlag(*command, args->connect.name_space, args->name);
  }
}

}  // namespace voda
