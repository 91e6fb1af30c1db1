// What the launcher of an MPIJob is started with; how it follows its list of hosts is in
// local_cluster_test.cc.
#include <gtest/gtest.h>

#include <limits>

#include "local/job_folder.h"
#include "local/mpi_hosts.h"
#include "local/test_cluster.h"

namespace voda::local {

namespace {

using testing::Folder;
using testing::kSleep;
using testing::Running;
using testing::ShellJob;
using testing::TestCluster;
using testing::WaitFor;

using Devices = std::vector<int>;

class MpiRunnerTest : public ::testing::Test {
 protected:
  ~MpiRunnerTest() override {
    for (const char* const job : {"mpi", "other"}) cluster_->ForgetJob(job);
    EXPECT_TRUE(WaitFor([&] { return Running(folder_.path()).empty(); }));
  }

  static ClusterJob Sleeping(int min, int max) {
    ClusterJob job = ShellJob("mpi", "", min, max);
    job.spec.kind = JobKind::kMpiJob;
    job.spec.launcher.emplace();
    job.spec.launcher->command = {"/bin/sh", "-c", kSleep};
    return job;
  }

  void Start(const ClusterJob& job, const std::string& seats) {
    cluster_->AddJob(job, false);
    cluster_->Run();
    ASSERT_EQ(cluster_.Do(ActionKind::kStart, job.name, seats), "done");
  }

  WorkerSpec Launcher() const {
    const auto starts = JobFolder(path()).Starts();
    return starts.empty() ? WorkerSpec{} : starts.back().spec.value_or(WorkerSpec{});
  }

  std::string path() const { return folder_.path() + "/1"; }

  Folder folder_;
  TestCluster cluster_{folder_.path()};
};

struct Memory {
  std::int64_t worker;
  std::int64_t launcher;
  std::int64_t limit;
};
class MpiMemoryTest : public MpiRunnerTest, public ::testing::WithParamInterface<Memory> {};

TEST_P(MpiMemoryTest, IsThatOfAllWorkersAndTheLauncher) {
  ClusterJob job = Sleeping(1, 4);
  job.spec.worker.memory_bytes = GetParam().worker;
  job.spec.launcher->memory_bytes = GetParam().launcher;
  Start(job, "a");
  EXPECT_EQ(Launcher().memory_bytes, GetParam().limit);
}

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
INSTANTIATE_TEST_SUITE_P(Limits, MpiMemoryTest,
                         ::testing::Values(Memory{256 * kMiB, 0, 1024 * kMiB},
                                           Memory{256 * kMiB, 64 * kMiB, 1088 * kMiB},
                                           Memory{0, 64 * kMiB, 0}, Memory{kMost, kMost, kMost / 5 * 5}));

TEST_F(MpiRunnerTest, AJobThatKeepsItsSizeSeesItsOwnDevices) {
  cluster_->AddNode("a", {0, 1, 2, 3});
  Start(Sleeping(2, 2), "aa");
  EXPECT_EQ(Launcher().devices, (Devices{0, 1}));
}

TEST_F(MpiRunnerTest, AJobGrowsOntoTheDevicesOfItsRanks) {
  cluster_->AddNode("a", {0, 1, 2, 3});
  ClusterJob other = ShellJob("other", kSleep);
  other.id = 2;
  cluster_->AddJob(other, false);
  cluster_->AddJob(Sleeping(1, 4), false);
  cluster_->Run();
  ASSERT_EQ(cluster_.Do(ActionKind::kStart, "other", "aa"), "done");
  ASSERT_EQ(cluster_.Do(ActionKind::kStart, "mpi", "a"), "done");
  EXPECT_EQ(Launcher().devices, (Devices{2, 3, 0, 1}));
  ASSERT_EQ(cluster_.Do(ActionKind::kShrink, "other", "a"), "done");
  ASSERT_EQ(cluster_.Do(ActionKind::kGrow, "mpi", "aa"), "done");
  EXPECT_EQ(ReadSeats(path())[1].devices, Devices{3});
  // The next rank would use 0, which the other job holds; 1 is what is free.
  ASSERT_EQ(cluster_.Do(ActionKind::kGrow, "mpi", "aaa"), "done");
  EXPECT_EQ(ReadSeats(path())[2].devices, Devices{1});
}

}  // namespace

}  // namespace voda::local
