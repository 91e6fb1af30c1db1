#include "sim/simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "estimate/collector.h"
#include "model/guess.h"
#include "sim/statistics.h"

namespace voda::sim {

std::optional<EstimateMode> ParseEstimateMode(std::string_view name) {
  if (name == "oracle") return EstimateMode::kOracle;
  if (name == "linear") return EstimateMode::kLinear;
  if (name == "learned") return EstimateMode::kLearned;
  if (name == "none") return EstimateMode::kNone;
  return std::nullopt;
}

namespace {

// A share of what jobs are, from 0 to 1, that depends on a job's name and the seed alone.
double ShareOf(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;  // FNV-1a
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return Random(hash).Uniform();
}

// Tells the scheduler what the estimate mode lets it know about the jobs.
class Estimates {
 public:
  Estimates(const Workload& workload, SimCluster& cluster, const SimulationConfig& config)
      : workload_(workload), cluster_(cluster), config_(config), known_epochs_(workload.jobs.size(), 0) {}

  // Fills in what is known of a job when it is submitted.
  void Describe(JobNumber index, Job& job) {
    const WorkloadJob& truth = truth_of(index);
    job.remaining_seconds = Remaining(index, truth.submit_time);
    job.total_seconds = job.remaining_seconds;
    if (config_.estimates == EstimateMode::kOracle) {
      job.curve = truth.curve;
      job.spans = truth.spans;
      return;
    }
    const Knowledge& known = KnowledgeOf(index);
    job.curve = known.curve;
    job.measured = known.measured;
    job.spans = known.spans;
    job.start_cost = known.stalls.start;
    job.rescale_cost = known.stalls.rescale;
    job.migration_cost = known.stalls.migration;
    if (!Reports(index)) {
      job.guessed = true;
      job.finished = collector_.FinishedOf(truth.category);
      GuessAnew(job);
    }
    by_category_[truth.category].push_back(index);
  }

  void Ended(JobNumber index, const EndedJob& ended) {
    if (config_.estimates != EstimateMode::kLearned && config_.estimates != EstimateMode::kNone) return;
    const WorkloadJob& truth = truth_of(index);
    const double work =
        ended.guessed ? ended.work_done : truth.epochs * collector_.EpochSeconds(truth.category, truth.name);
    if (collector_.Finished(truth.category, work)) changed_.push_back(truth.category);
    collector_.Ended(truth.category, truth.name);
  }

  // Returns what has become known since the last round.
  MetricsUpdated News(double now) {
    MetricsUpdated news;
    std::vector<JobNumber> running = cluster_.running();
    std::sort(running.begin(), running.end());
    for (const JobNumber job : running) {
      if (!Reports(job)) continue;
      const double done = EpochsDone(job, now);
      if (config_.estimates == EstimateMode::kOracle || done != known_epochs_[job]) {
        known_epochs_[job] = done;
        Tell(news, job, now, /*all=*/false);
      }
      if (config_.estimates == EstimateMode::kLearned) LearnFrom(job, now);
    }
    LearnStalls(now);
    std::sort(changed_.begin(), changed_.end());
    changed_.erase(std::unique(changed_.begin(), changed_.end()), changed_.end());
    for (const std::string& category : std::exchange(changed_, {})) {
      known_.erase(category);
      auto& members = by_category_[category];
      std::erase_if(members, [&](JobNumber job) { return cluster_.result(job).end.has_value(); });
      for (const JobNumber job : members) Tell(news, job, now, /*all=*/true);
    }
    return news;
  }

 private:
  // Everything the collector says about jobs of one category with the same allowed sizes.
  struct Knowledge {
    CurvePtr curve;
    std::shared_ptr<const std::vector<int>> measured;
    std::shared_ptr<const SpanTable> spans;
    Stalls stalls;
  };

  const WorkloadJob& truth_of(JobNumber job) const { return workload_.jobs[job]; }

  bool Reports(JobNumber job) const {
    if (config_.estimates == EstimateMode::kNone) return false;
    if (config_.estimates != EstimateMode::kLearned || config_.reporting >= 1) return true;
    constexpr std::uint64_t kOtherThanErrors = 0x5e1f;
    return ShareOf(truth_of(job).name, config_.error_seed ^ kOtherThanErrors) < config_.reporting;
  }

  double EpochsDone(JobNumber job, double now) const {
    return config_.report_steps ? cluster_.Progress(job, now) : cluster_.EpochsDone(job, now);
  }

  void LearnFrom(JobNumber job, double now) {
    constexpr double kLeastPart = 0.01;
    const auto epochs =
        config_.report_steps ? cluster_.TakePart(job, now, kLeastPart) : cluster_.TakeEpochs(job, now);
    const std::string& category = truth_of(job).category;
    for (int i = 0; i < std::min(epochs.count, 3); ++i) {  // all epochs of a simulated job are alike
      if (collector_.Epoch(category, truth_of(job).name, epochs.workers, epochs.nodes, epochs.seconds))
        changed_.push_back(category);
    }
  }

  void LearnStalls(double now) {
    if (config_.estimates != EstimateMode::kLearned) return;
    for (const SimCluster::ObservedStall& stall : cluster_.TakeStalls(now)) {
      const std::string& category = truth_of(stall.job).category;
      if (Reports(stall.job) && collector_.Stall(category, stall.kind, stall.seconds))
        changed_.push_back(category);
    }
  }

  void Tell(MetricsUpdated& news, JobNumber job, double now, bool all) {
    MetricsUpdated::Entry entry;
    entry.job = truth_of(job).name;
    if (Reports(job)) {
      entry.remaining_seconds = Remaining(job, now);
      entry.total_seconds = Total(job);
    } else {
      entry.finished = collector_.FinishedOf(truth_of(job).category);
    }
    if (all) {
      const Knowledge& known = KnowledgeOf(job);
      entry.curve = known.curve;
      entry.measured = known.measured;
      entry.spans = known.spans;
      entry.costs = {known.stalls.start, known.stalls.rescale, known.stalls.migration};
    }
    news.entries.push_back(std::move(entry));
  }

  bool FromUsers() const { return config_.estimate_error > 1; }

  // With an estimate error, times come from the user, who is wrong by a fixed factor; else from the
  // estimate mode.
  double Remaining(JobNumber job, double now) const {
    const WorkloadJob& truth = truth_of(job);
    if (FromUsers()) return cluster_.RemainingWork(job, now) * ErrorOf(truth.name);
    if (config_.estimates == EstimateMode::kOracle) return cluster_.RemainingWork(job, now);
    return (truth.epochs - known_epochs_[job]) * collector_.EpochSeconds(truth.category, truth.name);
  }

  // The work of the whole job, as it is believed now; empty: as it was at first.
  std::optional<double> Total(JobNumber job) const {
    if (FromUsers() || config_.estimates == EstimateMode::kOracle) return std::nullopt;
    return truth_of(job).epochs * collector_.EpochSeconds(truth_of(job).category, truth_of(job).name);
  }

  double ErrorOf(const std::string& name) const {
    return std::pow(config_.estimate_error, 2 * ShareOf(name, config_.error_seed) - 1);
  }

  const Knowledge& KnowledgeOf(JobNumber job) {
    const WorkloadJob& truth = truth_of(job);
    const bool reports = Reports(job);
    Knowledge& known = known_[truth.category][{truth.curve.get(), reports}];
    if (!known.curve) {
      known.curve = reports ? collector_.CurveFor(truth.category, *truth.curve)
                            : collector_.GuessedCurveFor(truth.category, *truth.curve);
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
  PerWorkloadJob<double> known_epochs_;
  std::vector<std::string> changed_;  // categories, since the last round
  std::map<std::string, std::vector<JobNumber>> by_category_;
  // Only looked up by address, never iterated: the order of addresses cannot reach a decision.
  std::map<std::string, std::map<std::pair<const Curve*, bool>, Knowledge>> known_;
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

// A job that already runs or waits when the simulation starts.
struct Resident {
  JobNumber job;
  Job view;
  std::string category;
};

class Simulation {
 public:
  Simulation(const Workload& workload, const SimulationConfig& config, std::unique_ptr<Policy> policy)
      : workload_(workload),
        config_(config),
        cluster_(workload, config.costs, config.keep_history),
        scheduler_(config.core, std::move(policy), cluster_),
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

  // Runs until nothing can happen any more, or until `stop` says so after a step.
  void Run(const std::function<bool()>& stop = {}) {
    while (true) {
      const double next = NextTime();
      if (next == kNever) return;
      Integrate(next);
      now_ = next;
      Deliver();
      RunRounds();
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
    next_arrival_ = workload_.jobs.end_index();
  }

 private:
  double NextTime() {
    double next = cluster_.NextCompletion();
    if (next_arrival_ < workload_.jobs.end_index())
      next = std::min(next, workload_.jobs[next_arrival_].submit_time);
    if (next_node_ < config_.node_changes.size())
      next = std::min(next, config_.node_changes[next_node_].time);
    // If nothing runs and nothing will come, waiting changes nothing: every job that fits has been started.
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
    for (const JobNumber job : cluster_.Complete(now_)) {
      ++completed_;
      at_last_end_ = so_far_;
      for (const EndedJob& ended : scheduler_.Handle(JobCompleted{workload_.jobs[job].name}, now_)) {
        estimates_.Ended(job, ended);
      }
    }
    for (; next_node_ < config_.node_changes.size() && config_.node_changes[next_node_].time <= now_;
         ++next_node_) {
      ChangeNode(config_.node_changes[next_node_].event);
    }
    for (; next_arrival_ < workload_.jobs.end_index() && workload_.jobs[next_arrival_].submit_time <= now_;
         ++next_arrival_) {
      const WorkloadJob& truth = workload_.jobs[next_arrival_];
      Job job = Submission(truth, config_.costs);
      estimates_.Describe(next_arrival_, job);
      cluster_.Submitted(next_arrival_);
      scheduler_.Handle(JobArrived{std::move(job), truth.category, {}}, now_);
      started_ = true;
    }
  }

  void ChangeNode(const Event& event) {
    const Snapshot& world = scheduler_.state().world;
    const auto lost = [&](NodeIndex n) { return world.nodes[n].state == NodeState::kLost; };
    PerNode<bool> before;
    for (const NodeIndex n : world.nodes.indices()) before.push_back(lost(n));
    scheduler_.Handle(event, now_);
    for (const NodeIndex n : before.indices()) {
      const std::string node = world.nodes[n].name;
      if (!before[n] && lost(n)) cluster_.NodeLost(node, now_);
      if (!before[n] || lost(n)) continue;
      for (const auto& [job, nodes] : cluster_.NodeBack(node)) {
        scheduler_.Handle(WorkersObserved{workload_.jobs[job].name, nodes}, now_);
      }
    }
  }

  // Runs rounds and actions at this instant until nothing is left to do.
  void RunRounds() {
    while (true) {
      if (RoundDue(scheduler_.state(), now_)) {
        MetricsUpdated news = estimates_.News(now_);
        if (!news.entries.empty()) scheduler_.Handle(std::move(news), now_);
      }
      const auto begin = std::chrono::steady_clock::now();
      const std::optional<Plan> plan = scheduler_.Advance(now_).plan;
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
  JobNumber next_arrival_ = 0;
  std::size_t next_node_ = 0;
  bool started_ = false;
  int completed_ = 0;
  int capacity_ = 0;
  struct GpuSeconds {
    double used = 0;
    double capacity = 0;
  };
  GpuSeconds so_far_;
  GpuSeconds at_last_end_;  // without rounds and node changes after the last job ended
  std::vector<UsagePoint> usage_;
  std::vector<float> decision_ms_;
};

// A policy with another owner.
class Borrowed final : public Policy {
 public:
  explicit Borrowed(const Policy& policy) : policy_(policy) {}
  Allocation Allocate(const Snapshot& snapshot) const override { return policy_.Allocate(snapshot); }
  void ExplainIdle(const Snapshot& snapshot, int idle, Allocation& allocation) const override {
    policy_.ExplainIdle(snapshot, idle, allocation);
  }

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

PerJob<std::optional<double>> ForecastStarts(const View& view, const Policy& policy,
                                             const std::function<bool()>& give_up) {
  // The forecast takes the estimates for the truth.
  Workload believed;
  PerJob<Resident> residents;
  int waiting = 0;
  const PerJob<Job>& jobs = view.world().jobs;
  const auto waits = [&](JobIndex i) { return view.jobs()[i].claimed == 0 && jobs[i].aside == Aside::kNo; };
  for (const JobIndex i : jobs.indices()) {
    const Job& job = jobs[i];
    WorkloadJob truth;
    truth.name = job.name;
    truth.category = view.jobs()[i].category;
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
    Resident& resident = residents.emplace_back(Resident{believed.jobs.end_index(), job, truth.category});
    resident.view.workers = view.jobs()[i].observed;
    resident.view.workers.resize(view.jobs()[i].claimed);  // the rest is taken back
    believed.jobs.push_back(std::move(truth));
    waiting += waits(i) ? 1 : 0;
  }

  SimulationConfig config;
  config.nodes = view.world().nodes;
  config.core = view.config();
  config.estimates = EstimateMode::kOracle;
  Simulation forward(believed, config, std::make_unique<Borrowed>(policy));
  forward.StartAt(view.now());
  forward.AddNodes(view.now());
  for (const Resident& resident : residents) forward.AddResident(resident, view.now());

  int started = 0;
  PerJob<std::optional<double>> starts(jobs.size());
  if (waiting > 0) {
    forward.Run([&] {
      for (const JobIndex i : starts.indices()) {
        if (starts[i] || !waits(i)) continue;
        starts[i] = forward.cluster().result(residents[i].job).first_start;
        if (starts[i]) ++started;
      }
      return started == waiting || (give_up && give_up());
    });
  }
  return starts;
}

}  // namespace voda::sim
