#include "sim/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/assets.h"
#include "sim/load_workload.h"
#include "sim/workload_csv.h"

namespace voda::sim {
namespace {

ProfileTable Builtin() {
  return *ParseProfiles("built-in", kEmbedSpeedupsCsv);
}

Workload Generate(std::string_view text, std::uint64_t seed = 1) {
  const Result<Workload> workload = GenerateWorkload(text, seed, Builtin());
  EXPECT_TRUE(workload) << workload.error().message;
  return workload ? *workload : Workload();
}

std::string Csv(const Workload& workload) {
  std::ostringstream out;
  WriteWorkloadCsv(workload, out);
  return out.str();
}

double Span(const Workload& workload) {
  return workload.jobs.back().submit_time - workload.jobs.front().submit_time;
}

TEST(Random, IsSplitMix64) {
  Random random(1234567);  // the published test vector
  EXPECT_EQ(random.Next(), 6457827717110365317U);
  EXPECT_EQ(random.Next(), 3203168211198807973U);
  EXPECT_EQ(random.Next(), 9817491932198370423U);
}

TEST(Random, DistributionsHaveTheirMoments) {
  Random random(3);
  const int n = 200'000;
  double uniform = 0, exponential = 0, normal = 0, squares = 0;
  for (int i = 0; i < n; ++i) {
    uniform += random.Uniform();
    exponential += random.Exponential();
    const double x = random.Normal();
    normal += x;
    squares += x * x;
    const int below = random.Below(7);
    ASSERT_TRUE(below >= 0 && below < 7);
  }
  EXPECT_NEAR(uniform / n, 0.5, 0.005);
  EXPECT_NEAR(exponential / n, 1, 0.01);
  EXPECT_NEAR(normal / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

TEST(Generate, SameSeedSameBytesOtherSeedOtherJobs) {
  for (const char* text :
       {"gen:poisson?jobs=300", "gen:bursts?jobs=300&burst=30", "gen:poisson?jobs=50&sizes=powers"}) {
    EXPECT_EQ(Csv(Generate(text)), Csv(Generate(text)));
    EXPECT_NE(Csv(Generate(text)), Csv(Generate(text, 2)));
  }
  EXPECT_EQ(Csv(Generate("gen:poisson?seed=5", 1)), Csv(Generate("gen:poisson", 5)))
      << "the text's seed leads";
}

TEST(Generate, BytesAreTheSameWithEveryCompiler) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const unsigned char c : Csv(Generate("gen:poisson?jobs=1000&load=0.9&gpus=64")))
    hash = (hash ^ c) * 0x100000001b3;
  EXPECT_EQ(hash, 7900954075854112801U) << "the generator changed: workloads named by a seed are others now";
}

TEST(Generate, PoissonKeepsItsMeanInterval) {
  const Workload workload = Generate("gen:poisson?jobs=20000&interval=30");
  EXPECT_EQ(workload.jobs.front().submit_time, 0);
  EXPECT_NEAR(Span(workload) / 20000, 30, 1);
  EXPECT_NEAR(Span(Generate("gen:poisson?jobs=20000&rate=0.02")) / 20000, 50, 1.5);
}

TEST(Generate, BurstsComeTogetherAndApart) {
  const Workload workload = Generate("gen:bursts?jobs=50&burst=20&within=60&every=1000");
  ASSERT_EQ(workload.jobs.size(), 50U);
  for (const JobNumber i : workload.jobs.indices()) {
    const int number = static_cast<int>(i) / 20;
    const double burst = 1000.0 * number;
    EXPECT_GE(workload.jobs[i].submit_time, burst);
    EXPECT_LE(workload.jobs[i].submit_time, burst + 60);
  }
}

TEST(Generate, SizesAndDurationsFollowTheTraces) {
  for (const auto& [like, one_gpu, median] :
       {std::tuple{"philly", 0.9317, 1117.0}, {"itp", 0.8317, 10132.0}}) {
    const Result<Workload> workload =
        GenerateWorkload(std::string("gen:poisson?jobs=20000&max=64&like=") + like, 1, {}, "linear");
    ASSERT_TRUE(workload) << workload.error().message;
    std::vector<double> seconds;
    for (const WorkloadJob& job : workload->jobs) {
      ASSERT_LE(job.max, 64);
      ASSERT_EQ(job.max, std::min(64, 2 * job.num));
      if (job.num == 1) seconds.push_back(job.work_seconds);
    }
    EXPECT_NEAR(static_cast<double>(seconds.size()) / 20000, one_gpu, 0.01);
    std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2),
                     seconds.end());
    EXPECT_NEAR(seconds[seconds.size() / 2], median, 0.06 * median);
  }
}

TEST(Generate, LoadIsAskedForGpuSecondsOverCapacity) {
  for (const char* kind : {"gen:poisson?", "gen:bursts?burst=10&within=0&"}) {
    const Result<Workload> workload =
        GenerateWorkload(std::string(kind) + "jobs=5000&load=0.8&gpus=32&like=itp", 1, {}, "linear");
    ASSERT_TRUE(workload) << workload.error().message;
    double gpu_seconds = 0;
    for (const WorkloadJob& job : workload->jobs) {
      gpu_seconds += job.work_seconds;  // linear: duration × num
      ASSERT_LE(job.max, 32);
    }
    EXPECT_NEAR(gpu_seconds / (32 * Span(*workload)), 0.8, 0.05) << kind;
  }
}

TEST(Generate, PowersAndGrowthShapeTheSizes) {
  for (const WorkloadJob& job :
       Generate("gen:poisson?jobs=2000&max=16&growth=6&sizes=powers&like=itp").jobs) {
    for (int i = 0; i < job.curve->count(); ++i) ASSERT_EQ(job.curve->size(i), 1 << i);
    ASSERT_LE(job.max, 16);
    ASSERT_EQ(job.curve->max(), job.max);
    ASSERT_GE(job.curve->IndexOf(job.num), 0);
  }
}

TEST(Generate, RefusesWhatItDoesNotKnow) {
  const auto error = [](std::string_view text) {
    const Result<Workload> workload = GenerateWorkload(text, 1, Builtin());
    return workload ? std::string() : workload.error().message;
  };
  EXPECT_NE(error("gen:uniform").find("unknown generator 'uniform'; known are"), std::string::npos);
  EXPECT_NE(error("gen:poisson?every=3").find("unknown parameter 'every'; known are"), std::string::npos);
  EXPECT_NE(error("gen:poisson?jobs=0").find("jobs '0' is not a whole number"), std::string::npos);
  EXPECT_NE(error("gen:poisson?jobs").find("is not key=value"), std::string::npos);
  EXPECT_NE(error("gen:poisson?jobs=1&jobs=2").find("given twice"), std::string::npos);
  EXPECT_NE(error("gen:poisson?load=0.5").find("give gpus too"), std::string::npos);
  EXPECT_NE(error("gen:poisson?rate=1&interval=2").find("give one"), std::string::npos);
  EXPECT_NE(error("gen:bursts?load=1&gpus=4&every=2").find("give one"), std::string::npos);
  EXPECT_NE(error("gen:poisson?like=borg").find("is not philly or itp"), std::string::npos);
  EXPECT_NE(error("gen:poisson?interval=nan").find("interval 'nan' is not a number"), std::string::npos);
  EXPECT_NE(error("gen:poisson?jobs=100000&interval=1000000").find("the last job comes after"),
            std::string::npos);
}

TEST(Generate, IsReachedThroughThePath) {
  const Result<Workload> workload = LoadWorkload({.path = "gen:poisson?jobs=7", .seed = 3});
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(Csv(*workload), Csv(Generate("gen:poisson?jobs=7", 3)));
}

}  // namespace
}  // namespace voda::sim
