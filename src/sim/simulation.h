// Simulation: the scheduler itself (src/core) on a virtual clock and a simulated cluster. It is
// event-driven, so idle time costs nothing. The same workload, configuration and policy give the same
// result to the last bit, except for decision times.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scheduler.h"
#include "sim/result.h"
#include "sim/sim_cluster.h"
#include "sim/workload.h"

namespace voda::sim {

// What policies know of a job's speed-ups and remaining time.
enum class EstimateMode : std::uint8_t {
  kOracle,   // the truth
  kLinear,   // for ever what is assumed of a new category
  kLearned,  // what the collector has learned from the jobs' reports so far
  kNone,     // nothing: no job ever reports
};

std::optional<EstimateMode> ParseEstimateMode(std::string_view name);

struct NodeChange {
  double time = 0;
  Event event;  // NodeAdded, NodeRemoved or NodeChanged
};

struct SimulationConfig {
  std::vector<Node> nodes;
  std::vector<NodeChange> node_changes;  // sorted by time
  CoreConfig core;
  ChangeCosts costs;
  EstimateMode estimates = EstimateMode::kLearned;
  // Above 1, remaining times come from the users, who are wrong by a factor of up to this, up or down; a
  // hash of the job's name and the seed fixes the factor.
  double estimate_error = 1;
  std::uint64_t error_seed = 1;
  // Under kLearned, the share of the jobs that report; a hash of the job's name and the seed says which.
  double reporting = 1;
  bool report_steps = false;  // reports tell how much of the epoch under way is done, not only whole epochs
  bool keep_history = false;
  bool check_invariants = false;  // after every step; for tests
  std::function<void(int completed, int total)> on_progress;
  std::function<void(const Scheduler& scheduler, const Plan& plan, double now)> on_round;
};

RunResult Simulate(const Workload& workload, const SimulationConfig& config, std::string algorithm,
                   std::unique_ptr<Policy> policy);

// When each waiting job of the view would start if the estimates were true and nothing else happened: the
// core runs forward from the view. Jobs that run already or would never start get no time. `give_up` is
// asked now and then; once it returns true, the starts found so far are returned.
PerJob<std::optional<double>> ForecastStarts(const View& view, const Policy& policy,
                                             const std::function<bool()>& give_up = {});

}  // namespace voda::sim
