// The command and environment of an MPIJob's launcher; local_cluster_test.cc tests how it follows its list
// of hosts.
#include <gtest/gtest.h>
#include <unistd.h>

#include <limits>

#include "local/job_folder.h"
#include "local/mpi_hosts.h"
#include "local/plain_path.h"
#include "local/test_cluster.h"

namespace voda::local {

namespace {

using testing::Folder;
using testing::kSleep;
using testing::Running;
using testing::ShellJob;
using testing::TestCluster;
using testing::TestJob;
using testing::WaitFor;

using Devices = std::vector<int>;

class MpiRunnerTest : public ::testing::Test {
 protected:
  ~MpiRunnerTest() override {
    for (const char* const job : {"mpi", "other"}) cluster_->ForgetJob(job);
    EXPECT_TRUE(WaitFor([&] { return Running(folder_.path()).empty(); }));
  }

  static TestJob Sleeping(int min, int max) {
    TestJob job = ShellJob("mpi", "", min, max);
    job.spec.kind = JobKind::kMpiJob;
    job.spec.launcher.emplace();
    job.spec.launcher->command = {"/bin/sh", "-c", kSleep};
    return job;
  }

  void Start(const TestJob& job, const std::string& seats) {
    cluster_->AddJob(job, false);
    cluster_->Run();
    ASSERT_EQ(cluster_.Do(ActionKind::kStart, job.name, seats), "done");
  }

  WorkerSpec Launcher() const {
    const auto starts = JobFolder(path()).Starts().value();
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
  TestJob job = Sleeping(1, 4);
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

TEST_F(MpiRunnerTest, AFolderWithSpacesAndQuotesIsNamedSoThatEveryShellTakesIt) {
  const std::string odd = folder_.path() + "/it's \"my\" data";
  TestCluster cluster(odd);
  TestJob job = Sleeping(1, 4);
  // Without quotes, in both kinds of them, and through a second shell, as Horovod does it.
  job.spec.launcher->command = {"/bin/sh", "-c",
                                "cd \"$VODA_JOB_DIR\" && /etc/mpi/discover_hosts.sh > 1 && "
                                "\"/etc/mpi/discover_hosts.sh\" > 2 && '/etc/mpi/discover_hosts.sh' > 3 && "
                                "sh -c $VODA_DISCOVER_HOSTS > 4 && exec sleep 1000"};
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, job.name, "aa"), "done");
  for (const char* const file : {"1", "2", "3", "4"})
    EXPECT_EQ(testing::Lines(odd + "/1/work/" + file, 1), std::vector<std::string>{"localhost:2"}) << file;
  cluster->ForgetJob("mpi");
  EXPECT_TRUE(WaitFor([&] { return Running(odd).empty(); }));
  if (const auto link = PlainPath(odd)) ::unlink(link->c_str());
}

TEST_F(MpiRunnerTest, AJobGrowsOntoTheDevicesOfItsRanks) {
  cluster_->AddNode("a", {0, 1, 2, 3});
  TestJob other = ShellJob("other", kSleep);
  other.id = 2;
  cluster_->AddJob(other, false);
  cluster_->AddJob(Sleeping(1, 4), false);
  cluster_->Run();
  ASSERT_EQ(cluster_.Do(ActionKind::kStart, "other", "aa"), "done");
  ASSERT_EQ(cluster_.Do(ActionKind::kStart, "mpi", "a"), "done");
  EXPECT_EQ(Launcher().devices, (Devices{2, 3, 0, 1}));
  ASSERT_EQ(cluster_.Do(ActionKind::kShrink, "other", "a"), "done");
  ASSERT_EQ(cluster_.Do(ActionKind::kGrow, "mpi", "aa"), "done");
  EXPECT_EQ(ReadSeats(path()).value()[1].devices, Devices{3});
  // The next rank would use 0, which the other job holds; 1 is free.
  ASSERT_EQ(cluster_.Do(ActionKind::kGrow, "mpi", "aaa"), "done");
  EXPECT_EQ(ReadSeats(path()).value()[2].devices, Devices{1});
}

}  // namespace

}  // namespace voda::local
