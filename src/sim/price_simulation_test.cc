// Price over time: nobody waits for ever, whatever arrives, as long as there is capacity to spare.
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

// A large job against a stream of small ones that keeps the cluster nine tenths full and always has less
// left.
TEST(PriceOverTime, ALargeJobIsNotStarvedByAStreamOfSmallOnes) {
  for (const int min : {1, 2, 4}) {
    Workload workload;
    const double work = 8000;
    workload.jobs.push_back(MakeJob("large", 0, min, 4, work));
    for (int i = 0; i < 4000; ++i) {
      // 4 GPUs; one job of 70 GPU-seconds plus a start of 2 s every 20 s.
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

}  // namespace
}  // namespace voda::sim
