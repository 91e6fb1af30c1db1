// Price over time: whatever arrives, no job waits for ever as long as there is capacity to spare.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/registry.h"
#include "sim/cluster_spec.h"
#include "sim/simulation.h"

namespace voda::sim {
namespace {

WorkloadJob MakeJob(std::string name, double submit, int min, int max, double work) {
  WorkloadJob job;
  job.name = std::move(name);
  job.category = "c";
  job.submit_time = submit;
  job.min = min;
  job.num = min;
  job.max = max;
  job.curve = Curve::Linear(min, max);
  job.work_seconds = work;
  return job;
}

// A large job competes with a stream of small ones, which keeps the cluster nine tenths full and always has
// less work left.
TEST(PriceOverTime, ALargeJobIsNotStarvedByAStreamOfSmallOnes) {
  for (const int min : {1, 2, 4}) {
    Workload workload;
    const double work = 8000;
    workload.jobs.push_back(MakeJob("large", 0, min, 4, work));
    for (int i = 0; i < 4000; ++i) {
      // On 4 GPUs, one job of 70 GPU-seconds plus a start of 2 s comes every 20 s.
      workload.jobs.push_back(MakeJob(fmt::format("small-{:05}", i), 1 + 20.0 * i, 1, 1, 70));
    }
    SimulationConfig config;
    config.nodes = *ParseCluster("1x4");
    config.core.rate_limit = 0;
    config.costs = {.start = 2, .rescale = 2, .migration = 2};
    config.estimates = EstimateMode::kOracle;
    const RunResult run = Simulate(workload, config, "Price", std::move(*MakePolicy("Price")));
    EXPECT_EQ(run.completed, static_cast<int>(workload.jobs.size()));
    const auto large = std::find_if(run.jobs.begin(), run.jobs.end(),
                                    [](const JobResult& job) { return job.name == "large"; });
    ASSERT_TRUE(large->end);
    EXPECT_LT(*large->end, 80000) << "min " << min << ": it ended only after the stream did";
  }
}

// Jobs that differ in work and have as many epochs each. Comparing epochs across them would take the short
// ones for fast sizes.
TEST(PriceOverTime, EpochsOfDifferentLengthDoNotMislead) {
  Workload workload;
  const auto curve = Curve::Of({1, 2, 4, 8}, {1, 1.9, 3.4, 6});
  for (int i = 0; i < 40; ++i) {
    const double work = i % 5 == 0 ? 40'000 : 100 * (1 + i % 7);
    WorkloadJob job = MakeJob(fmt::format("job-{:02}", i), 500.0 * i, 1, 8, work);
    job.num = 1 << (i % 4);
    job.curve = curve;
    job.epochs = 20;
    workload.jobs.push_back(std::move(job));
  }
  SimulationConfig config;
  config.nodes = *ParseCluster("2x8");
  config.report_steps = true;
  const auto mean = [&](EstimateMode mode) {
    config.estimates = mode;
    return Simulate(workload, config, "Price", std::move(*MakePolicy("Price"))).avg_jct_s;
  };
  EXPECT_LT(mean(EstimateMode::kLearned), 1.25 * mean(EstimateMode::kOracle));
}

}  // namespace
}  // namespace voda::sim
