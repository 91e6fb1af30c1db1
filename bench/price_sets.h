// The workloads and clusters on which Price is measured: the thesis' jobs as they came and reshuffled,
// Pollux' workloads, and synthetic loads of Pollux' jobs.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "bench_data.h"
#include "sim/cluster_spec.h"
#include "sim/load_workload.h"
#include "sim/simulation.h"

namespace voda::sim {

inline constexpr int kThesisSeeds = 24;
inline constexpr int kPolluxWorkloads = 8;
inline constexpr int kPolluxGpus = 64;
inline constexpr int kSyntheticSeeds = 4;
inline constexpr int kSyntheticJobs = 320;
inline constexpr double kPolluxInterval = 8 * 3600 / 160.0;  // 160 jobs in eight hours

// The same jobs in random order at the given times (ascending).
inline Workload Reshuffled(const Workload& base, const std::vector<double>& times, Random& random) {
  Workload shuffled = base;
  auto& jobs = shuffled.jobs;
  for (int i = static_cast<int>(jobs.size()); i > 1; --i) {
    std::swap(jobs[JobNumber(i - 1)], jobs[JobNumber(random.Below(i))]);
  }
  for (const JobNumber i : jobs.indices()) {
    const int number = static_cast<int>(i);
    jobs[i].submit_time = times[number];
    jobs[i].name = fmt::format("{}-{:04}", jobs[i].category, number);
  }
  return shuffled;
}

inline std::vector<double> PoissonTimes(std::size_t count, double interval, Random& random) {
  std::vector<double> times;
  double now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    times.push_back(now);
    now += interval * random.Exponential();
  }
  return times;
}

// The pattern of run_1_hard: five windows of very different density.
inline std::vector<double> BurstTimes(Random& random) {
  struct Window {
    int jobs;
    double from;
    double to;
  };
  constexpr std::array<Window, 5> kWindows{
      {{6, 0, 180}, {3, 180, 1500}, {8, 1500, 1740}, {2, 1740, 2700}, {5, 3000, 3300}}};
  std::vector<double> times;
  for (const Window& window : kWindows) {
    for (int i = 0; i < window.jobs; ++i)
      times.push_back(window.from + (window.to - window.from) * random.Uniform());
  }
  std::sort(times.begin(), times.end());
  return times;
}

inline std::vector<Workload> ThesisSeeds(const Workload& base, bool bursts) {
  std::vector<Workload> workloads;
  for (int seed = 1; seed <= kThesisSeeds; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const auto times = bursts ? BurstTimes(random) : PoissonTimes(base.jobs.size(), 30, random);
    workloads.push_back(Reshuffled(base, times, random));
  }
  return workloads;
}

// Poisson arrivals of jobs drawn from all of Pollux' workloads.
inline std::vector<Workload> Synthetic(const std::vector<Workload>& pollux, double load) {
  std::vector<const WorkloadJob*> mix;
  for (const Workload& workload : pollux) {
    for (const WorkloadJob& job : workload.jobs) mix.push_back(&job);
  }
  std::vector<Workload> workloads;
  for (int seed = 1; seed <= kSyntheticSeeds; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    Workload& workload = workloads.emplace_back();
    const auto times = PoissonTimes(kSyntheticJobs, kPolluxInterval / load, random);
    for (std::size_t i = 0; i < times.size(); ++i) {
      WorkloadJob job = *mix[static_cast<std::size_t>(random.Below(static_cast<int>(mix.size())))];
      job.submit_time = times[i];
      job.name = fmt::format("{}-{:04}", job.category, i);
      workload.jobs.push_back(std::move(job));
    }
  }
  return workloads;
}

// A run of the thesis: run_1 or run_1_hard.
inline Workload ThesisRun(const std::string& name) {
  return Must(
      LoadWorkload({.path = DataFolder() + "/voda-thesis/workload_" + name + ".csv", .format = "thesis"}));
}

inline std::vector<Workload> PolluxSet(const std::string& file, const std::string& set) {
  std::vector<Workload> workloads;
  for (int number = 1; number <= kPolluxWorkloads; ++number) {
    workloads.push_back(
        Must(LoadWorkload({.path = fmt::format("{}/pollux/{}.csv#{}/{}", DataFolder(), file, set, number),
                           .format = "pollux"})));
  }
  return workloads;
}

// A cluster, with true estimates and placement `cost`.
inline SimulationConfig ConfigOf(const std::string& cluster, const ChangeCosts& costs) {
  SimulationConfig config;
  config.nodes = Must(ParseCluster(cluster));
  config.core.placement = PlacementMode::kCost;
  config.core.rate_limit = 30;
  config.costs = costs;
  config.estimates = EstimateMode::kOracle;
  return config;
}

inline SimulationConfig ThesisConfig() {
  return ConfigOf("3x4", {.start = 39.1, .rescale = 110.3, .migration = 97.1});
}

inline SimulationConfig PolluxConfig() {
  return ConfigOf("16x4", {.start = 30, .rescale = 30, .migration = 30});
}

}  // namespace voda::sim
