// Whole-system simulation by seed: the real scheduler on a cluster that fails in every way we know of.
//
// Safety: with faults that never stop, what must never happen does not. Liveness: once they stop, the cluster
// becomes what the plan says, then nothing more is written, and every job that fits completes. With a third
// of the seeds the policy answers late, and events come between its question and its answer. VODA_SEEDS sets
// the number of seeds, VODA_SEED runs a single one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "core/scheduler.h"
#include "simulation/faulty_cluster.h"
#include "support/core_harness.h"

namespace voda::testing {
namespace {

// Everything of a state that a decision or a reader can depend on, and the jobs that ended.
std::string Digest(const State& state, const std::vector<EndedJob>& ended) {
  std::string text = fmt::format(
      "dirty {} undispatched {} last {} wake {} rounds {} begun {} under way {} next {} ignored {}\n",
      state.dirty, state.undispatched, state.last_round, state.wake_at, state.rounds, state.rounds_begun,
      state.under_way.has_value(), state.next_action, state.ignored_events);
  for (const Node& node : state.world.nodes)
    text += fmt::format("{} {} {}\n", node.name, node.gpus, Name(node.state));
  for (const JobIndex i : state.active.indices()) {
    const Job& job = state.world.jobs[i];
    const ActiveJob& active = state.active[i];
    text += fmt::format(
        "{} {} {} {} {} {} aside {} remaining {} first {} counts {} {} {} changes {} {} totals {} {} {}",
        job.name, Name(active.status), job.min, job.num, job.max, job.priority, static_cast<int>(job.aside),
        job.remaining_seconds, job.first_start.value_or(-1), job.attained_gpu_seconds, job.waiting_seconds,
        job.running_seconds, job.last_change, job.last_start, active.waited, active.ran, active.gpu_seconds);
    text += fmt::format(" failures {} retry {} on", active.failures, active.retry_at);
    for (const NodeIndex at : active.observed) text += fmt::format(" {}", static_cast<int>(at));
    text += " want";
    for (const NodeIndex at : active.desired) text += fmt::format(" {}", static_cast<int>(at));
    if (active.in_flight) {
      text += fmt::format(" flying {} {} until {}", active.in_flight->action.id,
                          Name(active.in_flight->action.kind), active.in_flight->deadline);
    }
    if (active.last_change)
      text += fmt::format(" because {} {}", active.last_change->reason, active.last_change->trigger);
    text += '\n';
  }
  for (const EndedJob& job : ended) text += fmt::format("{} {} {}\n", job.name, Name(job.status), job.end);
  return text;
}

class NoCluster final : public Cluster {
 public:
  void Execute(const Action&, const PerNode<Node>&) override {}
};

const std::vector<std::string> kPolicies = {"FIFO",          "ElasticFIFO", "SRJF",
                                            "ElasticSRJF",   "Tiresias",    "ElasticTiresias",
                                            "FfDLOptimizer", "AFS-L",       "Price"};

class World {
 public:
  explicit World(std::uint64_t seed)
      : rng_(seed * 7919 + 1),
        late_rng_(seed * 104729 + 1),
        late_(late_rng_.Chance(0.34)),
        policy_(kPolicies[seed % kPolicies.size()]),
        config_(Config(seed, rng_)),
        cluster_(rng_, {.fail = rng_.Unit() * 0.3,
                        .timeout_applied = rng_.Unit() * 0.15,
                        .timeout_lost = rng_.Unit() * 0.15,
                        .max_delay = rng_.Unit() * 40}),
        scheduler_(config_, PolicyNamed(policy_), cluster_) {
    one_gpu_ = rng_.Chance(0.4);
    cluster_.believed = [this](const std::string& job) { return Observed(job); };
    const int nodes = rng_.Int(1, 5);
    for (int i = 0; i < nodes; ++i) AddNode();
  }

  void Safety(int steps) {
    for (int i = 0; i < steps && problem_.empty(); ++i) Step(/*faults=*/true);
  }

  void Liveness() {
    Heal();
    // 1. The cluster becomes what the plan says.
    const double limit = now_ + 20'000;
    int calm = 0;
    while (problem_.empty() && calm < 3) {
      if (now_ > limit)
        return Complain("does not settle after faults stopped\n" + Digest(scheduler_.state(), ended_log_));
      Step(/*faults=*/false);
      calm = Settled() ? calm + 1 : 0;
      if (Restless() && Matches()) break;
    }
    // 2. Then nothing is written, however often it looks.
    if (!Restless()) {
      const auto before = cluster_.executed();
      const std::string reached = Digest(scheduler_.state(), ended_log_);
      for (int i = 0; i < 5 && problem_.empty(); ++i) {
        now_ += 100;
        cluster_.now = now_;
        if (one_gpu_) Tell(Wake{});  // with wide workers another round may find better seats
        Advance();
        if (cluster_.executed() == before) continue;
        Complain("writes although the plan was reached; before:\n" + reached + "after:\n" +
                 Digest(scheduler_.state(), ended_log_));
      }
      if (problem_.empty() && scheduler_.state().world.nodes.size() != nodes_.size())
        Complain("remembers nodes that are gone\n" + Digest(scheduler_.state(), ended_log_));
    }
    // 3. Every job that fits completes.
    for (int i = 0; i < 20'000 && problem_.empty() && !Drained(); ++i) {
      const auto running = cluster_.Running();
      if (!running.empty() && rng_.Chance(0.3)) End(rng_.Pick(running), JobCompleted{});
      Step(/*faults=*/false);
    }
    if (problem_.empty() && !Drained())
      Complain("jobs that fit do not complete\n" + Digest(scheduler_.state(), ended_log_));
  }

  // The journal, handled by a fresh scheduler, gives the same states.
  void Replay() {
    NoCluster nowhere;
    Scheduler again(config_, PolicyNamed(policy_), nowhere);
    std::vector<EndedJob> ended;
    std::optional<View> asked;
    for (std::size_t i = 0; i < journal_.size() && problem_.empty(); ++i) {
      const auto& [step, now] = journal_[i];
      if (const auto* event = std::get_if<Event>(&step)) {
        Append(ended, again.Handle(*event, now));
      } else if (std::holds_alternative<Advancing>(step)) {
        Append(ended, late_ ? AdvanceLate(again, now, asked) : again.Advance(now).ended);
      } else if (std::holds_alternative<Answering>(step)) {
        again.FinishRound(*asked, Decide(*asked, *again.policy()), now);
      } else {
        again.SetPolicy(PolicyNamed(policy_));
      }
      const auto known = digests_.find(i);
      const std::string digest = Digest(again.state(), ended);
      if (known != digests_.end() && known->second != digest) {
        Complain(fmt::format("replay of {} events differs\nwas:\n{}is:\n{}", i + 1, known->second, digest));
      }
    }
  }

  const std::string& problem() const { return problem_; }
  std::string Describe() const {
    return fmt::format("{} {} rate limit {} min_runtime {} cooldown {}{}", policy_, Name(config_.placement),
                       config_.rate_limit, config_.min_runtime, config_.cooldown, late_ ? ", late" : "");
  }

 private:
  static CoreConfig Config(std::uint64_t seed, Rng& rng) {
    CoreConfig config;
    constexpr PlacementMode kModes[] = {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack};
    config.placement = kModes[seed / kPolicies.size() % 3];
    config.rate_limit = rng.Pick<double>({0, 5, 30});
    config.action_timeout = 60;
    if (rng.Chance(0.5)) {
      config.min_runtime = rng.Pick<double>({0, 60, 600});
      config.cooldown = rng.Pick<double>({0, 30, 300});
    }
    return config;
  }

  void Complain(std::string what) {
    if (problem_.empty()) problem_ = fmt::format("at {}: {}", now_, what);
  }

  static void Append(std::vector<EndedJob>& to, const std::vector<EndedJob>& ended) {
    to.insert(to.end(), ended.begin(), ended.end());
  }

  // What is done to the scheduler beside telling it an event.
  struct Advancing {};
  struct Answering {};      // the policy answers
  struct AnotherPolicy {};  // while it is asked
  using Done = std::variant<Event, Advancing, Answering, AnotherPolicy>;

  // Advance for a policy that answers late; `asked` is the view of a round that begins.
  static std::vector<EndedJob> AdvanceLate(Scheduler& scheduler, double now, std::optional<View>& asked) {
    std::vector<EndedJob> ended = scheduler.Handle(Tick{}, now);
    if (scheduler.BeginRound(now)) asked.emplace(scheduler.state(), now);
    scheduler.Send(now);
    return ended;
  }

  void Tell(const Event& event) {
    journal_.emplace_back(event, now_);
    Append(ended_log_, scheduler_.Handle(event, now_));
    Remember();
  }

  void Remember() {
    if (rng_.Chance(0.05)) digests_[journal_.size() - 1] = Digest(scheduler_.state(), ended_log_);
  }

  void Advance() {
    if (asked_ && now_ >= answer_at_) Answer();
    journal_.emplace_back(Advancing{}, now_);
    if (late_) {
      Append(ended_log_, AdvanceLate(scheduler_, now_, asked_));
      if (asked_ && answer_at_ == kNever)
        answer_at_ = now_ + late_rng_.Unit() * late_rng_.Pick<double>({1, 10, 60});
      Remember();
    } else {
      const auto advanced = scheduler_.Advance(now_);
      Append(ended_log_, advanced.ended);
      Remember();
      if (advanced.plan) CheckPlan(scheduler_.state().world, *advanced.plan);
    }
    Check();
  }

  // The answer of the policy comes, to the question as it was put.
  void Answer() {
    if (late_rng_.Chance(0.05)) {
      journal_.emplace_back(AnotherPolicy{}, now_);
      scheduler_.SetPolicy(PolicyNamed(policy_));
    }
    journal_.emplace_back(Answering{}, now_);
    const Plan plan = Decide(*asked_, *scheduler_.policy());
    CheckPlan(asked_->world(), plan);
    scheduler_.FinishRound(*asked_, plan, now_);
    asked_.reset();
    answer_at_ = kNever;
    Remember();
    Check();
  }

  void CheckPlan(const Snapshot& world, const Plan& plan) {
    PerNode<int> used(world.nodes.size(), 0);
    for (const JobIndex i : world.jobs.indices()) {
      const auto seats = plan.placement.workers(i);
      if (static_cast<int>(seats.size()) != plan.allocation.workers[i]) {
        return Complain("plan not placed");
      }
      if (!seats.empty() && world.job(i).curve->IndexOf(static_cast<int>(seats.size())) < 0) {
        return Complain("plan with a size that is not allowed");
      }
      for (const NodeIndex at : seats) used[at] += world.job(i).gpus_per_worker;
    }
    for (const NodeIndex n : used.indices()) {
      if (used[n] > world.nodes[n].gpus) Complain("plan over-fills " + world.nodes[n].name);
    }
  }

  // What must hold after every step.
  void Check() {
    const State& state = scheduler_.state();
    CheckInvariants(state);
    for (const EndedJob& job : ended_log_) {
      const auto [known, first] = ended_.emplace(job.name, job.status);
      if (first) {
        if (job.status == JobStatus::kCanceled && !deleted_.contains(job.name))
          Complain(job.name + " canceled by nobody");
        cluster_.JobGone(job.name);
        cluster_.Ended(job.name);
      }
      if (known->second != job.status) Complain(job.name + " ended twice");
    }
    if (ended_log_.size() != ended_.size()) Complain("a job ended twice");
    for (const std::string& job : accepted_) {
      const bool active = FindJob(state, job) != kNoJob;
      if (active == ended_.contains(job))
        Complain(fmt::format("{} is {}", job, active ? "active and ended" : "lost"));
    }
    if (state.active.size() + ended_.size() != accepted_.size()) Complain("jobs do not add up");
    if (!cluster_.complaints().empty()) Complain(cluster_.complaints().front());
    if (const std::string over = cluster_.Overcommitted(); !over.empty()) Complain("over-committed " + over);
  }

  // One step: to the next time at which something happens.
  void Step(bool faults) {
    double next = std::min({scheduler_.NextWake(now_), cluster_.NextTime(), answer_at_});
    const double outside = now_ + rng_.Unit() * (faults ? 20 : 200);
    const bool something = faults && (outside < next || rng_.Chance(0.2));
    next = std::min(next, outside);
    if (next <= now_ && ++standstill_ > 200) {
      return Complain("wakes for ever without anything to do\n" + Digest(scheduler_.state(), ended_log_));
    }
    if (next > now_) standstill_ = 0;
    now_ = std::max(now_, next);
    cluster_.now = now_;
    for (const Event& event : cluster_.Due()) Tell(event);
    if (something) {
      const int burst = rng_.Chance(0.03) ? rng_.Int(5, 40) : 1;
      for (int i = 0; i < burst; ++i) Outside();
    }
    Advance();
  }

  void Outside() {
    switch (rng_.Int(0, 19)) {
      case 0:
        return AddNode();
      case 1:
        return ChangeNode();
      case 2:
        return LoseNode();
      case 3:
        if (const auto jobs = cluster_.Running(); !jobs.empty()) Tell(cluster_.KillWorker(rng_.Pick(jobs)));
        return;
      case 4:
      case 5:
        if (const auto jobs = cluster_.Running(); !jobs.empty()) End(rng_.Pick(jobs), JobCompleted{});
        return;
      case 6:
        if (const auto jobs = cluster_.Running(); !jobs.empty())
          End(rng_.Pick(jobs), JobFailed{"", "crashed"});
        return;
      case 7:
        return Tell(JobHeld{AnyJob()});
      case 8:
        return Tell(JobResumed{AnyJob()});
      case 9: {
        const std::string job = AnyJob();
        deleted_.insert(job);
        return Tell(JobDeleted{job});
      }
      case 10:
        return Tell(JobChanged{.job = AnyJob(), .priority = rng_.Int(-1, 2)});
      case 11:
        return ChangeLimits();
      case 12:
        return Tell(MetricsUpdated{
            {{.job = AnyJob(), .remaining_seconds = rng_.Chance(0.2) ? std::nan("") : rng_.Unit() * 1e4}}});
      case 13:
        return Tell(ActionDone{static_cast<ActionId>(rng_.Int(0, 5000) + 1'000'000)});
      default:
        return Arrive();
    }
  }

  void Arrive() {
    if (scheduler_.state().active.size() > 25) return;
    const std::string name = fmt::format("j{}", accepted_.size());
    SnapshotShape shape;
    Job job;
    job.name = name;
    job.submit_time = now_;
    job.min = rng_.Int(1, 3);
    job.max = rng_.Int(job.min, 8);
    job.curve = RandomCurve(rng_, job.min, job.max, shape);
    job.num = job.curve->size(rng_.Int(0, job.curve->count() - 1));
    job.gpus_per_worker = one_gpu_ ? 1 : rng_.Pick<int>({1, 1, 2, 4});
    job.priority = rng_.Chance(0.2) ? rng_.Int(-1, 2) : 0;
    job.preemptible = rng_.Chance(0.9);
    job.remaining_seconds = rng_.Unit() * 5000;
    accepted_.insert(name);
    cluster_.gpus_per_worker[name] = job.gpus_per_worker;
    Tell(JobArrived{job, "c", {}});
    if (rng_.Chance(0.05)) Tell(JobArrived{job, "c", {}});
  }

  void ChangeLimits() {
    const std::string name = AnyJob();
    if (FindJob(scheduler_.state(), name) == kNoJob) return;
    const int min = rng_.Int(1, 3);
    const int max = rng_.Int(min, 8);
    const CurvePtr curve = RandomCurve(rng_, min, max, {});
    Tell(JobChanged{
        .job = name,
        .sizes = JobChanged::Sizes{{min, curve->size(rng_.Int(0, curve->count() - 1)), max}, curve}});
  }

  void AddNode() {
    if (nodes_.size() >= 7) return ChangeNode();
    const std::string name = fmt::format("n{}", rng_.Int(0, 9));
    const int gpus = rng_.Int(1, 8);
    nodes_[name] = gpus;
    cluster_.NodeIs(name, gpus);
    Tell(NodeAdded{{name, gpus, NodeState::kReady}});
  }

  void ChangeNode() {
    if (nodes_.empty()) return;
    auto at = nodes_.begin();
    std::advance(at, rng_.Int(0, static_cast<int>(nodes_.size()) - 1));
    NodeChanged change{.node = at->first};
    if (rng_.Chance(0.5)) {
      at->second = rng_.Int(0, 8);
      cluster_.NodeIs(at->first, at->second);
      change.gpus = at->second;
    } else {
      change.state = rng_.Chance(0.5) ? NodeState::kCordoned : NodeState::kReady;
    }
    Tell(change);
  }

  void LoseNode() {
    if (nodes_.size() < 2) return;
    auto at = nodes_.begin();
    std::advance(at, rng_.Int(0, static_cast<int>(nodes_.size()) - 1));
    const std::string name = at->first;
    nodes_.erase(at);
    Tell(cluster_.KillNode(name));
    if (rng_.Chance(0.3)) {  // it is back at once
      nodes_[name] = 4;
      cluster_.NodeIs(name, 4);
      Tell(NodeAdded{{name, 4, NodeState::kReady}});
    }
  }

  std::string AnyJob() {
    if (accepted_.empty() || rng_.Chance(0.05)) return "nobody";
    const auto& active = scheduler_.state().world.jobs;
    if (active.empty() || rng_.Chance(0.1))
      return fmt::format("j{}", rng_.Int(0, static_cast<int>(accepted_.size()) - 1));
    return rng_.Pick(active).name;
  }

  template <class Cause>
  void End(const std::string& job, Cause event) {
    event.job = job;
    cluster_.JobGone(job);
    Tell(event);
  }

  void Heal() {
    cluster_.rates().fail = cluster_.rates().timeout_applied = cluster_.rates().timeout_lost = 0;
    for (const auto& [name, gpus] : nodes_) {
      if (gpus == 0) cluster_.NodeIs(name, 2);
      Tell(NodeAdded{{name, gpus == 0 ? 2 : gpus, NodeState::kReady}});
    }
    for (const std::string& job : accepted_) {
      if (FindJob(scheduler_.state(), job) != kNoJob) Tell(JobResumed{job});
    }
  }

  // Policies that change their minds with time alone never come to rest.
  bool Restless() const {
    return policy_ == "Tiresias" || policy_ == "ElasticTiresias" || policy_ == "Price";
  }

  // Where the scheduler sees the workers of a job.
  std::vector<std::string> Observed(const std::string& name) const {
    const State& state = scheduler_.state();
    std::vector<std::string> names;
    if (const JobIndex index = FindJob(state, name); index != kNoJob) {
      for (const NodeIndex at : state.active[index].observed) {
        names.push_back(at == kNoNode ? "" : state.world.node(at).name);
      }
    }
    return names;
  }

  // Observed, desired and true are the same.
  bool Matches() const {
    const State& state = scheduler_.state();
    for (const JobIndex i : state.active.indices()) {
      const Job& job = state.world.jobs[i];
      if (state.active[i].observed != state.active[i].desired || state.active[i].in_flight) return false;
      const auto truth = cluster_.workers().find(job.name);
      if (Observed(job.name) !=
          (truth == cluster_.workers().end() ? std::vector<std::string>{} : truth->second))
        return false;
    }
    return cluster_.Idle();
  }

  bool Settled() const {
    return Matches() && !asked_ && !scheduler_.state().dirty && scheduler_.NextWake(now_) == kNever;
  }

  // Only jobs are left that can never get what their policy gives at first.
  bool Drained() const {
    const State& state = scheduler_.state();
    const bool num = policy_ == "FIFO" || policy_ == "SRJF" || policy_ == "Tiresias";
    for (const Job& job : state.world.jobs) {
      if (SeatsWhenEmpty(state.world, job) < job.min) continue;
      if (num && job.gpus(job.num) > Capacity(state.world)) continue;
      return false;
    }
    return true;
  }

  Rng rng_;
  Rng late_rng_;  // its own: what else happens by a seed does not depend on it
  bool late_;
  std::optional<View> asked_;
  double answer_at_ = kNever;
  std::string policy_;
  CoreConfig config_;
  std::vector<std::pair<Done, double>> journal_;
  FaultyCluster cluster_;
  Scheduler scheduler_;
  bool one_gpu_ = false;
  double now_ = 0;
  int standstill_ = 0;
  std::map<std::string, int> nodes_;
  std::set<std::string> accepted_;
  std::set<std::string> deleted_;
  std::vector<EndedJob> ended_log_;
  std::map<std::string, JobStatus> ended_;
  std::map<std::size_t, std::string> digests_;
  std::string problem_;
};

void ForSeeds(const std::function<std::string(World&)>& run) {
  if (const char* one = std::getenv("VODA_SEED")) {
    World world(std::strtoull(one, nullptr, 10));
    const std::string problem = run(world);
    EXPECT_TRUE(problem.empty()) << "VODA_SEED=" << one << ": " << world.Describe() << "\n" << problem;
    return;
  }
  const char* wanted = std::getenv("VODA_SEEDS");
  const std::uint64_t seeds = wanted == nullptr ? 60 : std::strtoull(wanted, nullptr, 10);
  int failures = 0;
  for (std::uint64_t seed = 0; seed < seeds && failures < 5; ++seed) {
    World world(seed);
    const std::string problem = run(world);
    EXPECT_TRUE(problem.empty()) << "VODA_SEED=" << seed << ": " << world.Describe() << "\n" << problem;
    failures += problem.empty() ? 0 : 1;
  }
}

TEST(FaultSimulation, Safety) {
  ForSeeds([](World& world) {
    world.Safety(600);
    return world.problem();
  });
}

TEST(FaultSimulation, Liveness) {
  ForSeeds([](World& world) {
    world.Safety(200);
    if (world.problem().empty()) world.Liveness();
    return world.problem();
  });
}

TEST(FaultSimulation, ReplayingTheJournalGivesTheSameState) {
  ForSeeds([](World& world) {
    world.Safety(300);
    if (world.problem().empty()) world.Replay();
    return world.problem();
  });
}

}  // namespace
}  // namespace voda::testing
