#include "sim/bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <queue>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/registry.h"
#include "sim/cluster_spec.h"
#include "sim/load_workload.h"
#include "support/check.h"
#include "support/core_harness.h"
#include "support/generators.h"
#include "support/test_data.h"

namespace voda::sim {
namespace {

using testing::Check;
using testing::PolicyNamed;
using testing::Rng;

constexpr double kSlack = 1e-6;

// Seeds have the full range, whatever RapidCheck's size: a smaller one is no simpler.
rc::Gen<std::uint64_t> Seed() {
  return rc::gen::noShrink(rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint64_t>()));
}

WorkloadJob Job(std::string name, double submit, CurvePtr curve, double work) {
  WorkloadJob job;
  job.name = std::move(name);
  job.category = job.name;
  job.submit_time = submit;
  job.min = curve->min();
  job.num = curve->min();
  job.max = curve->max();
  job.curve = std::move(curve);
  job.work_seconds = work;
  return job;
}

std::string Show(const Workload& workload) {
  std::ostringstream text;
  for (const WorkloadJob& job : workload.jobs) {
    text << job.name << " submit " << job.submit_time << " work " << job.work_seconds << " x"
         << job.gpus_per_worker << " sizes";
    for (int i = 0; i < job.curve->count(); ++i)
      text << ' ' << job.curve->size(i) << ':' << job.curve->speedup(i);
    text << '\n';
  }
  return text.str();
}

// The best schedules whose changes fall on whole seconds, by shortest paths over all possible schedules.
// Times and costs are whole seconds. Stalls are as in SimCluster: a change during a stall replaces it.
class Exhaustive {
 public:
  Exhaustive(const Workload& workload, int gpus, int start, int rescale)
      : workload_(workload), gpus_(gpus), start_(start), rescale_(rescale) {
    for (const WorkloadJob& job : workload.jobs)
      last_arrival_ = std::max(last_arrival_, static_cast<int>(job.submit_time));
  }

  double TotalJct() { return Search(false); }
  double Makespan() { return Search(true); }

 private:
  struct JobState {
    double left = 0;
    int size = 0;
    int stall = 0;
    bool operator<(const JobState& other) const {
      return std::tie(left, size, stall) < std::tie(other.left, other.size, other.stall);
    }
  };
  struct State {
    int time = 0;  // up to the last arrival, after which it does not matter
    PerWorkloadJob<JobState> jobs;
    bool operator<(const State& other) const {
      return std::tie(time, jobs) < std::tie(other.time, other.jobs);
    }
  };

  double Search(bool makespan) {
    makespan_ = makespan;
    std::map<State, double> known;
    using Entry = std::pair<double, State>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    State first;
    for (const WorkloadJob& job : workload_.jobs) first.jobs.push_back({job.work_seconds, 0, 0});
    queue.push({0, first});
    known[first] = 0;
    while (true) {
      const double cost = queue.top().first;
      const State state = queue.top().second;
      queue.pop();
      if (cost > known[state]) continue;
      if (std::all_of(state.jobs.begin(), state.jobs.end(), [](const JobState& j) { return j.left <= 0; }))
        return cost;
      next_ = state;
      Choose(state, 0, gpus_, [&](const State& next, double step) {
        const auto [at, is_new] = known.emplace(next, cost + step);
        if (!is_new && at->second <= cost + step) return;
        at->second = cost + step;
        queue.push({cost + step, next});
      });
    }
  }

  // Visits the sizes of job i and the jobs after it, within `free` GPUs.
  template <class Visit>
  void Choose(const State& state, JobNumber i, int free, const Visit& visit) {
    if (i == state.jobs.end_index()) return Advance(state, visit);
    next_.jobs[i] = state.jobs[i];
    next_.jobs[i].size = 0;
    next_.jobs[i].stall = 0;
    Choose(state, i.next(), free, visit);
    const WorkloadJob& job = workload_.jobs[i];
    if (state.jobs[i].left <= 0 || job.submit_time > state.time) return;
    for (int k = 0; k < job.curve->count(); ++k) {
      const int size = job.curve->size(k);
      if (size * job.gpus_per_worker > free) break;
      JobState& next = next_.jobs[i];
      next = state.jobs[i];
      if (size != next.size) next.stall = next.size == 0 ? start_ : rescale_;
      next.size = size;
      Choose(state, i.next(), free - size * job.gpus_per_worker, visit);
    }
  }

  // Advances by one second at the chosen sizes.
  template <class Visit>
  void Advance(const State& state, const Visit& visit) {
    State next = next_;
    double present = 0;  // job-seconds
    double longest = 0;  // part of this second until the last present job ends
    bool any_left = false;
    for (const JobNumber i : next.jobs.indices()) {
      JobState& job = next.jobs[i];
      if (job.left <= 0) continue;
      if (workload_.jobs[i].submit_time > state.time) {
        any_left = true;
        continue;
      }
      double seconds = 1;
      if (job.stall > 0) {
        --job.stall;
      } else if (job.size > 0) {
        const Curve& curve = *workload_.jobs[i].curve;
        const double rate = curve.speedup(curve.IndexOf(job.size));
        seconds = std::min(1.0, job.left / rate);
        job.left -= rate * seconds;
        if (job.left <= 1e-12) job = {};
      }
      present += seconds;
      longest = std::max(longest, seconds);
      any_left = any_left || job.left > 0;
    }
    next.time = std::min(state.time + 1, last_arrival_);
    visit(next, !makespan_ ? present : any_left ? 1 : longest);
  }

  const Workload& workload_;
  int gpus_;
  int start_;
  int rescale_;
  int last_arrival_ = 0;
  bool makespan_ = false;
  State next_;
};

Workload TinyWorkload(Rng& rng, int jobs, int gpus) {
  Workload workload;
  for (int i = 0; i < jobs; ++i) {
    std::vector<int> sizes;
    std::vector<double> speedup;
    for (int size = 1; size <= gpus; ++size) {
      if (!rng.Chance(0.7) && (size < gpus || !sizes.empty())) continue;
      sizes.push_back(size);
      speedup.push_back(size == 1 ? 1 : 0.5 * rng.Int(1, 2 * size + 1));
    }
    const double submit = i == 0 ? 0 : workload.jobs.back().submit_time + rng.Int(0, 2);
    workload.jobs.push_back(
        Job("j" + std::to_string(i), submit, Curve::Of(std::move(sizes), std::move(speedup)), rng.Int(1, 5)));
  }
  return workload;
}

TEST(Bound, NoScheduleOfAnExhaustiveSearchIsBelow) {
  double tightness = 0;
  int cases = 0;
  Check(
      [&] {
        Rng rng(*Seed());
        const int jobs = rng.Int(2, 3);
        const int gpus = rng.Int(2, jobs == 2 ? 4 : 3);
        const int start = rng.Chance(0.4) ? 0 : rng.Int(1, 3);
        const int rescale = rng.Chance(0.4) ? 0 : rng.Int(1, 3);
        const Workload workload = TinyWorkload(rng, jobs, gpus);
        const LowerBound bound = ComputeLowerBound(
            workload, gpus, {.start = double(start), .rescale = double(rescale), .migration = 1000}, 60);
        Exhaustive search(workload, gpus, start, rescale);
        const double jct = search.TotalJct() / jobs;
        const double makespan = search.Makespan();
        RC_LOG() << Show(workload) << "gpus " << gpus << " start " << start << " rescale " << rescale << '\n'
                 << "bound " << bound.avg_jct_s << " / " << bound.makespan_s << ", search " << jct << " / "
                 << makespan << '\n';
        RC_ASSERT(bound.jobs == jobs);
        RC_ASSERT(bound.avg_jct_s <= jct + kSlack);
        RC_ASSERT(bound.makespan_s <= makespan + kSlack);
        RC_ASSERT(bound.avg_jct_s > 0);
        tightness += bound.avg_jct_s / jct;
        ++cases;
      },
      300);
  EXPECT_GT(tightness / cases, 0.8) << "a bound, but a weak one";
}

TEST(Bound, FourJobsToo) {
  Check(
      [] {
        Rng rng(*Seed());
        const int start = rng.Int(0, 1);
        const Workload workload = TinyWorkload(rng, 4, 2);
        const LowerBound bound = ComputeLowerBound(
            workload, 2, {.start = double(start), .rescale = double(start), .migration = 1000}, 60);
        Exhaustive search(workload, 2, start, start);
        RC_LOG() << Show(workload);
        RC_ASSERT(bound.avg_jct_s <= search.TotalJct() / 4 + kSlack);
        RC_ASSERT(bound.makespan_s <= search.Makespan() + kSlack);
      },
      20);
}

TEST(Bound, NoPolicyIsBelow) {
  Check(
      [] {
        Rng rng(*Seed());
        Workload workload;
        const int nodes = rng.Int(1, 4);
        const int gpus = nodes * 4;
        for (int i = rng.Int(1, 12); i > 0; --i) {
          const int min = rng.Int(1, 3);
          WorkloadJob job = Job("j" + std::to_string(i), 0,
                                testing::RandomCurve(rng, min, rng.Int(min, 10), {}), rng.Int(1, 3000));
          job.submit_time = workload.jobs.empty() ? 0 : workload.jobs.back().submit_time + rng.Unit() * 200;
          job.epochs = rng.Int(1, 20);
          job.gpus_per_worker = rng.Chance(0.3) ? rng.Pick<int>({2, 4}) : 1;
          // Rigid policies give num, so it is a size that fits if any does.
          const int fits = job.curve->FloorIndex(gpus / job.gpus_per_worker);
          job.num = job.curve->size(rng.Int(0, std::max(fits, 0)));
          if (rng.Chance(0.3)) job.start_cost = rng.Int(0, 100);
          if (rng.Chance(0.3)) job.rescale_cost = rng.Int(0, 100);
          if (rng.Chance(0.3)) job.migration_cost = rng.Int(0, 100);
          if (rng.Chance(0.3)) {
            SpanTable spans;
            for (int k = 0; k < job.curve->count(); ++k)
              spans.push_back(
                  {job.curve->size(k), rng.Int(1, 3), (0.5 + rng.Unit()) * job.curve->speedup(k)});
            job.spans = std::make_shared<const SpanTable>(std::move(spans));
          }
          workload.jobs.push_back(std::move(job));
        }
        SimulationConfig config;
        config.nodes = ParseCluster(std::to_string(nodes) + "x4").value();
        config.core.rate_limit = rng.Chance(0.5) ? 0 : 30;
        config.core.placement = rng.Chance(0.5) ? PlacementMode::kStable : PlacementMode::kRepack;
        config.costs = {.start = double(rng.Int(0, 60)),
                        .rescale = double(rng.Int(0, 60)),
                        .migration = double(rng.Int(0, 60))};
        config.estimates = rng.Chance(0.5) ? EstimateMode::kOracle : EstimateMode::kLearned;
        const LowerBound bound = ComputeLowerBound(workload, gpus, config.costs, 60);
        for (const PolicyInfo& info : Policies()) {
          const std::string name(info.name);
          const RunResult run = Simulate(workload, config, name, PolicyNamed(name));
          RC_LOG() << Show(workload) << name << ' ' << run.avg_jct_s << " / " << run.makespan_s << ", bound "
                   << bound.avg_jct_s << " / " << bound.makespan_s << '\n';
          RC_ASSERT(run.completed == bound.jobs);
          RC_ASSERT(run.avg_jct_s >= bound.avg_jct_s - kSlack);
          RC_ASSERT(run.makespan_s >= bound.makespan_s - kSlack);
        }
      },
      100);
}

TEST(Bound, AJobAloneIsExact) {
  const ChangeCosts costs{.start = 39, .rescale = 110, .migration = 97};
  // The job is fastest on 4; 8 are slower.
  const Workload workload{{Job("a", 100, Curve::Of({1, 2, 4, 8}, {1, 1.8, 3, 2.5}), 900)}};
  const LowerBound bound = ComputeLowerBound(workload, 8, costs);
  EXPECT_NEAR(bound.avg_jct_s, 39 + 300, kSlack);
  EXPECT_NEAR(bound.makespan_s, 39 + 300, kSlack);
  EXPECT_NEAR(ComputeLowerBound(workload, 3, costs).makespan_s, 39 + 500, kSlack);
}

TEST(Bound, RigidJobsThatAllFitAreExact) {
  Workload workload;
  for (int i = 0; i < 6; ++i)
    workload.jobs.push_back(Job("j" + std::to_string(i), 0, Curve::Of({2}, {2}), 200));
  const LowerBound bound = ComputeLowerBound(workload, 12, {.start = 10, .rescale = 0, .migration = 50});
  EXPECT_NEAR(bound.avg_jct_s, 110, kSlack);
  EXPECT_NEAR(bound.makespan_s, 110, kSlack);
}

TEST(Bound, RigidJobsThatQueueAreNearlyExact) {
  // 5 batches of 4 that take 110 s each.
  Workload workload;
  for (int i = 0; i < 20; ++i)
    workload.jobs.push_back(Job("j" + std::to_string(100 + i), 0, Curve::Of({1}, {1}), 100));
  const LowerBound bound = ComputeLowerBound(workload, 4, {.start = 10, .rescale = 10, .migration = 50});
  EXPECT_LE(bound.avg_jct_s, 330 + kSlack);
  EXPECT_GE(bound.avg_jct_s, 330 * 0.97);
  EXPECT_NEAR(bound.makespan_s, 550, 1e-3);
}

TEST(Bound, GrowingWhenAnotherEndsIsExactWithoutStalls) {
  // b has one GPU until 10, a has the other one and then both: 10 + 20 / 2 more.
  const Workload workload{{Job("a", 0, Curve::Of({1, 2}, {1, 2}), 30), Job("b", 0, Curve::Of({1}, {1}), 10)}};
  const LowerBound bound = ComputeLowerBound(workload, 2, {0, 0, 0});
  EXPECT_LE(bound.avg_jct_s, 15 + kSlack);
  EXPECT_GE(bound.avg_jct_s, 15 * 0.99);
  EXPECT_NEAR(bound.makespan_s, 20, 1e-3);
}

TEST(Bound, LateWorkCannotHaveBeenDoneBefore) {
  // All areas together fit by 100, but what arrives at 90 does not.
  const Workload workload{{Job("a", 0, Curve::Of({1}, {1}), 10), Job("b", 90, Curve::Of({1}, {1}), 40),
                           Job("c", 90, Curve::Of({1}, {1}), 40), Job("d", 90, Curve::Of({1}, {1}), 40)}};
  EXPECT_NEAR(ComputeLowerBound(workload, 2, {0, 0, 0}).makespan_s, 90 + 60, 1e-3);
}

TEST(Bound, AStallCanBeCutShortByACheaperChange) {
  const Workload workload{{Job("a", 0, Curve::Of({1, 2}, {1, 1}), 100)}};
  EXPECT_NEAR(ComputeLowerBound(workload, 2, {.start = 50, .rescale = 5, .migration = 97}).avg_jct_s, 105,
              kSlack);
  const Workload rigid{{Job("a", 0, Curve::Of({1}, {1}), 100)}};
  EXPECT_NEAR(ComputeLowerBound(rigid, 2, {.start = 50, .rescale = 5, .migration = 97}).avg_jct_s, 150,
              kSlack);
}

TEST(Bound, JobsThatNeverFitDoNotCount) {
  const Workload workload{{Job("a", 0, Curve::Of({8}, {8}), 100), Job("b", 10, Curve::Of({1}, {1}), 100)}};
  const LowerBound bound = ComputeLowerBound(workload, 4, {0, 0, 0});
  EXPECT_EQ(bound.jobs, 1);
  EXPECT_NEAR(bound.avg_jct_s, 100, kSlack);
  EXPECT_NEAR(bound.makespan_s, 110, kSlack) << "from the first submission of all, as in a run";
  EXPECT_EQ(ComputeLowerBound(workload, 0, {}).jobs, 0);
  EXPECT_EQ(ComputeLowerBound({}, 4, {}).avg_jct_s, 0);
}

TEST(Bound, TheBestPlacementCounts) {
  Workload workload{{Job("a", 0, Curve::Of({2}, {1.5}), 300)}};
  workload.jobs[0].spans = std::make_shared<const SpanTable>(SpanTable{{2, 2, 2.0}});
  EXPECT_NEAR(ComputeLowerBound(workload, 4, {0, 0, 0}).avg_jct_s, 150, kSlack);
}

TEST(Bound, MoreIterationsNeverChangeThatItIsABoundAndItRepeats) {
  Rng rng(7);
  const Workload workload = TinyWorkload(rng, 4, 3);
  const double alone = ComputeLowerBound(workload, 1000, {}, 0).avg_jct_s;
  for (const int iterations : {0, 1, 2, 3, 7, 50}) {
    const LowerBound once = ComputeLowerBound(workload, 3, {}, iterations);
    EXPECT_EQ(once.avg_jct_s, ComputeLowerBound(workload, 3, {}, iterations).avg_jct_s);
    EXPECT_GE(once.avg_jct_s, alone - kSlack);
  }
}

TEST(Bound, MostGpusOfAClusterThatChanges) {
  const std::vector<Node> nodes = ParseCluster("2x4").value();
  EXPECT_EQ(MostGpus(nodes, {}), 8);
  EXPECT_EQ(MostGpus(nodes, {{10, NodeRemoved{"n0"}}, {20, NodeAdded{{"n0", 4, NodeState::kReady}}}}), 8);
  EXPECT_EQ(MostGpus(nodes, {{10, NodeAdded{{"x", 2, NodeState::kReady}}}, {20, NodeRemoved{"n1"}}}), 10);
  EXPECT_EQ(MostGpus(nodes, {{10, NodeChanged{"n1", 6, std::nullopt}}}), 10);
}

TEST(RealDataBound, Thesis) {
  VODA_NEEDS_DATA("voda-thesis");
  const ChangeCosts costs{.start = 39.1, .rescale = 110.3, .migration = 97.1};
  struct Expected {
    const char* name;
    double avg_jct_s;
    double makespan_s;
  };
  for (const Expected& expected : {Expected{"run_1", 2150, 4500}, Expected{"run_1_hard", 1330, 4500}}) {
    const std::string file = std::string("workload_") + expected.name + ".csv";
    const Result<Workload> workload =
        LoadWorkload({.path = (DataDir() / "voda-thesis" / file).string(), .format = "thesis"});
    ASSERT_TRUE(workload) << workload.error().message;
    const LowerBound bound = ComputeLowerBound(*workload, 12, costs);
    EXPECT_EQ(bound.jobs, 24);
    EXPECT_GE(bound.avg_jct_s, expected.avg_jct_s);
    EXPECT_GE(bound.makespan_s, expected.makespan_s);
    for (const PolicyInfo& info : Policies()) {
      SimulationConfig config;
      config.nodes = ParseCluster("3x4").value();
      config.costs = costs;
      config.estimates = EstimateMode::kOracle;
      const std::string name(info.name);
      const RunResult run = Simulate(*workload, config, name, PolicyNamed(name));
      EXPECT_LE(bound.avg_jct_s, run.avg_jct_s) << expected.name << ' ' << name;
      EXPECT_LE(bound.makespan_s, run.makespan_s) << expected.name << ' ' << name;
    }
  }
}

TEST(RealDataBound, Pollux) {
  VODA_NEEDS_DATA("pollux");
  double sum = 0;
  for (int i = 1; i <= 8; ++i) {
    const std::string path = (DataDir() / "pollux/workloads.csv").string() + "#1.0/" + std::to_string(i);
    const Result<Workload> workload = LoadWorkload({.path = path, .format = "pollux"});
    ASSERT_TRUE(workload) << workload.error().message;
    SimulationConfig config;
    config.nodes = ParseCluster("16x4").value();
    config.costs = {.start = 30, .rescale = 30, .migration = 30};
    config.estimates = EstimateMode::kOracle;
    const LowerBound bound = ComputeLowerBound(*workload, 64, config.costs);
    EXPECT_EQ(bound.jobs, 160);
    sum += bound.avg_jct_s;
    for (const char* name : {"AFS-L", "SRJF", "FfDLOptimizer"}) {
      const RunResult run = Simulate(*workload, config, name, PolicyNamed(name));
      EXPECT_LE(bound.avg_jct_s, run.avg_jct_s) << i << ' ' << name;
      EXPECT_LE(bound.makespan_s, run.makespan_s) << i << ' ' << name;
    }
  }
  EXPECT_GE(sum / 8, 2200);
}

}  // namespace
}  // namespace voda::sim
