#include "sim/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/reduce.h"
#include "support/core_harness.h"
#include "support/generators.h"

namespace voda::sim {
namespace {

using testing::CoreHarness;
using testing::JobBuilder;
using testing::PolicyNamed;
using testing::Rng;

// The costs are the defaults 39, 110 and 97; there is no rate limit unless a test sets one.
SimulationConfig Config(int nodes, int gpus) {
  SimulationConfig config;
  for (int i = 0; i < nodes; ++i) config.nodes.push_back({"n" + std::to_string(i), gpus, NodeState::kReady});
  config.core.rate_limit = 0;
  config.estimates = EstimateMode::kOracle;
  config.check_invariants = true;
  config.keep_history = true;
  return config;
}

WorkloadJob Job(std::string name, double submit, int min, int num, int max, double work) {
  WorkloadJob job;
  job.name = std::move(name);
  job.category = job.name;
  job.submit_time = submit;
  job.min = min;
  job.num = num;
  job.max = max;
  job.curve = Curve::Linear(min, max);
  job.work_seconds = work;
  job.epochs = 10;
  return job;
}

RunResult RunOne(const Workload& workload, const SimulationConfig& config, const std::string& algorithm) {
  return Simulate(workload, config, algorithm, PolicyNamed(algorithm));
}

TEST(Simulation, AJobAloneTakesItsStartAndItsWork) {
  for (const PolicyInfo& info : Policies()) {
    WorkloadJob job = Job("a", 100, 2, 2, 2, 1000);
    job.curve = Curve::Of({2}, {1.6});
    const RunResult run = RunOne({{job}}, Config(1, 4), std::string(info.name));
    ASSERT_EQ(run.completed, 1) << info.name;
    EXPECT_DOUBLE_EQ(*run.jobs[0].first_start, 100);
    EXPECT_DOUBLE_EQ(*run.jobs[0].end, 100 + 39 + 1000 / 1.6) << info.name;
    EXPECT_DOUBLE_EQ(run.avg_jct_s, 39 + 625);
    EXPECT_DOUBLE_EQ(run.makespan_s, 39 + 625);
    EXPECT_DOUBLE_EQ(run.gpu_utilization, 0.5);
    EXPECT_DOUBLE_EQ(run.avg_wait_s, 0);
    EXPECT_DOUBLE_EQ(run.jobs[0].gpu_seconds, 2 * 664);
    EXPECT_EQ(run.rescales + run.preemptions + run.migrated_workers, 0);
  }
}

TEST(Simulation, AJobsOwnCostsComeFirst) {
  WorkloadJob job = Job("a", 0, 1, 1, 1, 100);
  job.start_cost = 5;
  EXPECT_DOUBLE_EQ(RunOne({{job}}, Config(1, 1), "FIFO").makespan_s, 105);
}

TEST(Simulation, JobsWaitForOneAnother) {
  const RunResult run =
      RunOne({{Job("a", 0, 1, 1, 1, 100), Job("b", 10, 1, 1, 1, 100)}}, Config(1, 1), "FIFO");
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 139);
  EXPECT_DOUBLE_EQ(*run.jobs[1].first_start, 139);
  EXPECT_DOUBLE_EQ(*run.jobs[1].end, 278);
  EXPECT_DOUBLE_EQ(run.jobs[1].waiting_seconds, 129);
  EXPECT_DOUBLE_EQ(run.avg_wait_s, 64.5);
  EXPECT_DOUBLE_EQ(run.avg_jct_s, (139 + 268) / 2.0);
  EXPECT_DOUBLE_EQ(run.gpu_utilization, 1);
}

TEST(Simulation, ARescaleStallsAndKeepsItsGpus) {
  // a runs on 2 from 0 (39 stall), b arrives at 139: a shrinks to 1 with 100*2 done, stalls 110, then 800
  // left at speed 1.
  const RunResult run =
      RunOne({{Job("a", 0, 1, 1, 2, 1000), Job("b", 139, 1, 1, 1, 10'000)}}, Config(1, 2), "ElasticFIFO");
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 139 + 110 + 800);
  EXPECT_DOUBLE_EQ(*run.jobs[1].first_start, 139);  // a shrink frees its GPUs at once
  EXPECT_EQ(run.jobs[0].rescales, 1);
  EXPECT_DOUBLE_EQ(run.jobs[0].gpu_seconds, 139 * 2 + 910);
  EXPECT_EQ(run.jobs[0].preemptions, 0);
}

TEST(Simulation, ANewChangeRestartsTheStall) {
  // b comes at 20, while a still starts: a's stall begins anew with the length of a rescale.
  const RunResult run =
      RunOne({{Job("a", 0, 1, 1, 2, 1000), Job("b", 20, 1, 1, 1, 100'000)}}, Config(1, 2), "ElasticFIFO");
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 20 + 110 + 1000);
}

TEST(Simulation, ANewChangeThatIsShorterRestartsTheStallToo) {
  // Rescale at 139 would last until 249; the migration at 149 (its node is lost) makes it 246.
  SimulationConfig config = Config(2, 2);
  config.node_changes.push_back({149, NodeRemoved{"n0"}});
  Workload workload{{Job("a", 0, 1, 1, 2, 1000), Job("b", 139, 3, 3, 3, 100'000)}};
  workload.jobs[0].curve = Curve::Of({1, 2}, {1, 2});
  // a has 2 on n0; b takes 3 at 139, so a shrinks to 1 and stays on n0; at 149 n0 is lost: only n1's two GPUs
  // are left.
  const RunResult run = RunOne(workload, config, "ElasticFIFO");
  // b's minimum does not fit any more; a moves to n1 and grows to 2: one change, the larger stall (110).
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 149 + 110 + (1000 - 200) / 2.0);
}

TEST(Simulation, OneStallPerChangeTheLargerOfThoseThatApply) {
  // Only a migration: 97. a sits on n0 alone; the node is lost at 139.
  SimulationConfig config = Config(2, 1);
  config.node_changes.push_back({139, NodeRemoved{"n0"}});
  const RunResult moved = RunOne({{Job("a", 0, 1, 1, 1, 1000)}}, config, "FIFO");
  EXPECT_DOUBLE_EQ(*moved.jobs[0].end, 139 + 97 + 900);
  EXPECT_EQ(moved.jobs[0].migrated_workers, 1);
  EXPECT_EQ(moved.jobs[0].rescales, 0);
  // Moving costs more than rescaling here.
  config.costs = {.start = 39, .rescale = 10, .migration = 97};
  const RunResult costly = RunOne({{Job("a", 0, 1, 1, 1, 1000)}}, config, "FIFO");
  EXPECT_DOUBLE_EQ(*costly.jobs[0].end, 139 + 97 + 900);
}

TEST(Simulation, PreemptionLosesNoProgress) {
  // a works 100 s of 1000, is stopped at 139 by a job of higher priority, starts again when that has ended.
  Workload workload{{Job("a", 0, 1, 1, 1, 1000), Job("b", 139, 1, 1, 1, 61)}};
  workload.jobs[1].priority = 1;
  const RunResult run = RunOne(workload, Config(1, 1), "FIFO");
  EXPECT_DOUBLE_EQ(*run.jobs[1].end, 139 + 39 + 61);
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 239 + 39 + 900);
  EXPECT_EQ(run.jobs[0].preemptions, 1);
  EXPECT_DOUBLE_EQ(run.jobs[0].waiting_seconds, 100);
}

TEST(Simulation, ANodeIsLostAndReturns) {
  SimulationConfig config = Config(1, 2);
  config.node_changes = {{139, NodeRemoved{"n0"}}, {500, NodeAdded{{"n0", 2, NodeState::kReady}}}};
  const RunResult run = RunOne({{Job("a", 0, 2, 2, 2, 1000)}}, config, "FIFO");
  ASSERT_EQ(run.completed, 1);
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 500 + 39 + (1000 - 200) / 2.0);
  EXPECT_DOUBLE_EQ(run.jobs[0].waiting_seconds, 361);
}

// The workers died with the node, however short its absence.
TEST(Simulation, ANodeThatIsBackBeforeTheNextRoundDoesNotStrandItsJobs) {
  for (const double rate_limit : {0.0, 30.0}) {
    SimulationConfig config = Config(1, 2);
    config.core.rate_limit = rate_limit;
    config.node_changes = {{139, NodeRemoved{"n0"}}, {140, NodeAdded{{"n0", 2, NodeState::kReady}}}};
    Workload workload{
        {Job("a", 0, 2, 2, 2, 1000), Job("b", 138, 2, 2, 2, 10)}};  // b's arrival makes the rate limit bite
    const RunResult run = RunOne(workload, config, "FIFO");
    EXPECT_EQ(run.completed, 2) << "rate limit " << rate_limit;
  }
}

TEST(Simulation, ANodeThatReturnsAtTheSameInstantDoesNotStrandItsJobs) {
  SimulationConfig config = Config(2, 2);
  config.node_changes = {{139, NodeRemoved{"n0"}}, {139, NodeAdded{{"n0", 2, NodeState::kReady}}}};
  const RunResult run = RunOne({{Job("a", 0, 2, 2, 2, 1000)}}, config, "FIFO");
  EXPECT_EQ(run.completed, 1);
}

// n0 leaves the core's list, and the nodes behind it move up.
TEST(Simulation, AJobStaysOnItsNodeWhenAnotherIsForgotten) {
  SimulationConfig config = Config(3, 2);
  config.nodes[0].gpus = 1;
  config.core.rate_limit = 30;
  config.node_changes = {{50, NodeRemoved{"n0"}}, {60, NodeRemoved{"n1"}}};
  Workload workload{{Job("a", 0, 1, 1, 1, 1000)}};
  workload.jobs[0].gpus_per_worker = 2;
  const RunResult run = RunOne(workload, config, "FIFO");
  // The job is on n1 until 60. The round at 50 changed nothing, so the next one moves it to n2 at once.
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 60 + 97 + (1000 - 21));
  EXPECT_EQ(run.jobs[0].migrated_workers, 1);
}

TEST(Simulation, ACordonedNodeFinishesWhatItHas) {
  SimulationConfig config = Config(1, 1);
  config.node_changes = {{50, NodeChanged{.node = "n0", .gpus = {}, .state = NodeState::kCordoned}}};
  const RunResult run = RunOne({{Job("a", 0, 1, 1, 1, 100), Job("b", 60, 1, 1, 1, 100)}}, config, "FIFO");
  EXPECT_EQ(run.completed, 1);
  EXPECT_DOUBLE_EQ(*run.jobs[0].end, 139);
  EXPECT_FALSE(run.jobs[1].end);
  EXPECT_FALSE(run.jobs[1].first_start);
}

TEST(Simulation, AJobThatCanNeverBeSeatedLeavesTheRunFinite) {
  for (const PolicyInfo& info : Policies()) {
    Workload workload{{Job("a", 0, 1, 1, 2, 500), Job("big", 1, 9, 9, 9, 100), Job("wide", 2, 1, 1, 1, 100)}};
    workload.jobs[2].gpus_per_worker = 5;
    const RunResult run = RunOne(workload, Config(2, 4), std::string(info.name));
    EXPECT_EQ(run.completed, 1) << info.name;
    EXPECT_FALSE(run.jobs[1].end);
    EXPECT_FALSE(run.jobs[2].end);
    EXPECT_LT(run.rounds, 100) << info.name;
  }
}

TEST(Simulation, NoJobsAndNoNodesAreFine) {
  EXPECT_EQ(RunOne({}, Config(1, 1), "FIFO").completed, 0);
  EXPECT_EQ(RunOne({{Job("a", 0, 1, 1, 1, 1)}}, Config(0, 0), "FIFO").completed, 0);
}

TEST(Simulation, TheRateLimitDelaysAStart) {
  SimulationConfig config = Config(1, 2);
  config.core.rate_limit = 30;
  const RunResult run = RunOne({{Job("a", 0, 1, 1, 1, 100), Job("b", 10, 1, 1, 1, 100)}}, config, "FIFO");
  EXPECT_DOUBLE_EQ(*run.jobs[0].first_start, 0);
  EXPECT_DOUBLE_EQ(*run.jobs[1].first_start, 30);
}

TEST(Simulation, SpreadingOverNodesCostsWhatTheProfileSays) {
  WorkloadJob job = Job("a", 0, 4, 4, 4, 1000);
  job.curve = Curve::Of({4}, {4});
  job.spans = std::make_shared<const SpanTable>(SpanTable{{4, 2, 2.5}});
  EXPECT_DOUBLE_EQ(RunOne({{job}}, Config(1, 4), "FIFO").makespan_s, 39 + 250);
  EXPECT_DOUBLE_EQ(RunOne({{job}}, Config(2, 2), "FIFO").makespan_s, 39 + 400);
}

Workload RandomWorkload(std::uint64_t seed, int jobs) {
  Rng rng(seed);
  Workload workload;
  double submit = 0;
  for (int i = 0; i < jobs; ++i) {
    submit += rng.Unit() * 200;
    const int min = rng.Int(1, 2);
    const int max = rng.Int(min, 8);
    WorkloadJob job = Job("j" + std::to_string(100 + i), submit, min, min, max, 200 + rng.Unit() * 4000);
    job.category = "c" + std::to_string(rng.Int(0, 3));
    job.curve = testing::RandomCurve(rng, min, max, {});
    job.num = job.curve->size(rng.Int(0, job.curve->count() - 1));
    job.gpus_per_worker = max <= 4 && rng.Chance(0.4) ? 2 : 1;
    workload.jobs.push_back(std::move(job));
  }
  return workload;
}

TEST(Simulation, TheSameRunTwiceIsIdentical) {
  const Workload workload = RandomWorkload(1, 40);
  for (const PolicyInfo& info : Policies()) {
    for (const EstimateMode mode :
         {EstimateMode::kOracle, EstimateMode::kLinear, EstimateMode::kLearned, EstimateMode::kNone}) {
      SimulationConfig config = Config(3, 4);
      config.core.rate_limit = 30;
      config.reporting = 0.5;
      config.estimates = mode;
      const RunResult a = RunOne(workload, config, std::string(info.name));
      const RunResult b = RunOne(workload, config, std::string(info.name));
      EXPECT_EQ(a.completed, 40) << info.name;
      EXPECT_EQ(a.rounds, b.rounds);
      EXPECT_EQ(a.avg_jct_s, b.avg_jct_s);
      EXPECT_EQ(a.gpu_utilization, b.gpu_utilization);
      for (const JobNumber i : a.jobs.indices()) {
        EXPECT_EQ(a.jobs[i].end, b.jobs[i].end);
        EXPECT_EQ(a.jobs[i].gpu_seconds, b.jobs[i].gpu_seconds);
        ASSERT_EQ(a.jobs[i].history.size(), b.jobs[i].history.size());
      }
    }
  }
}

// GPU-seconds are the integral of the history, and no job finishes before its work could be done.
TEST(Simulation, TheBooksBalance) {
  for (const PolicyInfo& info : Policies()) {
    for (const PlacementMode mode : {PlacementMode::kStable, PlacementMode::kCost, PlacementMode::kRepack}) {
      const Workload workload = RandomWorkload(7, 40);
      SimulationConfig config = Config(3, 4);
      config.core.placement = mode;
      config.node_changes = {{500, NodeRemoved{"n1"}}, {1500, NodeAdded{{"n1", 4, NodeState::kReady}}}};
      const RunResult run = RunOne(workload, config, std::string(info.name));
      EXPECT_EQ(run.completed, 40) << info.name;
      for (const JobNumber i : run.jobs.indices()) {
        const JobResult& job = run.jobs[i];
        if (!job.end) continue;
        double gpu_seconds = 0;
        double waiting = 0;
        double best = 0;
        for (std::size_t k = 0; k < job.history.size(); ++k) {
          const double until = k + 1 < job.history.size() ? job.history[k + 1].from : *job.end;
          const double span = until - job.history[k].from;
          gpu_seconds += span * job.history[k].workers * job.gpus_per_worker;
          if (job.history[k].workers == 0) waiting += span;
          const int index = workload.jobs[i].curve->IndexOf(job.history[k].workers);
          if (index >= 0) best += span * workload.jobs[i].curve->speedup(index);
        }
        EXPECT_NEAR(job.gpu_seconds, gpu_seconds, 1e-6);
        EXPECT_NEAR(job.waiting_seconds, waiting, 1e-6);
        EXPECT_GE(best + 1e-6, workload.jobs[i].work_seconds) << info.name << " " << job.name;
      }
      for (const UsagePoint& point : run.usage) EXPECT_LE(point.used, 12);
    }
  }
}

TEST(Simulation, GpusInUseNeverExceedWhatIsThere) {
  const Workload workload = RandomWorkload(11, 60);
  for (const PolicyInfo& info : Policies()) {
    const RunResult run = RunOne(workload, Config(2, 4), std::string(info.name));
    for (const UsagePoint& point : run.usage) EXPECT_LE(point.used, point.capacity) << info.name;
    EXPECT_GT(run.gpu_utilization, 0);
    EXPECT_LE(run.gpu_utilization, 1);
  }
}

// The policy acts on what it believes; the truth decides how long that takes.
TEST(Simulation, OracleKnowsWhatLearnedFindsOut) {
  // Nothing is gained beyond two workers.
  Workload workload;
  for (int i = 0; i < 6; ++i) {
    WorkloadJob job = Job("a" + std::to_string(i), 5000.0 * i, 1, 1, 4, 2000);
    job.category = "flat";
    job.curve = Curve::Of({1, 2, 3, 4}, {1, 2, 2, 2});
    workload.jobs.push_back(job);
  }
  SimulationConfig config = Config(1, 4);
  config.core.rate_limit = 30;
  const auto largest = [](const JobResult& job) {
    int most = 0;
    for (const Segment& segment : job.history) most = std::max(most, segment.workers);
    return most;
  };
  const RunResult oracle = RunOne(workload, config, "ElasticFIFO");
  for (const JobResult& job : oracle.jobs) EXPECT_EQ(largest(job), 2);
  config.estimates = EstimateMode::kLinear;
  for (const JobResult& job : RunOne(workload, config, "ElasticFIFO").jobs) EXPECT_EQ(largest(job), 4);
  config.estimates = EstimateMode::kLearned;
  const RunResult learned = RunOne(workload, config, "ElasticFIFO");
  EXPECT_EQ(learned.completed, 6);
  EXPECT_EQ(largest(learned.jobs.front()), 4);  // nothing is known yet
}

// As a new user meets it: a job that asks for one of eight idle GPUs and reports nothing.
TEST(Simulation, ASilentJobAloneIsAlmostAsFastAsWithEverythingFromTheStart) {
  WorkloadJob job = Job("a", 0, 1, 1, 8, 36000);
  std::vector<double> speedup;
  for (int n = 1; n <= 8; ++n) speedup.push_back(std::pow(n, 0.85));
  job.curve = Curve::Of({1, 2, 3, 4, 5, 6, 7, 8}, speedup);
  SimulationConfig config = Config(1, 8);
  config.estimates = EstimateMode::kNone;
  const double took = RunOne({{job}}, config, "Price").avg_jct_s;
  EXPECT_LT(took, 1.2 * (39 + 36000 / speedup.back()));
}

// Nothing happens on an idle cluster: the rounds at which a job may try more nodes come by themselves.
TEST(Simulation, ASilentJobReachesAcrossNodesWithTime) {
  const WorkloadJob job = Job("a", 0, 1, 1, 32, 1e7);
  SimulationConfig config = Config(4, 8);
  config.estimates = EstimateMode::kNone;
  const RunResult run = RunOne({{job}}, config, "Price");
  std::vector<std::pair<double, int>> sizes;
  for (const Segment& segment : run.jobs.front().history) {
    if (segment.workers == 0) break;  // its end
    if (sizes.empty() || sizes.back().second != segment.workers)
      sizes.emplace_back(segment.from, segment.workers);
  }
  const std::vector<std::pair<double, int>> expected = {{0, 8}, {14400, 16}, {28800, 32}};
  EXPECT_EQ(sizes, expected);
}

TEST(Simulation, AShareOfTheJobsReportsWhateverTheirOrder) {
  const Workload workload = RandomWorkload(3, 60);
  SimulationConfig config = Config(3, 4);
  config.core.rate_limit = 30;
  config.estimates = EstimateMode::kLearned;
  const auto jct = [&](double reporting, std::uint64_t seed) {
    config.reporting = reporting;
    config.error_seed = seed;
    return RunOne(workload, config, "Price").avg_jct_s;
  };
  const double all = jct(1, 1);
  const double half = jct(0.5, 1);
  EXPECT_NE(all, half);
  EXPECT_NE(half, jct(0.5, 2));
  config.estimates = EstimateMode::kNone;
  const double none = RunOne(workload, config, "Price").avg_jct_s;
  config.estimates = EstimateMode::kLearned;
  EXPECT_EQ(jct(0, 1), none);
}

TEST(Forecast, AJobThatFitsStartsNow) {
  CoreHarness core;
  core.now = 100;
  core.Nodes(1, 2).Arrive(JobBuilder("a").Remaining(50).Costs(39, 110, 97));
  const auto starts = ForecastStarts(View(core.state, core.now), core.policy());
  ASSERT_EQ(starts.size(), 1u);
  ASSERT_TRUE(starts[0]);
  EXPECT_DOUBLE_EQ(*starts[0], 100);
}

TEST(Forecast, AJobStartsWhenTheOneAheadIsDone) {
  CoreHarness core("FIFO");
  core.now = 100;
  core.Nodes(1, 1)
      .Arrive(JobBuilder("a").Remaining(500))
      .Arrive(JobBuilder("b").Submit(1).Remaining(200).Costs(10, 0, 0));
  core.Arrive(JobBuilder("c").Submit(2).Remaining(1)).Arrive(JobBuilder("huge").Sizes(2, 2, 2).Remaining(1));
  core.Settle();
  const auto starts = ForecastStarts(View(core.state, core.now), core.policy());
  ASSERT_EQ(starts.size(), 4u);
  EXPECT_FALSE(starts[0]);  // it runs already
  ASSERT_TRUE(starts[1] && starts[2]);
  EXPECT_DOUBLE_EQ(*starts[1], 600);
  EXPECT_DOUBLE_EQ(*starts[2], 600 + 10 + 200);
  EXPECT_FALSE(starts[3]);  // it never starts
}

TEST(Forecast, HeldJobsHaveNone) {
  CoreHarness core;
  core.Nodes(1, 2).Arrive(JobBuilder("a").Remaining(50)).Event(JobHeld{"a"});
  core.Settle();
  EXPECT_FALSE(ForecastStarts(View(core.state, core.now), core.policy())[0]);
}

TEST(Forecast, AsksTheStateAndLeavesItAlone) {
  CoreHarness core("Tiresias");
  core.Nodes(1, 1).Arrive(JobBuilder("a").Remaining(5000)).Arrive(JobBuilder("b").Submit(1).Remaining(200));
  core.Settle();
  const auto rounds = core.state.rounds;
  ForecastStarts(View(core.state, core.now), core.policy());
  EXPECT_EQ(core.state.rounds, rounds);
  EXPECT_EQ(core.Settle(), 0);
}

// A size that others wrote is taken back, so nobody waits for the job to end.
TEST(Forecast, WorkersThatAreNotClaimedAreInNobodysWay) {
  CoreHarness core("FIFO");
  core.Nodes(1, 8).Arrive(JobBuilder("thief").Sizes(1, 1, 8).Remaining(5000));
  core.Settle();
  core.now = 100;
  core.Event(WorkersObserved{"thief", std::vector<std::string>(8, "n0")});
  core.Arrive(JobBuilder("a").Sizes(7, 7, 7).Submit(1).Remaining(50));
  const auto starts = ForecastStarts(View(core.state, core.now), core.policy());
  EXPECT_FALSE(starts[0]) << "it runs already";
  ASSERT_TRUE(starts[1]);
  EXPECT_DOUBLE_EQ(*starts[1], 100);
}

// Observations may break the rules; they never stop the process.
TEST(Forecast, AnObservedSizeThatIsNotAllowedIsFine) {
  EXPECT_EXIT(
      {
        CoreHarness core;
        core.Nodes(1, 8).Arrive(JobBuilder("a").Allowed({1, 2, 4}).Remaining(1000), {"n0", "n0", "n0"});
        core.Arrive(JobBuilder("b").Sizes(8, 8, 8).Remaining(10));
        core.Arrive(JobBuilder("c").Sizes(2, 2, 2).Remaining(10), {"", "gone"});
        ForecastStarts(View(core.state, core.now), core.policy());
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Forecast, RandomStatesAreForetold) {
  Rng rng(5);
  for (int i = 0; i < 200; ++i) {
    const Snapshot snapshot = testing::RandomSnapshot(rng, {.broken_observations = i % 2 == 0});
    State state;
    state.config.rate_limit = 30;
    for (const Node& node : snapshot.nodes) Reduce(state, NodeAdded{node}, snapshot.now);
    for (const voda::Job& job : snapshot.jobs) {
      std::vector<std::string> on;
      bool allowed = job.workers.empty() || job.curve->IndexOf(job.held()) >= 0;
      for (const NodeIndex at : job.workers) on.push_back(at == kNoNode ? "" : snapshot.node(at).name);
      Reduce(state, JobArrived{job, "c", allowed ? on : std::vector<std::string>{}}, snapshot.now);
    }
    const auto policy = PolicyNamed(Policies()[static_cast<std::size_t>(i) % Policies().size()].name);
    const auto starts = ForecastStarts(View(state, snapshot.now), *policy);
    ASSERT_EQ(starts.size(), state.world.jobs.size());
    for (const auto& start : starts) {
      if (start) {
        EXPECT_GE(*start, snapshot.now);
      }
    }
  }
}

}  // namespace
}  // namespace voda::sim
