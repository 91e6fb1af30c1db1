// Simulation: the scheduler itself (src/core) on a virtual clock and a simulated cluster. Event-driven: idle
// time costs nothing. The same workload, configuration and policy give the same result to the last bit,
// decision times aside.
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

// What policies see of a job's speed-ups and remaining time.
enum class EstimateMode : std::uint8_t {
  kOracle,   // the truth
  kLinear,   // what is believed of a new category, for ever
  kLearned,  // what the collector has learned by then from finished epochs
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
  // Above 1: remaining times are told by the users, wrong by a factor of up to this, up or down, fixed for
  // each job by a hash of its name and the seed.
  double estimate_error = 1;
  std::uint64_t error_seed = 1;
  bool keep_history = false;
  bool check_invariants = false;  // after every step; for tests
  Store* store = nullptr;
  std::function<void(int completed, int total)> on_progress;
  std::function<void(const Scheduler& scheduler, const Plan& plan, double now)> on_round;
};

RunResult Simulate(const Workload& workload, const SimulationConfig& config, std::string algorithm,
                   std::unique_ptr<Policy> policy);

// When each waiting job of the state would start if the estimates were true and nothing else happened: the
// core run forward from here. In the order of state.world.jobs; absent for jobs that run already or would
// never start. `give_up` is asked now and then; once it says so, the starts found until then are returned.
std::vector<std::optional<double>> ForecastStarts(const State& state, const Policy& policy, double now,
                                                  const std::function<bool()>& give_up = {});

}  // namespace voda::sim
