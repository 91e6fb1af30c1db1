// Ours against the logs of the reference's own runs on 12 real GPUs (data/voda-thesis), and how well start
// times are forecast by running the core forward. Reads VODA_DATA, by default ../shared/data beside the
// checkout.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "bench_data.h"
#include "policy/registry.h"
#include "sim/cluster_spec.h"
#include "sim/csv.h"
#include "sim/load_workload.h"
#include "sim/simulation.h"
#include "sim/statistics.h"

namespace voda::sim {
namespace {

struct Logged {
  double makespan;
  double avg_jct;
};

std::map<std::pair<std::string, std::string>, Logged> ReadLogged(const std::string& path) {
  enum Column { kWorkload, kAlgorithm, kMakespan, kJct };
  CsvReader reader =
      Must(CsvReader::Open(path, {.columns = {{"workload"}, {"algorithm"}, {"makespan_s"}, {"avg_jct_s"}},
                                  .allow_unknown = true}));
  std::map<std::pair<std::string, std::string>, Logged> logged;
  while (reader.Next()) {
    logged[{std::string(reader.Text(kWorkload)), std::string(reader.Text(kAlgorithm))}] = {
        reader.Number(kMakespan, 0, 1e9), reader.Number(kJct, 0, 1e9)};
  }
  return logged;
}

SimulationConfig ThesisConfig() {
  SimulationConfig config;
  config.nodes = Must(ParseCluster("3x4"));
  config.core.placement = PlacementMode::kRepack;
  config.core.rate_limit = 120;
  config.costs = {.start = 39.1, .rescale = 110.3, .migration = 97.1};
  config.estimates = EstimateMode::kOracle;
  return config;
}

void Fidelity(const std::string& data) {
  const auto logged = ReadLogged(data + "/voda-thesis/results.csv");
  fmt::print(
      "Fidelity: 24 jobs on 3x4, the experiment's costs and constants, repack, true estimates (seconds)\n");
  fmt::print("{:<11} {:<16} {:>9} {:>7} {:>7}   {:>8} {:>7} {:>7}\n", "workload", "algorithm", "makespan",
             "logged", "diff", "avg JCT", "logged", "diff");
  for (const std::string workload_name : {"run_1", "run_1_hard"}) {
    const Workload workload = Must(LoadWorkload(
        {.path = fmt::format("{}/voda-thesis/workload_{}.csv", data, workload_name), .format = "thesis"}));
    for (const std::string algorithm : {"ElasticFIFO", "ElasticTiresias", "FfDLOptimizer", "AFS-L"}) {
      PolicyOptions options;
      if (algorithm == "ElasticTiresias")
        options = {{"threshold", "1800"}, {"knob", "4"}, {"compaction", "4"}};
      const RunResult run =
          Simulate(workload, ThesisConfig(), algorithm, Must(MakePolicy(algorithm, options)));
      const Logged& log = logged.at({workload_name, algorithm});
      fmt::print("{:<11} {:<16} {:>9.0f} {:>7.0f} {:>6.1f}%   {:>8.0f} {:>7.0f} {:>6.1f}%\n", workload_name,
                 algorithm, run.makespan_s, log.makespan, 100 * (run.makespan_s / log.makespan - 1),
                 run.avg_jct_s, log.avg_jct, 100 * (run.avg_jct_s / log.avg_jct - 1));
    }
  }
}

// Forecast at the first round that knows a job, against when it then really started.
void Forecasts(const std::string& title, const Workload& workload, const std::string& cluster,
               EstimateMode estimates, const std::string& algorithm) {
  SimulationConfig config;
  config.nodes = Must(ParseCluster(cluster));
  config.estimates = estimates;
  std::map<std::string, std::pair<double, double>> predicted;  // job -> when asked, forecast start
  const auto waits = [](const State& state, JobIndex i) {
    return state.active[i].desired.empty() && state.active[i].observed.empty() &&
           !state.world.jobs[i].first_start;
  };
  config.on_round = [&](const Scheduler& scheduler, const Plan&, double now) {
    // The plan is decided but not carried out: what starts at this very instant is no forecast.
    const State& state = scheduler.state();
    bool fresh = false;
    for (const JobIndex i : state.active.indices()) {
      fresh = fresh || (waits(state, i) && !predicted.contains(state.world.jobs[i].name));
    }
    if (!fresh) return;
    const auto starts = ForecastStarts(View(state, now), *scheduler.policy());
    for (const JobIndex i : starts.indices()) {
      if (!starts[i] || !waits(state, i)) continue;
      predicted.emplace(state.world.jobs[i].name, std::pair(now, *starts[i]));
    }
  };
  const RunResult run = Simulate(workload, config, algorithm, Must(MakePolicy(algorithm)));
  std::vector<double> errors;
  double wait = 0;
  double bias = 0;
  for (const JobResult& job : run.jobs) {
    const auto made = predicted.find(job.name);
    if (made == predicted.end() || !job.first_start) continue;
    errors.push_back(std::abs(*job.first_start - made->second.second));
    wait += *job.first_start - made->second.first;
    bias += *job.first_start - made->second.second;
  }
  const auto count = static_cast<double>(errors.size());
  double sum = 0;
  for (const double error : errors) sum += error;
  if (errors.empty()) {
    fmt::print("{:<22} {:<16} nobody had to wait\n", title, algorithm);
    return;
  }
  fmt::print("{:<22} {:<16} {:>5} {:>9.0f} {:>9.0f} {:>7.0f}% {:>9.0f} {:>9.0f} {:>9.0f}\n", title, algorithm,
             errors.size(), wait / count, sum / count, 100 * sum / wait, Percentile(errors, 50),
             Percentile(errors, 95), bias / count);
}

int Main() {
  const std::string data = DataFolder();
  if (!std::filesystem::exists(data + "/voda-thesis")) {
    fmt::print(
        "LEFT OUT: fidelity and forecasts need the thesis data; set VODA_DATA to the folder that holds "
        "voda-thesis\n");
    return 0;
  }
  Fidelity(data);
  fmt::print(
      "\nForecast of start times, made when a job was first seen waiting (seconds; bias > 0: it started "
      "later)\n");
  fmt::print("{:<22} {:<16} {:>5} {:>9} {:>9} {:>8} {:>9} {:>9} {:>9}\n", "workload", "algorithm", "jobs",
             "mean wait", "mean err", "of wait", "p50 err", "p95 err", "bias");
  for (const EstimateMode mode : {EstimateMode::kOracle, EstimateMode::kLearned}) {
    const std::string suffix = mode == EstimateMode::kOracle ? " oracle" : " learned";
    for (const std::string name : {"run_1", "run_1_hard"}) {
      const Workload workload = Must(LoadWorkload(
          {.path = fmt::format("{}/voda-thesis/workload_{}.csv", data, name), .format = "thesis"}));
      for (const std::string algorithm : {"FIFO", "ElasticFIFO", "AFS-L"})
        Forecasts(name + suffix, workload, "3x4", mode, algorithm);
    }
    const Workload bursty =
        Must(LoadWorkload({.path = std::string(VODA_SOURCE_DIR) + "/examples/workloads/bursty.csv"}));
    for (const std::string algorithm : {"FIFO", "ElasticFIFO", "AFS-L"}) {
      Forecasts("bursty" + suffix, bursty, "2x8", mode, algorithm);
    }
  }
  return 0;
}

}  // namespace
}  // namespace voda::sim

int main() {
  return voda::sim::Main();
}
