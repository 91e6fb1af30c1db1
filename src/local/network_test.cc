#include "local/network.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "local/start_files.h"
#include "local/test_cluster.h"

namespace voda::local {

namespace {

using testing::Folder;
using testing::Lines;
using testing::ShellJob;
using testing::TestCluster;
using testing::TestJob;

std::string NetworkOfThisProcess() {
  std::string name(64, '\0');
  const ssize_t size = ::readlink("/proc/self/ns/net", name.data(), name.size());
  name.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return name;
}

// A worker says in which network it is, how many interfaces that has, and whether loopback is up.
constexpr const char* kTell =
    "echo $(readlink /proc/self/ns/net) $(grep -c : /proc/net/dev) $(grep -c 127.0.0.1 /proc/net/fib_trie) "
    ">> "
    "$VODA_JOB_DIR/network; exec sleep 1000";

class NetworkTest : public ::testing::Test {
 protected:
  std::string jobs() const { return folder_.path() + "/jobs"; }
  std::set<std::string> Networks(std::size_t workers) const {
    std::set<std::string> networks;
    for (const std::string& line : Lines(jobs() + "/1/work/network", workers)) {
      const auto space = line.find(' ');
      networks.insert(line.substr(0, space));
      EXPECT_TRUE(line.substr(space).starts_with(" 1 ")) << line;
      EXPECT_FALSE(line.ends_with(" 0")) << line;
    }
    return networks;
  }

  Folder folder_;
};

TEST_F(NetworkTest, TheWorkersOfAJobShareOneThatIsNotTheMachines) {
  ASSERT_TRUE(MayMakeNetworks()) << "these tests run as root, or where users may make namespaces";
  {
    TestCluster cluster(jobs(), {}, "/proc/self/exe", true);
    cluster->AddJob(ShellJob("job", kTell), false);
    cluster->Run();
    ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
    const auto networks = Networks(2);
    EXPECT_EQ(networks.size(), 1U);
    EXPECT_FALSE(networks.contains(NetworkOfThisProcess()));
  }
  // Also with those that another Voda adds, whatever it does with new jobs.
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", kTell), true);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kGrow, "job", "aaa"), "done");
  EXPECT_EQ(Networks(3).size(), 1U);
}

TEST_F(NetworkTest, TheLauncherOfAnMpiJobHasOne) {
  TestCluster cluster(jobs(), {}, "/proc/self/exe", true);
  TestJob job = ShellJob("job", kTell);
  job.spec.kind = JobKind::kMpiJob;
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  EXPECT_FALSE(Networks(1).contains(NetworkOfThisProcess()));
}

TEST_F(NetworkTest, AWorkerWhoseNeighbourIsGoneDoesNotStartInTheMachinesNetwork) {
  const std::string start = folder_.path() + "/w0-0";
  ASSERT_TRUE(MakeFolder(start, 0700));
  ASSERT_TRUE(ReplaceFile(LockPath(start), Encode(LockRecord{.pid = 0x7ffffff0}), 0600, Durable::kNo));
  const Status entered = EnterNetwork(start);
  ASSERT_FALSE(entered);
  EXPECT_NE(entered.error().message.find("is gone"), std::string::npos) << entered.error().message;
}

}  // namespace

}  // namespace voda::local
