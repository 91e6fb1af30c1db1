#include "local/worker_group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/job_folder.h"
#include "local/start_files.h"
#include "local/test_cluster.h"

namespace voda::local {

namespace {

using testing::Folder;
using testing::WaitFor;

// A child that only sleeps; killed at the end.
class Sleeper {
 public:
  explicit Sleeper(const WorkerGroup* group) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    if (group != nullptr && !group->Join()) ::_exit(1);
    for (;;) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  pid_t pid() const { return pid_; }
  bool Runs() const {
    const auto found = FindProcess(pid_);
    return found && *found && !(*found)->zombie;
  }

 private:
  pid_t pid_ = 0;
};

// The group of a start folder; its parameter is the memory limit.
class WorkerGroupTest : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeFolder(start_, 0700));
    auto made = WorkerGroup::Make(GroupName(start_), GetParam());
    if (!made)
      GTEST_SKIP() << "LEFT OUT: what a worker leaves behind in its control group: " << made.error().message;
    group_.emplace(std::move(*made));
  }
  void TearDown() override { KillGroup(start_); }
  bool InGroup(const Sleeper& sleeper) {
    return testing::Slurp(group_->path() + "/cgroup.procs").find(std::to_string(sleeper.pid()) + "\n") !=
           std::string::npos;
  }

  Folder folder_;
  std::string jobs_ = folder_.path() + "/jobs";
  std::string start_ = jobs_ + "/1/w0-0";
  std::optional<WorkerGroup> group_;
};

TEST_P(WorkerGroupTest, IsFoundByTheNameOfItsStart) {
  const Sleeper inside(&*group_);
  const Sleeper outside(nullptr);
  ASSERT_TRUE(WaitFor([&] { return InGroup(inside); }));
  EXPECT_TRUE(KillGroup(jobs_ + "/1/w0-1"));
  EXPECT_TRUE(inside.Runs()) << "the group of another start is another group";
  EXPECT_TRUE(WaitFor([&] { return KillGroup(start_); }));
  EXPECT_FALSE(inside.Runs());
  EXPECT_TRUE(outside.Runs());
}

TEST_P(WorkerGroupTest, AllOfAFolderOfJobsButTheSpared) {
  const Sleeper inside(&*group_);
  ASSERT_TRUE(WaitFor([&] { return InGroup(inside); }));
  EXPECT_TRUE(KillGroups(folder_.path() + "/other", [](const std::string&) { return false; }));
  EXPECT_TRUE(KillGroups(jobs_, [&](const std::string& name) { return name == GroupName(start_); }));
  EXPECT_TRUE(inside.Runs());
  EXPECT_TRUE(WaitFor([&] { return KillGroups(jobs_, [](const std::string&) { return false; }); }));
  EXPECT_FALSE(inside.Runs());
}

TEST_P(WorkerGroupTest, WhatIsInOneOfThatNameIsKilledWhenItIsMadeAgain) {
  const Sleeper inside(&*group_);
  ASSERT_TRUE(WaitFor([&] { return InGroup(inside); }));
  EXPECT_TRUE(WorkerGroup::Make(GroupName(start_), GetParam()));
  EXPECT_TRUE(WaitFor([&] { return !inside.Runs(); }));
}

// A worker can write the file that names its group.
TEST_P(WorkerGroupTest, ANotedPathIsBelievedOnlyIfItIsThatOfTheStart) {
  const Sleeper other(&*group_);
  ASSERT_TRUE(WaitFor([&] { return InGroup(other); }));
  const std::string liar = jobs_ + "/2/w0-0";
  ASSERT_TRUE(MakeFolder(liar, 0700));
  const auto kill_noted = [&](const std::string& path) {
    ASSERT_TRUE(ReplaceFile(CgroupPath(liar), path, 0600, Durable::kNo));
    EXPECT_TRUE(KillGroup(liar)) << path;
    EXPECT_TRUE(other.Runs()) << path;
  };
  kill_noted(group_->path());
  // Of the right name, but no group.
  const std::string forged = folder_.path() + "/" + GroupName(liar);
  ASSERT_TRUE(MakeFolder(forged, 0700));
  ASSERT_TRUE(ReplaceFile(forged + "/cgroup.procs", std::to_string(other.pid()) + "\n", 0600, Durable::kNo));
  kill_noted(forged);
  RemoveTree(forged);
  ASSERT_EQ(::symlink(group_->path().c_str(), forged.c_str()), 0);
  kill_noted(forged);
  kill_noted(group_->path() + "/../" + GroupName(liar));
}

INSTANTIATE_TEST_SUITE_P(All, WorkerGroupTest, ::testing::Values(0, std::int64_t{1} << 30),
                         [](const auto& param) { return param.param == 0 ? "Plain" : "Limited"; });

}  // namespace

}  // namespace voda::local
