// A Voda goes away, and the next one starts on the same folder.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <memory>
#include <random>

#include "local/environment.h"
#include "local/job_folder.h"
#include "local/launch.h"
#include "local/test_cluster.h"
#include "local/worker_group.h"

extern char** environ;  // NOLINT: POSIX

namespace voda {

namespace {

using testing::Folder;
using testing::HangingShim;
using testing::kSleep;
using testing::Lines;
using testing::Running;
using testing::ShellJob;
using testing::Slurp;
using testing::TestCluster;
using testing::TestJob;
using testing::WaitFor;

using Strings = std::vector<std::string>;

class AdoptionTest : public ::testing::Test {
 protected:
  ~AdoptionTest() override {
    for (const local::JobProcess& left : testing::ProcessesBelow(jobs()))
      local::Signal(left.process, SIGKILL);
  }

  std::string jobs() const { return folder_.path() + "/jobs"; }
  std::string work() const { return jobs() + "/1/work"; }
  Strings Workers() const {
    Strings numbers = Running(jobs());
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }
  pid_t Pid(int worker) const {
    const Strings lines = Lines(work() + "/pid." + std::to_string(worker), 1);
    return lines.empty() ? -1 : static_cast<pid_t>(std::stol(lines[0]));
  }
  pid_t ShimOf(const std::string& start) const {
    const std::string lock = Slurp(jobs() + "/1/" + start + "/lock");
    return lock.starts_with("pid ") ? static_cast<pid_t>(std::stol(lock.substr(4))) : -1;
  }
  // Runs the job at these seats under a Voda that then goes away.
  void Leave(const TestJob& job, const std::string& seats) {
    TestCluster cluster(jobs());
    cluster->AddJob(job, false);
    cluster->Run();
    ASSERT_EQ(cluster.Do(ActionKind::kStart, job.name, seats), "done");
  }
  // Waits until the shim of a start is gone.
  void WaitRecorded(const std::string& start) const {
    ASSERT_TRUE(WaitFor([&] { return !local::LockHeld(jobs() + "/1/" + start).value(); }));
  }

  static void Kill(pid_t pid) {
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  }

  Folder folder_;
};

// The numbers of jobs began anew, or folders were moved: what ran in the folder is nothing to the job that
// has its number now.
TEST_F(AdoptionTest, AJobDoesNotInheritTheFolderOfAnother) {
  Leave(ShellJob("old", "echo old > $VODA_JOB_DIR/checkpoint; sleep 1; exit 0"), "a");
  WaitRecorded("w0-0");
  for (const bool known : {true, false}) {
    TestCluster cluster(jobs());
    TestJob job = ShellJob("new", kSleep);
    job.token = "another secret";
    EXPECT_EQ(cluster->AddJob(job, known), Strings{});
    cluster->Run();
    const std::string refused = cluster.Do(ActionKind::kStart, "new", "a");
    EXPECT_NE(refused.find("/1 belongs to another job"), std::string::npos) << refused;
    EXPECT_EQ(cluster.Count<JobCompleted>(), 0);
    EXPECT_EQ(Workers(), Strings{});
    EXPECT_EQ(cluster->LogFiles(1, job.token, 0), Strings{});
    EXPECT_EQ(cluster->LogFiles(1, "secret", 0).size(), 1U);
    cluster->ForgetJob("new");
    cluster->EraseJob(1, job.token);
    // Orders are carried out after that, and it was done once there is no such job.
    EXPECT_TRUE(WaitFor(
        [&] { return cluster.Do(ActionKind::kStart, "new", "a").starts_with("there is no job new"); }));
    EXPECT_EQ(cluster.Do(ActionKind::kStart, "nobody", "a"), "there is no job nobody on this machine");
    EXPECT_TRUE(local::Exists(work() + "/checkpoint"));
  }
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->LastId(), 1);
  cluster->AddJob(ShellJob("old", kSleep), true);
  cluster->Run();
  EXPECT_EQ(cluster.End("old"), "completed") << "it is still the folder of the old job";
}

// The store was put back from an older copy, in which a job that has ended since is active.
TEST_F(AdoptionTest, AJobThatHasEndedIsNotRunForAnOlderStore) {
  const std::string ended = jobs() + "/1/ended";
  TestJob job = ShellJob("job", kSleep);
  Leave(job, "a");
  {
    TestCluster cluster(jobs());
    cluster->AddJob(job, true);
    cluster->Run();
    cluster->ForgetJob("job");  // it was deleted
    ASSERT_TRUE(WaitFor([&] { return local::Exists(ended); }));
    WaitRecorded("w0-0");
  }
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), Strings{});
  const ActionId start = cluster.Order(ActionKind::kStart, "job", "a");
  cluster->Run();
  EXPECT_TRUE(WaitFor([&] { return cluster.Gone() == Strings{"job"}; }));
  // The scheduler lets go of a deleted job once nothing is in flight for it.
  EXPECT_EQ(cluster.Outcome(start), "the job has ended");
  EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "the job has ended");
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "nobody", "a"), "there is no job nobody on this machine");
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster.Count<ActionDone>(), 0);
}

TEST_F(AdoptionTest, AJobCannotKeepItsEndFromBeingNoted) {
  const TestJob job = ShellJob("job", "mkdir -p $VODA_JOB_DIR/../ended/full; exec sleep 1000");
  TestCluster cluster(jobs());
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  ASSERT_TRUE(WaitFor([&] { return local::Exists(jobs() + "/1/ended/full"); }));
  ASSERT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  cluster->ForgetJob("job");
  const local::JobFolder folder(jobs() + "/1");
  EXPECT_TRUE(WaitFor([&] { return folder.End().value().has_value(); }, 5));
}

TEST_F(AdoptionTest, AJobEndsForAnOlderStoreAsItDid) {
  TestJob job = ShellJob("job", "echo $VODA_WORKER >> $VODA_JOB_DIR/runs; exit 3");
  job.spec.restart_policy = RestartPolicy::kNo;
  for (const bool again : {false, true}) {
    TestCluster cluster(jobs());
    cluster->AddJob(job, again);
    cluster.Order(ActionKind::kStart, "job", "a");
    cluster->Run();
    EXPECT_NE(cluster.End("job").find("exited with code 3"), std::string::npos) << cluster.End("job");
    EXPECT_EQ(Slurp(work() + "/runs"), "0\n");
    cluster->ForgetJob("job");
    ASSERT_TRUE(WaitFor([&] { return local::Exists(jobs() + "/1/ended"); }));
  }
}

// Voda is killed before it has confirmed the start, and the worker ends meanwhile. Whoever takes the job over
// counts the run, and the end must not tell of it again: a start that was ordered by then would count, too.
TEST_F(AdoptionTest, ARunThatNobodySawIsToldOfOnce) {
  const TestJob job =
      ShellJob("job", "while [ ! -e " + folder_.path() + "/go ]; do sleep 0.05; done; exit 0");
  {
    TestCluster cluster(jobs(), {.trial = 1000});
    cluster->AddJob(job, false);
    cluster->Run();
    cluster.Order(ActionKind::kStart, "job", "a");
    ASSERT_TRUE(WaitFor([&] { return Workers() == Strings{"0"}; }));
  }
  ASSERT_TRUE(local::ReplaceFile(folder_.path() + "/go", "", 0600, local::Durable::kNo));
  WaitRecorded("w0-0");
  TestCluster cluster(jobs());
  cluster->AddJob(job, true);
  EXPECT_GT(cluster->RanUnheard("job"), 0);
  cluster.Order(ActionKind::kStart, "job", "a");
  cluster->Run();
  EXPECT_EQ(cluster.End("job"), "completed");
  EXPECT_EQ(cluster.Ran<JobCompleted>(), 0);
}

// A job can lock files that look like those of starts.
TEST_F(AdoptionTest, LocksOfAJobHoldUpNobody) {
  const TestJob job = ShellJob("job", kSleep);
  Leave(job, "a");
  constexpr int kLocks = 40;
  std::vector<Fd> locks;
  for (int i = 0; i < kLocks; ++i) {
    const std::string start = local::StartPath(jobs() + "/1", 0, 100 + i);
    ASSERT_TRUE(local::MakeFolder(start, 0700));
    auto lock = local::TakeLock(start);
    ASSERT_TRUE(lock);
    locks.push_back(std::move(*lock));
  }
  TestCluster cluster(jobs());
  const double begun = UptimeNow();
  EXPECT_EQ(cluster->AddJob(job, true), Strings{}) << "nothing is known of it yet";
  cluster->Run();
  EXPECT_LT(UptimeNow() - begun, kLocks * 2) << "it waited for each of the locks";
  EXPECT_TRUE(WaitFor([&] { return cluster.Observed("job") == "a"; })) << "it is taken over in the end";
  EXPECT_GE(cluster.Notices(JobNotice::Kind::kStuck), 1) << "its user is told meanwhile";
  EXPECT_EQ(Workers(), Strings{"0"});
}

const char* const kWithPid = "echo $$$$ > $VODA_JOB_DIR/pid.$VODA_WORKER; exec sleep 1000";

TEST_F(AdoptionTest, WhatRunsIsAdoptedAndGoesOn) {
  const TestJob job = ShellJob("job", kWithPid);
  Leave(job, "abb");
  const pid_t before = Pid(1);
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), (Strings{"a", "b", "b"}));
  EXPECT_EQ(cluster->RanUnheard("job"), 0);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kGrow, "job", "abba"), "done");
  EXPECT_EQ(Pid(1), before);
  EXPECT_EQ(cluster.Do(ActionKind::kShrink, "job", "a"), "done");
  EXPECT_EQ(Workers(), (Strings{"0"}));
  EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster.Count<WorkersObserved>() + cluster.Count<JobFailed>(), 0);
}

TEST_F(AdoptionTest, StartsThatWereNotReadyAreForgotten) {
  const TestJob job = ShellJob("job", kWithPid);
  const std::string shim = HangingShim(folder_.path(), "*/w1-*");
  {
    TestCluster cluster(jobs(), {.shim = 3600}, shim);
    cluster->AddJob(job, false);
    cluster->Run();
    cluster.Order(ActionKind::kStart, "job", "ab");
    ASSERT_EQ(Lines(folder_.path() + "/hanging", 1).size(), 1U);
  }
  EXPECT_TRUE(WaitFor([&] { return !local::LockHeld(jobs() + "/1/w0-0").value(); }));
  EXPECT_FALSE(local::LockHeld(jobs() + "/1/w1-1").value());
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), Strings{});
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "1"}));
  EXPECT_EQ(cluster->Failures("job"), 0);
}

TEST_F(AdoptionTest, GrownWorkersMeetTheAdoptedOnes) {
  const TestJob job =
      ShellJob("job", "echo $PET_RDZV_ID $PET_RDZV_ENDPOINT >> $VODA_JOB_DIR/meet; exec sleep 1000");
  Leave(job, "a");
  TestCluster cluster(jobs());
  cluster->AddJob(job, true);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kGrow, "job", "ab"), "done");
  const Strings lines = Lines(work() + "/meet", 2);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], lines[1]);
}

TEST_F(AdoptionTest, DevicesOfAdoptedWorkersAreTaken) {
  TestJob job = ShellJob("job", "echo $CUDA_VISIBLE_DEVICES >> $VODA_JOB_DIR/devices; exec sleep 1000");
  {
    TestCluster cluster(jobs());
    cluster->AddNode("a", {0, 1});
    cluster->AddJob(job, false);
    cluster->Run();
    ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  }
  TestCluster cluster(jobs());
  cluster->AddNode("a", {0, 1});
  cluster->AddJob(job, true);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kGrow, "job", "aa"), "done");
  EXPECT_EQ(Lines(work() + "/devices", 2), (Strings{"0", "1"}));
}

TEST_F(AdoptionTest, AJobThatCompletedMeanwhileIsComplete) {
  TestJob job = ShellJob(
      "job", "[ $VODA_WORKER = 1 ] && exec sleep 1000; while [ ! -e $VODA_JOB_DIR/go ]; do sleep 0.05; done");
  job.spec.grace_seconds = 1;
  Leave(job, "ab");
  ASSERT_TRUE(local::ReplaceFile(work() + "/go", "", 0600, local::Durable::kNo));
  WaitRecorded("w0-0");
  // The verdict is reported as long as somebody asks: the run before may not have written it down.
  for (int run = 0; run < 2; ++run) {
    TestCluster cluster(jobs());
    EXPECT_EQ(cluster->AddJob(job, true), run == 0 ? (Strings{"", "b"}) : Strings{});
    EXPECT_GT(cluster->RanUnheard("job"), 0);
    cluster->Run();
    cluster.Order(ActionKind::kStart, "job", "ab");
    EXPECT_EQ(cluster.End("job"), "completed");
    EXPECT_EQ(Workers(), Strings{});
    EXPECT_EQ(cluster.Count<WorkersObserved>(), 0);
  }
}

TEST_F(AdoptionTest, OfAWorkerThatItStoppedVodaHasHeard) {
  const TestJob job = ShellJob("job", kSleep);
  {
    TestCluster cluster(jobs());
    cluster->AddJob(job, false);
    cluster->Run();
    ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
    ASSERT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  }
  ASSERT_EQ(::unlink((jobs() + "/1/w0-0/verdict").c_str()), 0) << "a full disk would not have taken it";
  TestCluster cluster(jobs());
  cluster->AddJob(job, true);
  EXPECT_EQ(cluster->RanUnheard("job"), 0);
}

TEST_F(AdoptionTest, AFailureMeanwhileCountsOnce) {
  const TestJob job = ShellJob("job", kWithPid);
  Leave(job, "aba");
  Kill(Pid(1));
  WaitRecorded("w1-1");
  {
    TestCluster cluster(jobs());
    // The worker's seat is kept until worker 0 has had the time to end, too.
    EXPECT_EQ(cluster->AddJob(job, true), (Strings{"a", "b", "a"}));
    cluster->Run();
    EXPECT_TRUE(WaitFor([&] { return cluster.Observed("job") == "a-a"; }));
    EXPECT_EQ(cluster->Failures("job"), 1);
  }
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), (Strings{"a", "", "a"}));
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kMove, "job", "aba"), "done");
  EXPECT_EQ(cluster->Failures("job"), 1);
}

TEST_F(AdoptionTest, AJobThatFailedMeanwhileHasFailed) {
  TestJob job =
      ShellJob("job", "echo $$$$ > $VODA_JOB_DIR/pid.$VODA_WORKER; echo last words; exec sleep 1000");
  job.spec.backoff_limit = 0;
  Leave(job, "ab");
  Kill(Pid(0));
  WaitRecorded("w0-0");
  {
    TestCluster cluster(jobs());
    cluster->AddJob(job, true);
    cluster->Run();
    EXPECT_EQ(cluster.End("job"),
              "worker 0 was killed by signal 9 (Killed) (failure 1, backoffLimit 0): last words");
    EXPECT_EQ(Workers(), Strings{});
  }
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), Strings{});
  cluster->Run();
  EXPECT_EQ(cluster.End("job"), "worker 0 was killed by signal 9 (Killed) (failure 1): last words");
}

TEST_F(AdoptionTest, WithoutWorkerZeroTheOthersAreStopped) {
  const TestJob job = ShellJob("job", kWithPid);
  Leave(job, "aba");
  Kill(Pid(0));
  WaitRecorded("w0-0");
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), (Strings{"", "b", "a"}));
  cluster->Run();
  EXPECT_TRUE(WaitFor([&] { return cluster.Observed("job").empty(); }));
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster->Failures("job"), 1);
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
}

TEST_F(AdoptionTest, JobsThatNobodyKnowsAreStopped) {
  Leave(ShellJob("job", "setsid sleep 1000 & exec sleep 1000"), "ab");
  TestCluster cluster(jobs());
  cluster->Run();
  EXPECT_TRUE(WaitFor([&] { return Workers().empty(); }));
  EXPECT_EQ(cluster->LogFiles(1, "secret", 0).size(), 1U);
}

TEST_F(AdoptionTest, WhatAKilledShimLeftIsKilled) {
  const TestJob job = ShellJob("job", "setsid sleep 1000 & exec sleep 1000");
  Leave(job, "a");
  Kill(ShimOf("w0-0"));
  WaitRecorded("w0-0");
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), Strings{});
  cluster->Run();
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_TRUE(WaitFor([&] { return cluster->Failures("job") == 1; }));
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
}

// A daemon that nothing but its control group ties to the job: its parent, session and environment are gone.
class DaemonTest : public AdoptionTest {
 protected:
  void SetUp() override {
    const auto group = local::WorkerGroup::Make(local::GroupName(jobs() + "/0/w0-0"), 0);
    if (!group)
      GTEST_SKIP() << "LEFT OUT: the daemon of a worker whose shim was killed: " << group.error().message;
    group->Kill();
  }
  ~DaemonTest() override {
    if (daemon_ > 1 && Runs()) ::kill(daemon_, SIGKILL);
    local::KillGroups(jobs(), [](const std::string&) { return false; });
  }

  TestJob Job() const {
    return ShellJob("job", "env -i setsid sh -c 'echo $$$$ > " + file() + "; exec sleep 1000' & " + kSleep);
  }
  void FindDaemon() {
    const Strings lines = Lines(file(), 1);
    ASSERT_FALSE(lines.empty());
    daemon_ = static_cast<pid_t>(std::stol(lines[0]));
    ASSERT_TRUE(Runs());
  }
  bool Runs() const {
    const auto found = local::FindProcess(daemon_);
    return !found || (*found && !(*found)->zombie);
  }
  std::string file() const { return folder_.path() + "/daemon"; }

  pid_t daemon_ = 0;
};

TEST_F(DaemonTest, IsGoneOnceAJobWhoseShimWasKilledIsDeleted) {
  TestCluster cluster(jobs());
  cluster->AddJob(Job(), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  FindDaemon();
  Kill(ShimOf("w0-0"));
  cluster->ForgetJob("job");
  cluster->EraseJob(1, "secret");
  EXPECT_TRUE(WaitFor([&] { return !local::Exists(jobs() + "/1"); }));
  EXPECT_FALSE(Runs()) << "its folder is erased when nothing is left of the job";
}

TEST_F(DaemonTest, IsKilledByTheNextVoda) {
  Leave(Job(), "a");
  FindDaemon();
  Kill(ShimOf("w0-0"));
  WaitRecorded("w0-0");
  TestCluster cluster(jobs());
  cluster->AddJob(Job(), true);
  cluster->Run();
  EXPECT_TRUE(WaitFor([&] { return !Runs(); }));
}

TEST_F(DaemonTest, OfAJobThatNobodyKnowsIsKilledByTheNextVoda) {
  Leave(Job(), "a");
  FindDaemon();
  Kill(ShimOf("w0-0"));
  WaitRecorded("w0-0");
  local::RemoveTree(jobs() + "/1");
  TestCluster cluster(jobs());
  cluster->Run();
  EXPECT_TRUE(WaitFor([&] { return !Runs(); }));
}

TEST_F(AdoptionTest, HalfMadeStartsAreHarmless) {
  const TestJob job = ShellJob("job", kSleep);
  const local::JobFolder folder(jobs() + "/1");
  ASSERT_TRUE(local::MakeFolder(jobs() + "/1/w0-3", 0700));  // empty
  ASSERT_TRUE(local::MakeFolder(jobs() + "/1/w0-4", 0700));  // has a lock, but no spec
  ASSERT_TRUE(local::ReplaceFile(jobs() + "/1/w0-4/lock", "", 0600, local::Durable::kNo));
  local::WorkerSpec spec;
  spec.argv = {"true"};
  spec.serial = 5;
  spec.boot = local::BootId();
  ASSERT_TRUE(folder.NewStart(spec));  // has a spec, but no lock
  spec.serial = 6;
  ASSERT_TRUE(folder.NewStart(spec));  // its shim was never told to start
  ASSERT_TRUE(local::ReplaceFile(jobs() + "/1/w0-6/lock", "pid 999999 waiting\n", 0600, local::Durable::kNo));
  spec.serial = 7;
  spec.boot = "before";
  ASSERT_TRUE(folder.NewStart(spec));  // the machine went down with it
  ASSERT_TRUE(local::ReplaceFile(jobs() + "/1/w0-7/lock", "pid 999999 started\n", 0600, local::Durable::kNo));
  ASSERT_TRUE(local::MakeFolder(jobs() + "/1/w-x", 0700));
  ASSERT_TRUE(local::MakeFolder(jobs() + "/1/w1-", 0700));
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), Strings{});
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  EXPECT_EQ(cluster->Failures("job"), 0);
  EXPECT_TRUE(local::Exists(jobs() + "/1/w0-8/spec"));
}

TEST_F(AdoptionTest, TheSeatsOfAnMpiJobSurvive) {
  TestJob job = ShellJob("job", "");
  job.spec.kind = JobKind::kMpiJob;
  job.spec.launcher.emplace();
  job.spec.launcher->command = {"sleep", "1000"};
  {
    TestCluster cluster(jobs());
    cluster->AddJob(job, false);
    cluster->Run();
    ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
    ASSERT_EQ(cluster.Do(ActionKind::kGrow, "job", "abc"), "done");
  }
  TestCluster cluster(jobs());
  EXPECT_EQ(cluster->AddJob(job, true), (Strings{"a", "b", "c"}));
  cluster->Run();
  EXPECT_EQ(Slurp(jobs() + "/1/hosts"), "localhost:3\n");
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "job", "ab"), "done");
  EXPECT_EQ(Slurp(jobs() + "/1/hosts"), "localhost:2\n");
}

// A Voda in a process of its own is killed at random moments. Each worker must have been started once.
TEST_F(AdoptionTest, KilledAtAnyMomentNothingIsStartedTwiceOrLost) {
  const std::string script =
      "exec 9>$VODA_JOB_DIR/only.$VODA_WORKER; flock -n 9 || echo twice >> $VODA_JOB_DIR/twice; "
      "echo $VODA_WORKER >> $VODA_JOB_DIR/starts; exec sleep 1000";
  std::mt19937 random(7);  // NOLINT: the same in every run
  for (int round = 0; round < 10; ++round) {
    const std::string data = folder_.path() + "/" + std::to_string(round);
    const std::string folder = data + "/jobs";
    ASSERT_TRUE(local::MakeFolder(data, 0700));
    ASSERT_TRUE(local::ReplaceFile(data + "/script", script, 0600, local::Durable::kNo));
    for (int life = 0; life <= round % 2; ++life) {
      const std::string seconds = std::to_string(std::uniform_real_distribution<>(0, 0.02)(random));
      std::string arguments[] = {"/proc/self/exe", "__owner", folder, seconds};
      char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), arguments[3].data(),
                      nullptr};
      pid_t owner = -1;
      ASSERT_EQ(::posix_spawn(&owner, "/proc/self/exe", nullptr, nullptr, argv, environ), 0);
      int status = 0;
      ASSERT_EQ(::waitpid(owner, &status, 0), owner);
      ASSERT_TRUE(WIFSIGNALED(status));
    }
    TestCluster cluster(folder);
    ASSERT_EQ(cluster.error(), "");
    const Strings held = cluster->AddJob(ShellJob("job", script), true);
    cluster->Run();
    EXPECT_EQ(cluster.Do(held.empty() ? ActionKind::kStart : ActionKind::kGrow, "job", "ab"), "done");
    Strings starts = Lines(folder + "/1/work/starts", 2);
    std::sort(starts.begin(), starts.end());
    EXPECT_EQ(starts, (Strings{"0", "1"}));
    // Each worker may be two processes until its shell has become the sleep.
    EXPECT_TRUE(WaitFor([&] { return Running(folder).size() == 2; }));
    EXPECT_FALSE(local::Exists(folder + "/1/work/twice"));
    EXPECT_EQ(cluster->Failures("job"), 0);
    RecordProperty("held" + std::to_string(round), static_cast<int>(held.size()));
    EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  }
}

}  // namespace

}  // namespace voda
