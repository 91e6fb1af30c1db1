// voda simulate: a workload through the scheduler itself on a virtual clock, under one algorithm or several.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/policy_args.h"
#include "cli/progress.h"
#include "cli/recommend.h"
#include "cli/run_output.h"
#include "sim/bound.h"
#include "sim/cluster_spec.h"
#include "sim/load_workload.h"
#include "sim/report.h"
#include "sim/simulation.h"

namespace voda {

namespace {

constexpr const char* kFooter =
    R"(The scheduler is the real one; only the clock and the cluster are simulated (docs/SIMULATOR.md).
Example:
  voda simulate --cluster 3x4 --workload examples/workloads/small.csv --algorithm all --report report.html
  voda simulate --cluster 16x8 --workload 'gen:poisson?jobs=500&load=0.9&gpus=128' --algorithm ElasticFIFO,AFS-L -o json
  voda simulate --cluster 250x8 --workload philly_jobs.csv.gz --format philly

Exit codes: 0 done, 1 an error, 2 bad usage or a bad workload.)";

struct SimulateArgs {
  PolicyArgs policy;
  sim::WorkloadSource source;
  std::string cluster;
  std::string node_events;
  std::string placement{Name(PlacementMode::kCost)};
  std::string rate_limit = "30s";
  std::string start_cost = "39";
  std::string rescale_cost = "110";
  std::string migration_cost = "97";
  std::string min_runtime = "0";
  std::string cooldown = "0";
  std::string estimates = "learned";
  double estimate_error = 1;
  double reporting = 1;
  bool steps = false;
  std::string output = "table";
  std::string report;
  bool jobs = false;
  bool bound = false;
};

[[noreturn]] void Stop(const std::string& message, int code = kExitBadInput) {
  fmt::print(stderr, "voda simulate: {}\n", message);
  throw CLI::RuntimeError(code);
}

template <class T>
T Need(Result<T> result) {
  if (!result) Stop(result.error().message);
  return std::move(*result);
}

double NeedDuration(const std::string& flag, const std::string& text) {
  const auto seconds = ParseDuration(text);
  if (!seconds) Stop(fmt::format("{}: {}", flag, seconds.error().message));
  return *seconds;
}

struct NamedPolicy {
  std::string name;
  std::unique_ptr<Policy> policy;
};

std::vector<std::string> AlgorithmNames(const std::string& text) {
  std::vector<std::string> names;
  if (text == "all") {
    for (const PolicyInfo& info : Policies()) names.emplace_back(info.name);
    return names;
  }
  for (const std::string_view name : Split(text, ',')) names.emplace_back(name);
  return names;
}

// With several algorithms, an option goes to those that have it; an option that none has is an error.
std::vector<NamedPolicy> MakePolicies(const PolicyArgs& args) {
  const PolicyOptions options = Need(ParsePolicyOptions(args.options));
  const std::vector<std::string> names = AlgorithmNames(args.algorithm);
  const auto has = [](const std::string& name, const std::string& option) {
    for (const PolicyInfo& info : Policies()) {
      if (info.name != name) continue;
      return std::any_of(info.options.begin(), info.options.end(),
                         [&](const OptionInfo& o) { return o.name == option; });
    }
    return true;  // exec: or an unknown name, which MakeNamedPolicy refuses
  };
  for (const auto& entry : options) {
    const std::string& option = entry.first;
    if (std::none_of(names.begin(), names.end(),
                     [&](const std::string& name) { return has(name, option); })) {
      Stop(fmt::format("no algorithm of {} has the option \"{}\"; `voda algorithms` lists them",
                       args.algorithm, option));
    }
  }
  std::vector<NamedPolicy> policies;
  for (const std::string& name : names) {
    PolicyOptions own;
    for (const auto& [option, value] : options) {
      if (has(name, option)) own.emplace(option, value);
    }
    policies.push_back({name, Need(MakeNamedPolicy(name, own))});
  }
  return policies;
}

sim::SimulationConfig MakeConfig(const SimulateArgs& args) {
  sim::SimulationConfig config;
  config.nodes = Need(sim::ParseCluster(args.cluster));
  if (!args.node_events.empty()) config.node_changes = Need(sim::ReadNodeChanges(args.node_events));
  const auto mode = ParsePlacementMode(args.placement);
  if (!mode) Stop(fmt::format("unknown placement \"{}\"; known are stable, cost, repack", args.placement));
  const auto estimates = sim::ParseEstimateMode(args.estimates);
  if (!estimates)
    Stop(fmt::format("unknown estimates \"{}\"; known are oracle, linear, learned, none", args.estimates));
  config.core.placement = *mode;
  config.core.rate_limit = NeedDuration("--rate-limit", args.rate_limit);
  config.core.min_runtime = NeedDuration("--min-runtime", args.min_runtime);
  config.core.cooldown = NeedDuration("--cooldown", args.cooldown);
  config.costs.start = NeedDuration("--start-cost", args.start_cost);
  config.costs.rescale = NeedDuration("--rescale-cost", args.rescale_cost);
  config.costs.migration = NeedDuration("--migration-cost", args.migration_cost);
  config.estimates = *estimates;
  if (!(args.estimate_error >= 1 && args.estimate_error <= 1000)) {
    Stop(fmt::format("--estimate-error: {} is not a factor from 1 to 1000", args.estimate_error));
  }
  config.estimate_error = args.estimate_error;
  if (!(args.reporting >= 0 && args.reporting <= 1)) {
    Stop(fmt::format("--reporting: {} is not a share from 0 to 1", args.reporting));
  }
  if (*estimates != sim::EstimateMode::kLearned && (args.reporting < 1 || args.steps)) {
    Stop(fmt::format("--reporting and --steps go with --estimates learned, not with {}", args.estimates));
  }
  if (*estimates == sim::EstimateMode::kNone && args.estimate_error > 1)
    Stop("--estimate-error: with --estimates none nobody tells remaining times, not even wrong ones");
  config.reporting = args.reporting;
  config.report_steps = args.steps;
  config.error_seed = args.source.seed;
  config.keep_history = !args.report.empty();
  return config;
}

std::string Description(const SimulateArgs& args, std::size_t jobs) {
  return fmt::format(
      "{} jobs of {} on {} (nodes x GPUs), {} placement, {} estimates{}, rate limit {}, seed {}; a start "
      "costs "
      "{} s, a rescale {} s, a migration {} s",
      jobs, args.source.path, args.cluster, args.placement, args.estimates,
      args.reporting < 1 ? fmt::format(" from {:.0f} % of the jobs", 100 * args.reporting) : "",
      args.rate_limit, args.source.seed, args.start_cost, args.rescale_cost, args.migration_cost);
}

void WriteReport(const SimulateArgs& args, std::vector<sim::RunResult> runs,
                 const std::optional<sim::LowerBound>& bound) {
  const std::string html =
      sim::RenderReport({.title = "Voda simulation: " + args.source.path,
                         .description = Description(args, runs.empty() ? 0 : runs[0].jobs.size()),
                         .runs = std::move(runs),
                         .bound = bound});
  std::FILE* file = std::fopen(args.report.c_str(), "wb");
  const bool written = file != nullptr && std::fwrite(html.data(), 1, html.size(), file) == html.size();
  if ((file != nullptr && std::fclose(file) != 0) || !written) {
    Stop(fmt::format("--report {}: cannot be written; give a file in a folder that exists", args.report),
         kExitError);
  }
  fmt::print(stderr, "report: {}\n", args.report);
}

// If all algorithms are run, the recommendation also tries other prices of Price.
std::string Recommendation(const std::vector<sim::RunResult>& runs, const SimulateArgs& args,
                           const sim::SimulationConfig& config, const sim::Workload& workload) {
  std::vector<sim::RunResult> candidates = runs;
  if (args.policy.algorithm == "all") {
    for (const std::string c : {"0.8", "1", "1.5", "3", "5"}) {
      candidates.push_back(
          sim::Simulate(workload, config, "Price with c=" + c, Need(MakePolicy("Price", {{"c", c}}))));
    }
  }
  return Recommend(candidates);
}

std::string AsText(const SimulateArgs& args, const std::vector<sim::RunResult>& runs,
                   const std::optional<sim::LowerBound>& bound, const sim::SimulationConfig& config,
                   const sim::Workload& workload) {
  std::string text = RunsAsTable(runs);
  if (args.jobs) text += "\n" + RunsAsCsv(runs, true);
  if (bound) text += "\n" + BoundAsText(runs, *bound);
  const std::string recommendation = Recommendation(runs, args, config, workload);
  if (!recommendation.empty()) text += "\n" + recommendation;
  return text;
}

void RunSimulate(const SimulateArgs& args) {
  if (args.output != "table" && args.output != "json" && args.output != "csv") {
    Stop(fmt::format("unknown output \"{}\"; known are table, json, csv", args.output));
  }
  std::vector<NamedPolicy> policies = MakePolicies(args.policy);
  const sim::SimulationConfig base = MakeConfig(args);
  std::vector<std::string> notes;
  const sim::Workload workload = Need(sim::LoadWorkload(args.source, &notes));

  std::vector<sim::RunResult> runs;
  {
    ProgressBar bar;
    for (NamedPolicy& named : policies) {
      sim::SimulationConfig config = base;
      config.on_progress = [&](int completed, int total) {
        const double share = total == 0 ? 1 : static_cast<double>(completed) / total;
        bar.Show(named.name,
                 (static_cast<double>(runs.size()) + share) / static_cast<double>(policies.size()));
      };
      std::string last_note;
      config.on_round = [&](const Scheduler&, const Plan& plan, double) {
        if (!plan.allocation.note.empty()) last_note = plan.allocation.note;
      };
      runs.push_back(sim::Simulate(workload, config, named.name, std::move(named.policy)));
      if (!last_note.empty()) notes.push_back(fmt::format("{}: {}", named.name, last_note));
    }
  }
  for (const std::string& note : notes) fmt::print(stderr, "voda simulate: note: {}\n", note);
  for (const sim::RunResult& run : runs) {
    const auto left = static_cast<int>(run.jobs.size()) - run.completed;
    if (left > 0) {
      fmt::print(
          stderr,
          "voda simulate: note: {}: {} of {} jobs never completed: they never got a size they may run at\n",
          run.algorithm, left, run.jobs.size());
    }
  }
  std::optional<sim::LowerBound> bound;
  if (args.bound) {
    bound = sim::ComputeLowerBound(workload, sim::MostGpus(base.nodes, base.node_changes), base.costs);
  }
  const std::string text = args.output == "json"  ? RunsAsJson(runs, args.jobs, bound)
                           : args.output == "csv" ? RunsAsCsv(runs, args.jobs)
                                                  : AsText(args, runs, bound, base, workload);
  const Status written = WriteOutput(text);
  if (!written) Stop(written.error().message, kExitError);
  if (!args.report.empty()) WriteReport(args, std::move(runs), bound);
}

}  // namespace

void AddSimulate(CLI::App& app) {
  auto* command = app.add_subcommand("simulate", "run a workload through the scheduler on a virtual clock");
  const auto args = std::make_shared<SimulateArgs>();
  const auto flag = [&](const std::string& name, std::string& value, const std::string& help,
                        const std::string& type) {
    return command->add_option(name, value, help)->capture_default_str()->type_name(type);
  };
  flag("--cluster", args->cluster, "nodes x GPUs, such as 3x4 or 2x8,1x4", "SPEC")->required();
  flag("--workload", args->source.path, "a file, or gen:poisson?… or gen:bursts?… (docs/WORKLOADS.md)",
       "FILE")
      ->required();
  flag("--format", args->source.format, "what the file is written in", "voda|thesis|philly|itp|pollux");
  flag("--curve", args->source.curve, "speed-ups of jobs that bring none: linear, power:0.8, 1:1;2:1.9;4:3.5",
       "CURVE");
  flag("--profiles", args->source.profiles, "table of measured speed-ups that a workload names", "FILE");
  AddPolicyFlags(*command, args->policy, "one, several as A,B, or all; see `voda algorithms`");
  flag("--placement", args->placement,
       "stable (move no worker without need), cost (move where it pays) or repack (pack anew)",
       "stable|cost|repack");
  flag("--rate-limit", args->rate_limit, "least time between two rounds", "DURATION");
  flag("--start-cost", args->start_cost, "seconds without progress when a job starts", "DURATION");
  flag("--rescale-cost", args->rescale_cost, "… when its size changes", "DURATION");
  flag("--migration-cost", args->migration_cost, "… when a worker changes its node", "DURATION");
  flag("--min-runtime", args->min_runtime, "how long a running job is not shrunk or stopped", "DURATION");
  flag("--cooldown", args->cooldown, "least time between two changes of a job's size", "DURATION");
  flag("--estimates", args->estimates,
       "what policies see of speed-ups and remaining time; none: no job ever reports",
       "oracle|linear|learned|none");
  command
      ->add_option("--reporting", args->reporting,
                   "the share of the jobs that report, chosen by the seed; with learned estimates")
      ->capture_default_str()
      ->type_name("SHARE");
  command->add_flag("--steps", args->steps,
                    "reports tell how much of an epoch is done, too; with learned estimates");
  command
      ->add_option("--estimate-error", args->estimate_error,
                   "above 1, remaining times come from users who are wrong by up to this factor")
      ->capture_default_str()
      ->type_name("FACTOR");
  flag("--node-events", args->node_events, "nodes that come, go or change: CSV time_s,node,change", "FILE");
  command
      ->add_option("--seed", args->source.seed,
                   "seed of a generated workload, of --estimate-error and of --reporting")
      ->capture_default_str()
      ->type_name("N");
  flag("-o,--output", args->output, "how to print the runs", "table|json|csv");
  command->add_flag("--jobs", args->jobs, "a row per job too");
  command->add_flag("--bound", args->bound, "how far each run is above what no schedule can beat");
  flag("--report", args->report, "write a self-contained HTML report", "FILE.html");
  command->footer(kFooter);
  command->callback([args] { RunSimulate(*args); });
}

}  // namespace voda
