#include "sim/simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "estimate/collector.h"
#include "sim/statistics.h"

namespace voda::sim {

std::optional<EstimateMode> ParseEstimateMode(std::string_view name) {
  if (name == "oracle") return EstimateMode::kOracle;
  if (name == "linear") return EstimateMode::kLinear;
  if (name == "learned") return EstimateMode::kLearned;
  return std::nullopt;
}

namespace {

// Feeds the scheduler what the estimate mode lets it know of the jobs.
class Estimates {
 public:
  Estimates(const Workload& workload, SimCluster& cluster, const SimulationConfig& config)
      : workload_(workload), cluster_(cluster), config_(config), epochs_known_(workload.jobs.size(), 0) {}

  // What is known of a job when it is submitted.
  void Describe(int index, Job& job) {
    const WorkloadJob& truth = truth_of(index);
    job.remaining_seconds = Remaining(index, truth.submit_time);
    job.total_seconds = job.remaining_seconds;
    if (config_.estimates == EstimateMode::kOracle) {
      job.curve = truth.curve;
      job.spans = truth.spans;
      return;
    }
    const Knowledge& known = KnowledgeOf(truth);
    job.curve = known.curve;
    job.measured = known.measured;
    job.spans = known.spans;
    job.start_cost = known.stalls.start;
    job.rescale_cost = known.stalls.rescale;
    job.migration_cost = known.stalls.migration;
    by_category_[truth.category].push_back(index);
  }

  // What has become known since, just before a round.
  MetricsUpdated News(double now) {
    MetricsUpdated news;
    std::vector<int> running = cluster_.running();
    std::sort(running.begin(), running.end());
    std::vector<std::string> changed;  // categories
    for (const int job : running) {
      const auto epochs = cluster_.TakeEpochs(job, now);
      const int done = cluster_.EpochsDone(job, now);
      if (config_.estimates == EstimateMode::kOracle ||
          done != epochs_known_[static_cast<std::size_t>(job)]) {
        epochs_known_[static_cast<std::size_t>(job)] = done;
        Tell(news, job, now, /*all=*/false);
      }
      if (config_.estimates != EstimateMode::kLearned) continue;
      const std::string& category = truth_of(job).category;
      for (int i = 0; i < std::min(epochs.count, 3); ++i) {  // in the simulation they are all alike
        if (collector_.Epoch(category, epochs.workers, epochs.nodes, epochs.seconds))
          changed.push_back(category);
      }
    }
    if (config_.estimates != EstimateMode::kLearned) return news;
    for (const SimCluster::ObservedStall& stall : cluster_.TakeStalls(now)) {
      const std::string& category = truth_of(stall.job).category;
      if (collector_.Stall(category, stall.kind, stall.seconds)) changed.push_back(category);
    }
    std::sort(changed.begin(), changed.end());
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (const std::string& category : changed) {
      known_.erase(category);
      auto& members = by_category_[category];
      std::erase_if(members, [&](int job) { return cluster_.result(job).end.has_value(); });
      for (const int job : members) Tell(news, job, now, /*all=*/true);
    }
    return news;
  }

 private:
  // All that the collector says of the jobs of a category with the same allowed sizes.
  struct Knowledge {
    CurvePtr curve;
    std::shared_ptr<const std::vector<int>> measured;
    std::shared_ptr<const SpanTable> spans;
    Stalls stalls;
  };

  const WorkloadJob& truth_of(int job) const { return workload_.jobs[static_cast<std::size_t>(job)]; }

  void Tell(MetricsUpdated& news, int job, double now, bool all) {
    MetricsUpdated::Entry entry;
    entry.job = truth_of(job).name;
    entry.remaining_seconds = Remaining(job, now);
    if (all) {
      const Knowledge& known = KnowledgeOf(truth_of(job));
      entry.curve = known.curve;
      entry.measured = known.measured;
      entry.spans = known.spans;
      entry.costs = {known.stalls.start, known.stalls.rescale, known.stalls.migration};
    }
    news.entries.push_back(std::move(entry));
  }

  // With an error, times come from the user, who is wrong by a fixed factor; else by the estimate mode.
  double Remaining(int job, double now) const {
    const WorkloadJob& truth = truth_of(job);
    if (config_.estimate_error > 1) return cluster_.RemainingWork(job, now) * ErrorOf(truth.name);
    if (config_.estimates == EstimateMode::kOracle) return cluster_.RemainingWork(job, now);
    const int left = truth.epochs - epochs_known_[static_cast<std::size_t>(job)];
    return left * collector_.EpochSeconds(truth.category);
  }

  double ErrorOf(const std::string& name) const {
    std::uint64_t hash = 0xcbf29ce484222325 ^ config_.error_seed;  // FNV-1a
    for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    return std::pow(config_.estimate_error, 2 * Random(hash).Uniform() - 1);
  }

  const Knowledge& KnowledgeOf(const WorkloadJob& truth) {
    Knowledge& known = known_[truth.category][truth.curve.get()];
    if (!known.curve) {
      known.curve = collector_.CurveFor(truth.category, *truth.curve);
      known.measured = collector_.MeasuredOf(truth.category);
      known.spans = collector_.SpansOf(truth.category);
      known.stalls = collector_.StallsOf(truth.category);
    }
    return known;
  }

  const Workload& workload_;
  SimCluster& cluster_;
  const SimulationConfig& config_;
  Collector collector_;
  std::vector<int> epochs_known_;
  std::map<std::string, std::vector<int>> by_category_;
  // Looked up by address, never iterated: the order of addresses cannot reach a decision.
  std::map<std::string, std::map<const Curve*, Knowledge>> known_;
};

Job Submission(const WorkloadJob& truth, const ChangeCosts& costs) {
  Job job;
  job.name = truth.name;
  job.submit_time = truth.submit_time;
  job.min = truth.min;
  job.num = truth.num;
  job.max = truth.max;
  job.gpus_per_worker = truth.gpus_per_worker;
  job.priority = truth.priority;
  job.preemptible = truth.preemptible;
  job.start_cost = truth.start_cost.value_or(costs.start);
  job.rescale_cost = truth.rescale_cost.value_or(costs.rescale);
  job.migration_cost = truth.migration_cost.value_or(costs.migration);
  return job;
}

// A job that is there already when the simulation starts.
struct Resident {
  int job = 0;
  Job view;
  std::string category;
};

class Simulation {
 public:
  Simulation(const Workload& workload, const SimulationConfig& config, std::unique_ptr<Policy> policy)
      : workload_(workload),
        config_(config),
        cluster_(workload, config.costs, config.keep_history),
        scheduler_(config.core, std::move(policy), cluster_, config.store),
        estimates_(workload, cluster_, config) {}

  void AddNodes(double now) {
    for (const Node& node : config_.nodes) scheduler_.Handle(NodeAdded{node}, now);
  }

  void AddResident(const Resident& resident, double now) {
    std::vector<std::string> names;
    for (const NodeIndex at : resident.view.workers) {
      names.push_back(at == kNoNode ? std::string() : scheduler_.state().world.node(at).name);
    }
    scheduler_.Handle(JobArrived{resident.view, resident.category, names}, now);
    if (!names.empty()) cluster_.Seat(resident.job, names, now);
  }

  // Until nothing can happen any more, or `stop` says so after a step.
  void Run(const std::function<bool()>& stop = {}) {
    while (true) {
      const double next = NextTime();
      if (next == kNever) return;
      Integrate(next);
      now_ = next;
      Deliver();
      Settle();
      if (config_.check_invariants) CheckInvariants(scheduler_.state());
      if (config_.on_progress) config_.on_progress(completed_, static_cast<int>(workload_.jobs.size()));
      if (stop && stop()) return;
    }
  }

  RunResult Result(std::string algorithm) {
    RunResult result;
    result.algorithm = std::move(algorithm);
    result.rounds = static_cast<int>(scheduler_.state().rounds);
    result.usage = std::move(usage_);
    result.jobs = std::move(cluster_.results());
    result.gpu_utilization = at_last_end_.capacity > 0 ? at_last_end_.used / at_last_end_.capacity : 0;
    Summarize(result, std::move(decision_ms_));
    return result;
  }

  SimCluster& cluster() { return cluster_; }
  void StartAt(double now) {
    now_ = now;
    next_arrival_ = workload_.jobs.size();
  }

 private:
  double NextTime() {
    double next = cluster_.NextCompletion();
    if (next_arrival_ < workload_.jobs.size())
      next = std::min(next, workload_.jobs[next_arrival_].submit_time);
    if (next_node_ < config_.node_changes.size())
      next = std::min(next, config_.node_changes[next_node_].time);
    // Where nothing runs and nothing will come, waiting changes nothing: whatever fitted has been started.
    const bool dead = next == kNever && cluster_.running().empty() && !scheduler_.state().dirty;
    if (dead) return kNever;
    next = std::min(next, scheduler_.NextWake(now_));
    return next == kNever ? kNever : std::max(next, now_);
  }

  void Integrate(double until) {
    const double passed = until - now_;
    if (passed <= 0 || !started_) return;
    so_far_.used += passed * cluster_.gpus_used();
    so_far_.capacity += passed * capacity_;
  }

  void Deliver() {
    for (const int job : cluster_.Complete(now_)) {
      ++completed_;
      at_last_end_ = so_far_;
      scheduler_.Handle(JobCompleted{workload_.jobs[static_cast<std::size_t>(job)].name}, now_);
    }
    for (; next_node_ < config_.node_changes.size() && config_.node_changes[next_node_].time <= now_;
         ++next_node_) {
      ChangeNode(config_.node_changes[next_node_].event);
    }
    for (; next_arrival_ < workload_.jobs.size() && workload_.jobs[next_arrival_].submit_time <= now_;
         ++next_arrival_) {
      const WorkloadJob& truth = workload_.jobs[next_arrival_];
      Job job = Submission(truth, config_.costs);
      estimates_.Describe(static_cast<int>(next_arrival_), job);
      cluster_.Submitted(static_cast<int>(next_arrival_));
      scheduler_.Handle(JobArrived{std::move(job), truth.category, {}}, now_);
      started_ = true;
    }
  }

  void ChangeNode(const Event& event) {
    const auto lost = [&](std::size_t n) {
      return scheduler_.state().world.nodes[n].state == NodeState::kLost;
    };
    std::vector<bool> before;
    for (std::size_t n = 0; n < scheduler_.state().world.nodes.size(); ++n) before.push_back(lost(n));
    scheduler_.Handle(event, now_);
    for (std::size_t n = 0; n < before.size(); ++n) {
      const std::string node = scheduler_.state().world.nodes[n].name;
      if (!before[n] && lost(n)) cluster_.NodeLost(node, now_);
      if (!before[n] || lost(n)) continue;
      for (const auto& [job, nodes] : cluster_.NodeBack(node)) {
        scheduler_.Handle(WorkersObserved{workload_.jobs[static_cast<std::size_t>(job)].name, nodes}, now_);
      }
    }
  }

  // Rounds and actions at this instant until nothing is left to do.
  void Settle() {
    while (true) {
      if (RoundDue(scheduler_.state(), now_)) {
        MetricsUpdated news = estimates_.News(now_);
        if (!news.entries.empty()) scheduler_.Handle(std::move(news), now_);
      }
      const auto begin = std::chrono::steady_clock::now();
      const std::optional<Plan> plan = scheduler_.Advance(now_);
      if (plan) {
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        decision_ms_.push_back(static_cast<float>(took.count()));
        if (config_.on_round) config_.on_round(scheduler_, *plan, now_);
      }
      const std::vector<ActionId> done = cluster_.Apply(now_);
      for (const ActionId id : done) scheduler_.Handle(ActionDone{id}, now_);
      if (!plan && done.empty()) break;
    }
    capacity_ = 0;
    for (const Node& node : scheduler_.state().world.nodes) {
      if (node.state != NodeState::kLost) capacity_ += node.gpus;
    }
    if (config_.keep_history) RecordUsage();
  }

  void RecordUsage() {
    const UsagePoint point{now_, capacity_, cluster_.gpus_used()};
    if (!usage_.empty() && usage_.back().from == now_) {
      usage_.back() = point;
    } else if (usage_.empty() || usage_.back().used != point.used ||
               usage_.back().capacity != point.capacity) {
      usage_.push_back(point);
    }
  }

  const Workload& workload_;
  const SimulationConfig& config_;
  SimCluster cluster_;
  Scheduler scheduler_;
  Estimates estimates_;

  double now_ = -kNever;
  std::size_t next_arrival_ = 0;
  std::size_t next_node_ = 0;
  bool started_ = false;
  int completed_ = 0;
  int capacity_ = 0;
  struct GpuSeconds {
    double used = 0;
    double capacity = 0;
  };
  GpuSeconds so_far_;
  GpuSeconds at_last_end_;  // rounds and node changes after the last job ended do not count
  std::vector<UsagePoint> usage_;
  std::vector<float> decision_ms_;
};

// A policy that belongs to somebody else.
class Borrowed final : public Policy {
 public:
  explicit Borrowed(const Policy& policy) : policy_(policy) {}
  Allocation Allocate(const Snapshot& snapshot) const override { return policy_.Allocate(snapshot); }

 private:
  const Policy& policy_;
};

}  // namespace

RunResult Simulate(const Workload& workload, const SimulationConfig& config, std::string algorithm,
                   std::unique_ptr<Policy> policy) {
  Simulation simulation(workload, config, std::move(policy));
  const double first = workload.jobs.empty() ? 0 : workload.jobs.front().submit_time;
  simulation.AddNodes(config.node_changes.empty() ? first
                                                  : std::min(first, config.node_changes.front().time));
  simulation.Run();
  return simulation.Result(std::move(algorithm));
}

std::vector<std::optional<double>> ForecastStarts(const State& state, const Policy& policy, double now,
                                                  const std::function<bool()>& give_up) {
  // The believed world becomes the true one.
  Workload believed;
  std::vector<Resident> residents;
  int waiting = 0;
  for (std::size_t i = 0; i < state.world.jobs.size(); ++i) {
    const Job& job = state.world.jobs[i];
    WorkloadJob truth;
    truth.name = job.name;
    truth.category = state.active[i].category;
    truth.submit_time = job.submit_time;
    truth.min = job.min;
    truth.num = job.num;
    truth.max = job.max;
    truth.gpus_per_worker = job.gpus_per_worker;
    truth.curve = job.curve;
    truth.spans = job.spans;
    truth.work_seconds = std::max(job.remaining_seconds, 1e-3);
    truth.start_cost = job.start_cost;
    truth.rescale_cost = job.rescale_cost;
    truth.migration_cost = job.migration_cost;
    believed.jobs.push_back(std::move(truth));
    residents.push_back({static_cast<int>(i), job, state.active[i].category});
    if (job.workers.empty() && job.aside == Aside::kNo) ++waiting;
  }

  SimulationConfig config;
  config.nodes = state.world.nodes;
  config.core = state.config;
  config.estimates = EstimateMode::kOracle;
  Simulation forward(believed, config, std::make_unique<Borrowed>(policy));
  forward.StartAt(now);
  forward.AddNodes(now);
  for (const Resident& resident : residents) forward.AddResident(resident, now);

  int started = 0;
  std::vector<std::optional<double>> starts(state.world.jobs.size());
  if (waiting > 0) {
    forward.Run([&] {
      for (std::size_t i = 0; i < starts.size(); ++i) {
        if (starts[i] || !state.world.jobs[i].workers.empty() || state.world.jobs[i].aside != Aside::kNo)
          continue;
        starts[i] = forward.cluster().result(static_cast<int>(i)).first_start;
        if (starts[i]) ++started;
      }
      return started == waiting || (give_up && give_up());
    });
  }
  return starts;
}

}  // namespace voda::sim
