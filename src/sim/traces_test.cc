#include "sim/traces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/csv.h"
#include "sim/load_workload.h"
#include "sim/pollux_spans.h"
#include "support/test_data.h"

namespace voda::sim {
namespace {

double SpeedupAt(const WorkloadJob& job, int size) {
  return job.curve->speedup(job.curve->IndexOf(size));
}

std::string ErrorOf(const Result<Workload>& workload) {
  return workload ? "" : workload.error().message;
}

TEST(Thesis, TakesCurveAndWorkOfTheCategory) {
  const TempDir dir;
  dir.Write("speedup.csv",
            "category,gpus,speedup,one_gpu_seconds\nvgg,1,1,1000\nvgg,2,1.8,1000\nvgg,4,3,1000\n");
  const std::string header = "job_index,submit_s,category,num_proc,min_num_proc,max_num_proc,epochs\n";
  const Result<Workload> workload = ReadThesis(dir.Write("w.csv", header + "3,7,vgg,2,1,4,50\n"));
  ASSERT_TRUE(workload) << workload.error().message;
  const WorkloadJob& job = workload->jobs.at(0);
  EXPECT_EQ(job.name, "vgg-0003");
  EXPECT_EQ(job.submit_time, 7);
  EXPECT_EQ(job.num, 2);
  EXPECT_EQ(job.max, 4);
  EXPECT_EQ(job.epochs, 50);
  EXPECT_EQ(job.work_seconds, 1000);
  EXPECT_DOUBLE_EQ(SpeedupAt(job, 3), 2.4);

  EXPECT_NE(
      ErrorOf(ReadThesis(dir.Write("w.csv", header + "3,7,bert,2,1,4,50\n"))).find("is not in speedup.csv"),
      std::string::npos);
  EXPECT_NE(
      ErrorOf(ReadThesis(dir.Write("w.csv", header + "3,7,vgg,2,3,4,50\n"))).find("column num_proc: '2'"),
      std::string::npos);
}

TEST(Philly, WorkIsDurationTimesSpeedupAtNum) {
  const TempDir dir;
  const std::string path = dir.Write("p.csv",
                                     "submit_s,duration_s,num_gpus,virtual_cluster\n5,100,4,vc1\n0,50,1,vc2\n"
                                     "6,0,1,vc1\n7,10,0,vc1\n8,10,48,vc1\n9,10,128,vc1\n");
  std::vector<std::string> notes;
  const Result<Workload> workload = LoadWorkload({.path = path, .format = "philly"}, &notes);
  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_EQ(workload->jobs.size(), 4U);
  EXPECT_EQ(notes, std::vector<std::string>{"philly: 2 jobs without duration or GPUs were left out"});
  const WorkloadJob& job = workload->jobs[1];
  EXPECT_EQ(job.name, "philly-000000");
  EXPECT_EQ(job.category, "philly-vc1-4gpu");
  EXPECT_EQ(job.min, 1);
  EXPECT_EQ(job.num, 4);
  EXPECT_EQ(job.max, 8);
  EXPECT_EQ(job.epochs, 10);
  EXPECT_DOUBLE_EQ(job.work_seconds, 100 * std::pow(4, 0.8));
  EXPECT_EQ(workload->jobs[2].max, 64) << "at most 64";
  EXPECT_EQ(workload->jobs[3].max, 128) << "at least num";

  const Result<Workload> linear =
      LoadWorkload({.path = path + "#vc2", .format = "philly", .curve = "linear"});
  ASSERT_TRUE(linear) << linear.error().message;
  EXPECT_EQ(linear->jobs.size(), 1U);
  EXPECT_NE(
      ErrorOf(LoadWorkload({.path = path + "#vc9", .format = "philly"})).find("no jobs of cluster 'vc9'"),
      std::string::npos);
  EXPECT_NE(ErrorOf(LoadWorkload({.path = path, .format = "philly", .curve = "cubic"}))
                .find("'cubic' is not a curve"),
            std::string::npos);
}

TEST(Itp, SortsAndFiltersByCluster) {
  const TempDir dir;
  const std::string path = dir.Write(
      "i.csv", "cluster,row,submit_time_s,duration_s,num_gpu\n01,0,9,100,8\n01,1,3,50,1\n02,0,1,50,1\n");
  const Result<Workload> all = LoadWorkload({.path = path, .format = "itp"});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->jobs.size(), 3U);
  const Result<Workload> one = LoadWorkload({.path = path + "#01", .format = "itp"});
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_EQ(one->jobs.size(), 2U);
  EXPECT_EQ(one->jobs[0].name, "itp-01-00001");
  EXPECT_EQ(one->jobs[1].category, "itp-01-8gpu");
  EXPECT_NE(
      ErrorOf(ReadItp(dir.Write("i.csv", "cluster,row,submit_time_s,duration_s,num_gpu\n01,0,9,-1,8\n"), {}))
          .find("i.csv:2: column duration_s: '-1'"),
      std::string::npos);
}

class PolluxFiles : public ::testing::Test {
 protected:
  PolluxFiles() {
    dir_.Write("job_time_vs_gpus.csv",
               "app,batch_size,num_gpus,iter_time_s,total_time_s\nbert,24,1,2,1000\nbert,24,2,1,500\n"
               "bert,24,4,0.8,400\nncf,8,2,1,60\nncf,8,4,1,40\n");
    path_ = dir_.Write("workloads.csv",
                       "set,workload,name,submit_time_s,application,num_replicas,batch_size\n"
                       "1.0,1,bert-0,5,bert,2,24\n1.0,1,ncf-1,6,ncf,6,8\n0.5,3,bert-9,0,bert,1,24\n");
  }
  TempDir dir_;
  std::string path_;
};

TEST_F(PolluxFiles, TakesTheFirstWorkloadUnlessToldOtherwise) {
  const Result<Workload> workload = LoadWorkload({.path = path_, .format = "pollux"});
  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_EQ(workload->jobs.size(), 2U);
  const WorkloadJob& bert = workload->jobs[0];
  EXPECT_EQ(bert.category, "bert-24");
  EXPECT_EQ(bert.epochs, 2);
  EXPECT_EQ(bert.work_seconds, 1000);
  EXPECT_EQ(bert.max, 4);
  EXPECT_EQ(SpeedupAt(bert, 3), 2.25);
  EXPECT_EQ(bert.spans, nullptr) << "no placements measured";
  const WorkloadJob& ncf = workload->jobs[1];
  EXPECT_EQ(ncf.work_seconds, 120) << "linear up to the smallest measured size";
  EXPECT_EQ(SpeedupAt(ncf, 2), 2);
  EXPECT_EQ(SpeedupAt(ncf, 4), 3);
  EXPECT_EQ(ncf.max, 6) << "at least num";

  const Result<Workload> other = LoadWorkload({.path = path_ + "#0.5/3", .format = "pollux"});
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->jobs.at(0).name, "bert-9");
  EXPECT_NE(ErrorOf(LoadWorkload({.path = path_ + "#2.0/1", .format = "pollux"}))
                .find("no workload 1 of set '2.0'"),
            std::string::npos);
  EXPECT_NE(ErrorOf(LoadWorkload({.path = path_ + "#x", .format = "pollux"})).find("is not SET/NUMBER"),
            std::string::npos);
}

TEST_F(PolluxFiles, SpreadingCostsWhatThePlacementsMeasured) {
  // Batch 24 on 2 GPUs: 12 a GPU, in two pieces of 6, between 4 and 8.
  dir_.Write("profiles_placements.csv",
             "app,placement,num_gpus,num_nodes,local_bsz,step_time_s,sync_time_s\n"
             "bert,2,2,1,4,0.1,0\nbert,2,2,1,8,0.1,0\n"
             "bert,11,2,2,4,1,0.5\nbert,11,2,2,8,2,0.5\n"
             "bert,12,3,2,8,1,0.25\nbert,21,3,2,8,2,0.25\n");
  const Result<Workload> workload = LoadWorkload({.path = path_, .format = "pollux"});
  ASSERT_TRUE(workload) << workload.error().message;
  const WorkloadJob& bert = workload->jobs[0];
  EXPECT_EQ(SpeedupAt(bert, 2), 2) << "the packed curve stands";
  ASSERT_TRUE(bert.spans);
  ASSERT_EQ(bert.spans->size(), 1U) << "3 GPUs have no packed measurement";
  EXPECT_EQ(bert.spans->front().workers, 2);
  EXPECT_EQ(bert.spans->front().nodes, 2);
  EXPECT_DOUBLE_EQ(bert.spans->front().speedup, 2 / (1.5 + 1.0));

  const Result<PlacementProfiles> profiles = PlacementProfiles::Read(dir_.Path("profiles_placements.csv"));
  ASSERT_TRUE(profiles);
  EXPECT_DOUBLE_EQ(profiles->IterationSeconds({.app = "bert", .size = 24}, 3, 2).value(), 1.5)
      << "mean of two placements";
  EXPECT_FALSE(profiles->IterationSeconds({.app = "bert", .size = 24}, 4, 2));
  EXPECT_FALSE(profiles->IterationSeconds({.app = "bert", .size = 2}, 2, 1))
      << "below the smallest measured local batch";
}

TEST(RealData, Thesis) {
  VODA_NEEDS_DATA("voda-thesis");
  for (const char* name : {"workload_run_1.csv", "workload_run_1_hard.csv"}) {
    const Result<Workload> workload =
        LoadWorkload({.path = (DataDir() / "voda-thesis" / name).string(), .format = "thesis"});
    ASSERT_TRUE(workload) << workload.error().message;
    ASSERT_EQ(workload->jobs.size(), 24U);
    EXPECT_EQ(workload->jobs[0].name, "cifar10-inceptionv3-0000");
    EXPECT_EQ(workload->jobs[0].work_seconds, 3958);
    EXPECT_EQ(SpeedupAt(workload->jobs[0], 4), 3.5);
  }
}

TEST(RealData, Philly) {
  VODA_NEEDS_DATA("philly");
  const Result<Workload> workload =
      LoadWorkload({.path = (DataDir() / "philly/philly_jobs.csv.gz").string(), .format = "philly"});
  ASSERT_TRUE(workload) << workload.error().message;
  EXPECT_EQ(workload->jobs.size(), 82247U);
  double gpu_hours = 0;
  for (const WorkloadJob& job : workload->jobs) {
    gpu_hours += job.work_seconds / SpeedupAt(job, job.num) * job.num / 3600;
  }
  EXPECT_NEAR(gpu_hours, 978e3, 1e3) << "the total its README gives";
}

TEST(RealData, Itp) {
  VODA_NEEDS_DATA("itp");
  const std::string path = (DataDir() / "itp/ms_itp_raw_jobs.csv.gz").string();
  const Result<Workload> all = LoadWorkload({.path = path, .format = "itp"});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->jobs.size(), 69351U);
  const Result<Workload> one = LoadWorkload({.path = path + "#04", .format = "itp"});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->jobs.size(), 15802U);
}

TEST(RealData, Pollux) {
  VODA_NEEDS_DATA("pollux");
  const std::string path = (DataDir() / "pollux/workloads.csv").string();
  for (const char* select : {"", "#1.0/6", "#0.5/8"}) {
    const Result<Workload> workload = LoadWorkload({.path = path + select, .format = "pollux"});
    ASSERT_TRUE(workload) << workload.error().message;
    EXPECT_EQ(workload->jobs.size(), std::string(select) == "#0.5/8" ? 80U : 160U);
    for (const WorkloadJob& job : workload->jobs) {
      ASSERT_LE(job.max, 64);
      ASSERT_EQ(job.curve->count(), job.max);
      ASSERT_TRUE(job.spans) << job.category;
      if (job.category != "yolov3-64") continue;
      EXPECT_NEAR(SpeedupAt(job, 4), 2.94, 0.01) << "peaks at 4 GPUs";
      EXPECT_NEAR(SpeedupAt(job, 8), 1.58, 0.01) << "and falls";
      EXPECT_EQ(job.spans->front().workers, 2);
      EXPECT_NEAR(job.spans->front().speedup, 1.525, 0.001) << "two GPUs on two nodes";
    }
  }
}

TEST(RealData, PolluxIterationTimesAgreeWithThePackedTable) {
  VODA_NEEDS_DATA("pollux");
  const Result<PlacementProfiles> profiles =
      PlacementProfiles::Read((DataDir() / "pollux/profiles_placements.csv").string());
  ASSERT_TRUE(profiles) << profiles.error().message;
  enum Column { kApp, kBatch, kGpus, kNodes, kIteration };
  Result<CsvReader> reader = CsvReader::Open(
      (DataDir() / "pollux/job_time_vs_gpus.csv").string(),
      {.columns = {{"app"}, {"batch_size"}, {"num_gpus"}, {"num_nodes_packed4"}, {"iter_time_s"}},
       .allow_unknown = true});
  ASSERT_TRUE(reader) << reader.error().message;
  const std::pair<std::string_view, int> kLargest[] = {{"bert", 384},        {"cifar10", 4096},
                                                       {"ncf", 32768},       {"imagenet", 12800},
                                                       {"deepspeech2", 640}, {"yolov3", 512}};
  int compared = 0;
  while (reader->Next()) {
    const int gpus = reader->Int(kGpus, 1, 64);
    // These shapes can be placed in only one way; on one GPU the table follows a rule of its own.
    if (gpus != 2 && gpus != 3 && gpus != 4 && gpus != 12 && gpus != 15 && gpus != 16) continue;
    const int batch = reader->Int(kBatch, 1, 1 << 30);
    const std::string_view app = reader->Text(kApp);
    const auto largest = std::find(std::begin(kLargest), std::end(kLargest), std::pair(app, batch));
    const auto seconds = profiles->IterationSeconds({.app = app,
                                                     .size = batch,
                                                     .largest_local = app == "yolov3" ? 8 : 0,
                                                     .may_grow = largest == std::end(kLargest)},
                                                    gpus, reader->Int(kNodes, 1, 16));
    if (!seconds) continue;
    EXPECT_NEAR(*seconds, reader->Number(kIteration, 0, 1e9), 2e-6) << app << " " << batch << " on " << gpus;
    ++compared;
  }
  EXPECT_FALSE(reader->failed());
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace voda::sim
