#include "local/local_cluster.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "local/launch.h"
#include "local/test_cluster.h"
#include "local/torchrun.h"

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
using testing::TestTimes;
using testing::WaitFor;

using Strings = std::vector<std::string>;

// The beginning of a script that goes on once the test has made the file.
std::string Await(const std::string& file) {
  return "while [ ! -e $VODA_JOB_DIR/" + file + " ]; do sleep 0.05; done; ";
}

class LocalClusterTest : public ::testing::Test {
 protected:
  ~LocalClusterTest() override {
    // Kills what a failed test left.
    for (const local::JobProcess& left : testing::ProcessesBelow(jobs()))
      local::Signal(left.process, SIGKILL);
  }

  std::string jobs() const { return folder_.path() + "/jobs"; }
  std::string work(int id = 1) const { return jobs() + "/" + std::to_string(id) + "/work"; }

  // Numbers of the workers that run, sorted.
  Strings Workers() const {
    Strings numbers = Running(jobs());
    std::sort(numbers.begin(), numbers.end());
    return numbers;
  }

  // The process id of a worker whose script writes it down.
  pid_t Pid(int worker) const {
    const Strings lines = Lines(work() + "/pid." + std::to_string(worker), 1);
    return lines.empty() ? -1 : static_cast<pid_t>(std::stol(lines[0]));
  }

  // Makes the file that a script waits for (Await).
  void Make(const std::string& file) const {
    ASSERT_TRUE(local::ReplaceFile(work() + "/" + file, "", 0600, local::Durable::kNo));
  }
  // Waits until the shim of a start is gone and the end of its worker recorded.
  void WaitRecorded(const std::string& start) const {
    ASSERT_TRUE(WaitFor([&] { return !local::LockHeld(jobs() + "/1/" + start).value(); }));
  }

  static void Kill(pid_t pid) {
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  }

  Folder folder_;
};

TEST_F(LocalClusterTest, WorkersThatEndDuringTheirTrialAreToldToHaveRun) {
  const TestTimes patient{.trial = 600};
  {
    TestCluster cluster(jobs(), patient);
    cluster->AddJob(ShellJob("ends", "sleep 0.1", 1, 1), false);
    cluster->Run();
    cluster.Order(ActionKind::kStart, "ends", "a");
    EXPECT_EQ(cluster.End("ends"), "completed");
    EXPECT_GE(cluster.Ran<JobCompleted>(), 0.1);
  }
  TestCluster cluster(jobs(), patient);
  TestJob fails = ShellJob("fails", "sleep 0.1; exit 3", 1, 1);
  fails.id = 2;
  fails.spec.backoff_limit = 1;
  cluster->AddJob(fails, false);
  cluster->Run();
  EXPECT_NE(cluster.Do(ActionKind::kStart, "fails", "a"), "done");
  EXPECT_GE(cluster.Ran<ActionFailed>(), 0.1);
  cluster.Order(ActionKind::kStart, "fails", "a");
  EXPECT_NE(cluster.End("fails"), "completed");
  EXPECT_GE(cluster.Ran<JobFailed>(), 0.1);
}

TEST_F(LocalClusterTest, StartsGrowsShrinksAndHalts) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", kSleep), false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "1"}));
  EXPECT_EQ(cluster.Do(ActionKind::kGrow, "job", "abab"), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "1", "2", "3"}));
  EXPECT_EQ(cluster.Do(ActionKind::kShrink, "job", "a"), "done");
  EXPECT_EQ(Workers(), (Strings{"0"}));
  EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "b"), "done");
  EXPECT_EQ(Workers(), (Strings{"0"}));
  EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  EXPECT_EQ(cluster.Count<WorkersObserved>(), 0);
  EXPECT_EQ(cluster.Count<JobFailed>() + cluster.Count<JobCompleted>(), 0);
  EXPECT_EQ(cluster->Failures("job"), 0);
}

TEST_F(LocalClusterTest, ActionsAreIdempotent) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", "echo $$$$ >> $VODA_JOB_DIR/starts; exec sleep 1000"), false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kGrow, "job", "ab"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kMove, "job", "ab"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kShrink, "job", "ab"), "done");
  EXPECT_EQ(Lines(work() + "/starts", 2).size(), 2U);
  EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
}

TEST_F(LocalClusterTest, OrdersOfAJobAreCarriedOutOneAfterTheOther) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", kSleep), false);
  cluster->Run();
  const ActionId start = cluster.Order(ActionKind::kStart, "job", "a");
  const ActionId grow = cluster.Order(ActionKind::kGrow, "job", "aaa");
  const ActionId shrink = cluster.Order(ActionKind::kShrink, "job", "aa");
  EXPECT_EQ(cluster.Outcome(shrink), "done");
  EXPECT_EQ(cluster.Outcome(grow, 0), "done");
  EXPECT_EQ(cluster.Outcome(start, 0), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "1"}));
}

TEST_F(LocalClusterTest, AnUnknownJobIsAFailedAction) {
  TestCluster cluster(jobs());
  cluster->Run();
  EXPECT_NE(cluster.Do(ActionKind::kStart, "nobody", "a").find("nobody"), std::string::npos);
}

TEST_F(LocalClusterTest, MovesAWorkerAndLeavesTheOthers) {
  TestCluster cluster(jobs());
  cluster->AddJob(
      ShellJob("job",
               "echo $VODA_WORKER $VODA_NODE ${PET_RDZV_ID%-*} >> $VODA_JOB_DIR/starts; exec sleep 1000"),
      false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "aab"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kMove, "job", "abb"), "done");
  EXPECT_EQ(Lines(work() + "/starts", 4).back(), "1 b job-1");
  EXPECT_EQ(Workers(), (Strings{"0", "1", "2"}));
  EXPECT_EQ(cluster.Do(ActionKind::kVacate, "job", "a-b"), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "2"}));
  EXPECT_EQ(cluster.Do(ActionKind::kMove, "job", "acb"), "done");
  EXPECT_EQ(Lines(work() + "/starts", 5).back(), "1 c job-1");
}

TEST_F(LocalClusterTest, MovingWorker0StartsTheWholeJobAnew) {
  TestCluster cluster(jobs());
  cluster->AddJob(
      ShellJob("job",
               "echo $VODA_WORKER $VODA_NODE ${PET_RDZV_ID%-*} >> $VODA_JOB_DIR/starts; exec sleep 1000"),
      false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kGrow, "job", "bbb"), "done");
  Strings lines = Lines(work() + "/starts", 5);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Strings{"0 a job-1", "0 b job-2", "1 b job-1", "1 b job-2", "2 b job-2"}));
  EXPECT_EQ(Workers(), (Strings{"0", "1", "2"}));
}

TEST_F(LocalClusterTest, AJobThatKeepsItsSizeIsMovedAsAWhole) {
  TestCluster cluster(jobs());
  cluster->AddJob(
      ShellJob("job", "echo $RANK/$WORLD_SIZE $VODA_NODE >> $VODA_JOB_DIR/starts; exec sleep 1000", 2, 2),
      false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kMove, "job", "ab"), "done");
  Strings lines = Lines(work() + "/starts", 4);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Strings{"0/2 a", "0/2 a", "1/2 a", "1/2 b"}));
}

TEST_F(LocalClusterTest, ASizeThatWorkerZeroWasNotToldOfStartsTheJobAnew) {
  TestCluster cluster(jobs());
  TestJob job =
      ShellJob("job", "echo $VODA_WORKER $PET_NNODES >> $VODA_JOB_DIR/starts; exec sleep 1000", 2, 2);
  job.spec.elastic = true;
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  job.spec.limits.min = 1;
  job.spec.limits.max = 3;
  cluster->AddJob(job, false);
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "job", "a"), "done");
  EXPECT_EQ(Lines(work() + "/starts", 3).back(), "0 1:3");
  ASSERT_EQ(cluster.Do(ActionKind::kGrow, "job", "aab"), "done");
  EXPECT_EQ(Lines(work() + "/starts", 5).size(), 5U);
  EXPECT_EQ(Workers(), (Strings{"0", "1", "2"}));
}

TEST_F(LocalClusterTest, WorkersGetExactlyTheEnvironmentOfTheOperator) {
  TestCluster cluster(jobs());
  TestJob job = ShellJob("job-20260101-000000",
                         "env > $VODA_JOB_DIR/tmp.$VODA_WORKER; mv $VODA_JOB_DIR/tmp.$VODA_WORKER "
                         "$VODA_JOB_DIR/env.$VODA_WORKER; exec sleep 1000",
                         2, 4);
  job.spec.rdzv_conf = "last_call_timeout=1";
  job.spec.worker.env = {
      {"JOB_NAME", "job"},  {"DATA", "$(VODA_JOB_DIR)/data"}, {"OTHER", "$(DATA)/x $(NO) $$(DATA)"},
      {"VODA_WORKER", "7"}, {"METRICS_DIR", "/metrics"},      {"PET_MAX_RESTARTS", "3"}};
  job.spec.worker.args[0] = "echo $(OTHER) $$HOME; " + job.spec.worker.args[0];
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, job.name, "ab"), "done");
  std::map<std::string, std::string> env;
  for (const std::string& line : Lines(work() + "/env.1", 1))
    env[line.substr(0, line.find('='))] = line.substr(line.find('=') + 1);
  const std::string endpoint = env["PET_RDZV_ENDPOINT"];
  EXPECT_TRUE(endpoint.starts_with("127.0.0.1:"));
  // What any user of the machine could guess of the name by which workers meet, and what nobody can.
  const std::string rendezvous = env["PET_RDZV_ID"];
  EXPECT_TRUE(rendezvous.starts_with(job.name + "-1-")) << rendezvous;
  EXPECT_EQ(rendezvous.size(), job.name.size() + 3 + 32);
  for (const local::JobProcess& one : testing::ProcessesBelow(jobs()))
    EXPECT_EQ(Slurp(fmt::format("/proc/{}/cmdline", one.process.pid)).find(rendezvous), std::string::npos);
  for (const char* const by_shell : {"PWD", "_", "SHLVL", "OLDPWD"}) env.erase(by_shell);
  for (const char* const by_user : {"HOME", "USER"}) EXPECT_EQ(env.erase(by_user), 1U);
  const std::map<std::string, std::string> expected = {
      {"PATH", LocalConfig().path},
      {"LANG", "C.UTF-8"},
      {"TMPDIR", "/tmp"},
      {"PYTHONUNBUFFERED", "1"},
      {"JOB_NAME", job.name},
      {"METRICS_DIR", jobs() + "/1/metrics"},
      {"VODA_JOB_ID", "1"},
      {"VODA_JOB_DIR", work()},
      {"VODA_WORKER", "1"},
      {"VODA_NODE", "b"},
      {"VODA_PROGRESS_URL", "http://127.0.0.1:1/api/v1/jobs/" + job.name + "/progress"},
      {"VODA_PROGRESS_TOKEN", "secret"},
      {"CUDA_VISIBLE_DEVICES", ""},
      {"PET_NNODES", "2:4"},
      {"PET_NPROC_PER_NODE", "1"},
      {"PET_REDIRECTS", "9:1"},
      {"PET_TEE", "9:1"},
      {"PET_RDZV_BACKEND", "c10d"},
      {"PET_RDZV_ENDPOINT", endpoint},
      {"PET_RDZV_ID", rendezvous},
      {"PET_RDZV_CONF", "last_call_timeout=1,is_host=0"},
      {"PET_MAX_RESTARTS", "3"},
      {"PET_LOG_DIR", jobs() + "/1/w1-1/torchrun"},
      {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1"},
      {"DATA", work() + "/data"},
      {"OTHER", work() + "/data/x $(NO) $(DATA)"},
  };
  EXPECT_EQ(env, expected);
  ASSERT_FALSE(Lines(work() + "/env.0", 1).empty());
  const std::string zero = Slurp(work() + "/env.0");
  EXPECT_NE(zero.find("PET_RDZV_CONF=last_call_timeout=1,is_host=1\n"), std::string::npos);
  EXPECT_NE(zero.find("PET_RDZV_ENDPOINT=" + endpoint + "\n"), std::string::npos);
  EXPECT_TRUE(local::Exists(jobs() + "/1/metrics"));
}

TEST_F(LocalClusterTest, TheNameOfARendezvousIsKnownToItsJobAlone) {
  TestCluster cluster(jobs());
  for (const std::int64_t id : {1, 2}) {
    TestJob job = ShellJob("job", "echo $PET_RDZV_ID; exec sleep 1000");
    job.id = id;
    job.name = fmt::format("job-{}", id);
    job.token = fmt::format("secret of {}", id);
    cluster->AddJob(job, false);
  }
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job-1", "aa"), "done");
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job-2", "a"), "done");
  const auto secret = [&](std::int64_t id, int worker) {
    const std::string line =
        Lines(cluster->LogFiles(id, fmt::format("secret of {}", id), worker).front(), 1).front();
    return line.substr(line.rfind('-'));
  };
  EXPECT_EQ(secret(1, 0), secret(1, 1));
  EXPECT_NE(secret(1, 0), secret(2, 0));
  ASSERT_EQ(cluster.Do(ActionKind::kHalt, "job-1", ""), "done");
  const std::string before = secret(1, 0);
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job-1", "a"), "done");
  EXPECT_TRUE(WaitFor([&] {
    const Strings files = cluster->LogFiles(1, "secret of 1", 0);
    return files.size() == 2 && !Slurp(files.back()).empty() &&
           Slurp(files.back()).find(before) == std::string::npos;
  }));
}

TEST_F(LocalClusterTest, EachWorkerSeesItsOwnDevices) {
  TestCluster cluster(jobs());
  cluster->AddNode("a", {3, 1, 2, 0});
  TestJob job = ShellJob("job", "echo $CUDA_VISIBLE_DEVICES > $VODA_JOB_DIR/$VODA_WORKER; exec sleep 1000");
  job.spec.gpus_per_worker = 2;
  cluster->AddJob(job, false);
  TestJob other = job;
  other.id = 2;
  other.name = "other";
  cluster->AddJob(other, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  EXPECT_EQ(Lines(work() + "/0", 1), Strings{"0,1"});
  EXPECT_EQ(Lines(work() + "/1", 1), Strings{"2,3"});
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "other", "a"), "node a has 0 free GPUs, 2 are needed");
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "job", "a"), "done");
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "other", "a"), "done");
  EXPECT_EQ(Lines(work(2) + "/0", 1), Strings{"2,3"});
}

TEST_F(LocalClusterTest, WorkerZeroDecidesWhenTheJobIsComplete) {
  TestCluster cluster(jobs());
  TestJob job = ShellJob(
      "job", "[ $VODA_WORKER = 0 ] || exec sleep 1000; while [ ! -e $VODA_JOB_DIR/go ]; do sleep 0.05; done");
  job.spec.grace_seconds = 1;
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
  ASSERT_TRUE(local::ReplaceFile(work() + "/go", "", 0600, local::Durable::kNo));
  EXPECT_EQ(cluster.End("job"), "completed");
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster.Count<WorkersObserved>(), 0);
}

TEST_F(LocalClusterTest, AJobThatIsDoneAtOnceIsComplete) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", "true"), false);
  cluster->Run();
  cluster.Order(ActionKind::kStart, "job", "ab");
  EXPECT_EQ(cluster.End("job"), "completed");
  EXPECT_EQ(cluster.Count<ActionFailed>(), 0);
}

TEST_F(LocalClusterTest, AFailedStartLeavesNothingAndCounts) {
  TestCluster cluster(jobs(), {.trial = 30});  // a failing start does not wait for it
  TestJob job = ShellJob("job", "[ $VODA_WORKER = 1 ] || exec sleep 1000; echo broken; exit 3");
  job.spec.backoff_limit = 1;
  cluster->AddJob(job, false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"),
            "worker 1 exited with code 3 (at its start): broken");
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster->Failures("job"), 1);
  EXPECT_EQ(cluster.Notices(JobNotice::Kind::kWorkerFailed), 1);  // before the action's outcome
  cluster.Order(ActionKind::kStart, "job", "ab");
  EXPECT_EQ(cluster.End("job"), "worker 1 exited with code 3 (failure 2, backoffLimit 1): broken");
  EXPECT_EQ(Workers(), Strings{});
}

TEST_F(LocalClusterTest, AJobThatExitsAtOnceForEverFails) {
  TestCluster cluster(jobs(), {.trial = 30});
  TestJob job = ShellJob("job", "echo try >> $VODA_JOB_DIR/tries; exit 1", 1, 1);
  job.spec.backoff_limit = 3;
  cluster->AddJob(job, false);
  cluster->Run();
  for (int i = 0; i < 4; ++i) cluster.Order(ActionKind::kStart, "job", "a");
  EXPECT_EQ(cluster.End("job"), "worker 0 exited with code 1 (failure 4, backoffLimit 3)");
  EXPECT_EQ(Slurp(work() + "/tries"), "try\ntry\ntry\ntry\n");
}

TEST_F(LocalClusterTest, AProgramThatDoesNotExistSaysSo) {
  TestCluster cluster(jobs());
  TestJob job = ShellJob("job", "");
  job.spec.worker.command = {"/no/such/program"};
  job.spec.restart_policy = RestartPolicy::kNo;
  cluster->AddJob(job, false);
  cluster->Run();
  cluster.Order(ActionKind::kStart, "job", "a");
  EXPECT_EQ(cluster.End("job"),
            "worker 0 exited with code 127 (restartPolicy Never): voda: cannot run /no/such/program: No such "
            "file or "
            "directory");
}

TEST_F(LocalClusterTest, AFailedGrowLeavesTheJobAsItWas) {
  TestCluster cluster(jobs(), {.trial = 5});
  cluster->AddJob(ShellJob("job", "[ $VODA_WORKER = 2 ] && exit 4; exec sleep 1000"), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kGrow, "job", "aabb"), "worker 2 exited with code 4 (at its start)");
  EXPECT_EQ(Workers(), (Strings{"0", "1"}));
  EXPECT_EQ(cluster->Failures("job"), 0);  // it was the effect of a change
  EXPECT_EQ(cluster.Count<WorkersObserved>(), 0);
}

TEST_F(LocalClusterTest, ALostWorkerIsObservedAndRepaired) {
  TestCluster cluster(jobs(), {.disturbed = 0.01});
  cluster->AddJob(ShellJob("job", "echo $$$$ > $VODA_JOB_DIR/pid.$VODA_WORKER; exec sleep 1000"), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "abb"), "done");
  Kill(Pid(1));
  ASSERT_TRUE(WaitFor([&] { return cluster.Observed("job") == "a-b"; }));
  EXPECT_EQ(cluster->Failures("job"), 1);
  EXPECT_EQ(cluster.Do(ActionKind::kMove, "job", "abb"), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "1", "2"}));
  EXPECT_TRUE(WaitFor([&] { return cluster.Notices(JobNotice::Kind::kWorkerRestarted) == 1; }));
}

TEST_F(LocalClusterTest, TheLossOfWorkerZeroStopsAllAndCountsOnce) {
  TestCluster cluster(jobs());
  cluster->AddJob(
      ShellJob(
          "job",
          "trap 'exit 9' TERM; echo $$$$ > $VODA_JOB_DIR/pid.$VODA_WORKER; while :; do sleep 0.05; done"),
      false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "abb"), "done");
  Kill(Pid(0));
  ASSERT_TRUE(WaitFor([&] { return cluster.Observed("job").empty(); }));
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster->Failures("job"), 1);
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
}

TEST_F(LocalClusterTest, AFailureThatTakesWorkerZeroAlongCountsOnce) {
  TestCluster cluster(jobs(), {.judge = 30});
  cluster->AddJob(ShellJob("job", Await("go.$VODA_WORKER") + "exit $((VODA_WORKER + 1))"), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "abb"), "done");
  Make("go.1");
  WaitRecorded("w1-1");
  Make("go.2");
  Make("go.0");
  ASSERT_TRUE(WaitFor([&] { return cluster.Observed("job").empty(); }));
  EXPECT_EQ(cluster->Failures("job"), 1);
}

TEST_F(LocalClusterTest, FailuresRightAfterAChangeDoNotCount) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", "echo $$$$ > $VODA_JOB_DIR/pid.$VODA_WORKER; exec sleep 1000"), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aaa"), "done");
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "job", "aa"), "done");
  Kill(Pid(1));
  ASSERT_TRUE(WaitFor([&] { return cluster.Observed("job") == "a-"; }));
  EXPECT_EQ(cluster->Failures("job"), 0);
}

TEST_F(LocalClusterTest, AWorkerThatEndsWellBeforeWorkerZeroIsNotLost) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", "[ $VODA_WORKER = 1 ] && exit; " + Await("go")), false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  WaitRecorded("w1-1");
  Make("go");
  EXPECT_EQ(cluster.End("job"), "completed");
  EXPECT_EQ(cluster.Count<WorkersObserved>(), 0);
}

TEST_F(LocalClusterTest, AFailureJustBeforeWorkerZeroEndsWellIsNone) {
  TestCluster cluster(jobs(), {.judge = 30});
  TestJob job = ShellJob("job", Await("go.$VODA_WORKER") + "exit $VODA_WORKER");
  job.spec.restart_policy = RestartPolicy::kNo;
  cluster->AddJob(job, false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  Make("go.1");
  WaitRecorded("w1-1");
  Make("go.0");
  EXPECT_EQ(cluster.End("job"), "completed");
}

TEST_F(LocalClusterTest, AWorkerThatIgnoresSigtermAndForksIsGoneWhenTheShrinkIsDone) {
  TestCluster cluster(jobs());
  TestJob job = ShellJob("job",
                         "setsid sleep 1000 & setsid sh -c \"trap '' TERM; while :; do sleep 0.05; done\" & "
                         "trap '' TERM; while :; do sleep 0.05; done");
  job.spec.grace_seconds = 1;
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "job", "a"), "done");
  for (const std::string& number : Workers()) EXPECT_EQ(number, "0");
  ASSERT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_EQ(cluster->Failures("job"), 0);
}

TEST_F(LocalClusterTest, AKilledShimIsALostWorkerAndNothingOfItStays) {
  TestCluster cluster(jobs(), {.disturbed = 0.01});
  cluster->AddJob(ShellJob("job", "setsid sleep 1000 & exec sleep 1000"), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  const std::string folder = jobs() + "/1/w1-1";
  const std::string lock = Slurp(folder + "/lock");
  ASSERT_TRUE(lock.starts_with("pid ")) << lock;
  Kill(static_cast<pid_t>(std::stol(lock.substr(4))));
  ASSERT_TRUE(WaitFor([&] { return cluster.Observed("job") == "a-"; }));
  for (const std::string& number : Workers()) EXPECT_EQ(number, "0");
  EXPECT_EQ(cluster->Failures("job"), 1);
}

TEST_F(LocalClusterTest, AShimThatHangsIsKilledWithAllItHas) {
  TestCluster cluster(jobs());
  TestJob job = ShellJob("job", "setsid sleep 1000 & exec sleep 1000");
  job.spec.grace_seconds = 1;
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  const std::string lock = Slurp(jobs() + "/1/w1-1/lock");
  ASSERT_TRUE(lock.starts_with("pid ")) << lock;
  ASSERT_EQ(::kill(static_cast<pid_t>(std::stol(lock.substr(4))), SIGSTOP), 0);
  EXPECT_EQ(cluster.Do(ActionKind::kShrink, "job", "a"), "done");
  for (const std::string& number : Workers()) EXPECT_EQ(number, "0");
  EXPECT_EQ(cluster->Failures("job"), 0);
}

// While a shim hangs before it is ready, other jobs are served.
TEST_F(LocalClusterTest, AShimThatHangsHoldsUpNobodyElse) {
  TestCluster cluster(jobs(), {.shim = 3600}, HangingShim(folder_.path(), "*/jobs/2/*"));
  for (int id = 1; id <= 3; ++id) {
    TestJob job = ShellJob("job-" + std::to_string(id),
                           "echo $$$$ > $VODA_JOB_DIR/pid.$VODA_WORKER; " + std::string(kSleep));
    job.id = id;
    cluster->AddJob(job, false);
  }
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job-1", "a"), "done");
  const ActionId hanging = cluster.Order(ActionKind::kStart, "job-2", "bb");
  const Strings pids = Lines(folder_.path() + "/hanging", 2);
  ASSERT_EQ(pids.size(), 2U);
  // A worker ends.
  Kill(Pid(0));
  EXPECT_TRUE(WaitFor([&] { return cluster.Observed("job-1").empty(); }));
  // Another job is started and stopped.
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job-3", "cc"), "done");
  EXPECT_EQ(cluster.Do(ActionKind::kHalt, "job-3", ""), "done");
  EXPECT_EQ(cluster.Outcome(hanging, 0), "none");
  // A job whose shims hang can be stopped, too, and leaves nothing behind.
  cluster->ForgetJob("job-2");
  for (const std::string& pid : pids)
    EXPECT_TRUE(WaitFor([&] { return !local::FindProcess(static_cast<pid_t>(std::stol(pid))).value(); }));
  EXPECT_FALSE(local::Exists(work(2) + "/pid.0"));
}

TEST_F(LocalClusterTest, AShimThatIsNotReadyInTimeIsAFailedStart) {
  TestCluster cluster(jobs(), {.shim = 0.5}, HangingShim(folder_.path(), "*/w1-*"));
  cluster->AddJob(ShellJob("job", "echo $VODA_WORKER >> $VODA_JOB_DIR/starts; exec sleep 1000"), false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"),
            "the shim " + folder_.path() + "/shim did not start in " + jobs() + "/1/w1-1");
  // Worker 0 was ready, but was never told to start.
  EXPECT_EQ(Workers(), Strings{});
  EXPECT_FALSE(local::Exists(work() + "/starts"));
  EXPECT_FALSE(local::Exists(jobs() + "/1/w1-1"));
  for (const std::string& pid : Lines(folder_.path() + "/hanging", 1))
    EXPECT_FALSE(local::FindProcess(static_cast<pid_t>(std::stol(pid))).value());
  EXPECT_EQ(cluster->Failures("job"), 0);
  EXPECT_EQ(cluster.Count<WorkersObserved>(), 0);
}

TEST_F(LocalClusterTest, WorkersStartTogetherOnceAllShimsAreReady) {
  TestCluster cluster(jobs(), {.shim = 0.5}, HangingShim(folder_.path(), "*/w2-*"));
  cluster->AddJob(ShellJob("job", "echo $VODA_WORKER >> $VODA_JOB_DIR/starts; exec sleep 1000"), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  // The running workers go on when a growth fails.
  EXPECT_NE(cluster.Do(ActionKind::kGrow, "job", "aaab"), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "1"}));
  EXPECT_EQ(Lines(work() + "/starts", 2).size(), 2U);
  ASSERT_EQ(::unlink((folder_.path() + "/hang").c_str()), 0);
  EXPECT_EQ(cluster.Do(ActionKind::kGrow, "job", "aaab"), "done");
  EXPECT_EQ(Workers(), (Strings{"0", "1", "2", "3"}));
}

TEST_F(LocalClusterTest, ForgettingStopsAndErasingRemoves) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", "echo hello; exec sleep 1000"), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aa"), "done");
  ASSERT_TRUE(WaitFor([&] {
    const Strings files = cluster->LogFiles(1, "secret", 1);
    return !files.empty() && Slurp(files[0]) == "hello\n";
  }));
  cluster->ForgetJob("job");
  EXPECT_TRUE(WaitFor([&] { return Workers().empty(); }));
  EXPECT_EQ(cluster.Count<JobFailed>() + cluster.Count<WorkersObserved>(), 0);
  const Strings files = cluster->LogFiles(1, "secret", 1);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(Slurp(files[0]), "hello\n");
  cluster->EraseJob(1, "secret");
  EXPECT_TRUE(WaitFor([&] { return !local::Exists(jobs() + "/1"); }));
  EXPECT_EQ(cluster->LogFiles(1, "secret", 1), Strings{});
}

TEST_F(LocalClusterTest, ErasingALargeFolderHoldsUpNobody) {
  constexpr int kFiles = 5'000;
  const std::string trash = jobs() + "/.erased";
  TestCluster cluster(jobs());
  ASSERT_TRUE(local::MakeFolder(work(), 0700));
  for (int i = 0; i < kFiles; ++i)
    ASSERT_EQ(::mknod((work() + "/" + std::to_string(i)).c_str(), S_IFREG | 0600, 0), 0);
  TestJob other = ShellJob("other", kSleep);
  other.id = 2;
  cluster->AddJob(other, false);
  cluster->Run();
  cluster->EraseJob(1, "secret");
  // Orders are carried out in turn, so the folder's name is free before the next start.
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "other", "a"), "done");
  EXPECT_FALSE(local::Exists(jobs() + "/1"));
  // The next folder of the same name is a new one.
  cluster->AddJob(ShellJob("job", "echo hello; exec sleep 1000"), false);
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  EXPECT_TRUE(WaitFor([&] { return local::ListFolder(trash).value().empty(); }));
  EXPECT_EQ(Lines(cluster->LogFiles(1, "secret", 0).at(0), 1), Strings{"hello"});
}

// A torchrun that starts training anew each time it fails, and reports this as torchrun does. A script
// hides it, so that only its behaviour shows it.
TestJob Retrying(const std::string& training) {
  TestJob job = ShellJob("job", "", 1, 4);
  job.spec.worker.command = {
      "/bin/sh", "-c",
      "n=0; while :; do mkdir -p $PET_LOG_DIR/run_x/attempt_$n; " + training + "; n=$((n + 1)); done"};
  job.spec.worker.args.clear();
  return job;
}

TEST_F(LocalClusterTest, TrainingThatTorchrunRestartsForEverFails) {
  TestCluster cluster(jobs());
  TestJob job = Retrying(Await("go") + "sleep 0.3; echo boom $n");
  job.spec.backoff_limit = 3;
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "aab"), "done");
  Make("go");
  const std::string message = cluster.End("job");
  EXPECT_EQ(cluster->Failures("job"), 4);
  EXPECT_NE(message.find("training failed and torchrun started it again (failure 4, backoffLimit 3): "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("boom"), std::string::npos) << message;
}

TEST_F(LocalClusterTest, TrainingThatWaitsForWorkersWhoLeftIsEnded) {
  TestCluster cluster(jobs());
  TestJob job = ShellJob("job", "", 1, 4);
  job.spec.backoff_limit = 0;
  job.spec.max_restarts = 100;  // its attempts are not counted, but it is still looked at
  job.spec.worker.command = {"/bin/sh", "-c",
                             "group=2; while :; do TORCHELASTIC_RUN_ID=x GROUP_WORLD_SIZE=$group sleep 1000; "
                             "group=1; echo again $VODA_WORKER >> $VODA_JOB_DIR/again; done"};
  job.spec.worker.args.clear();
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "ab"), "done");
  ASSERT_TRUE(WaitFor([&] { return local::TrainingProcesses(jobs() + "/1").value().size() == 2; }));
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "job", "a"), "done");
  EXPECT_EQ(Lines(work() + "/again", 1), Strings{"again 0"});
  // The new training process knows the present size.
  EXPECT_EQ(cluster.End("job", 4), "none");
  EXPECT_EQ(Slurp(work() + "/again"), "again 0\n");
  EXPECT_EQ(cluster->Failures("job"), 0);
}

TEST_F(LocalClusterTest, RestartsThatAChangeBroughtAboutAreNoFailures) {
  TestCluster cluster(jobs());
  TestJob job = Retrying("if [ $n -lt 5 ]; then " + Await("go") + "sleep 0.3; else exec sleep 1000; fi");
  job.spec.backoff_limit = 0;
  job.spec.max_restarts.reset();
  cluster->AddJob(job, false);
  cluster->Run();
  // The start itself is no excuse, but a growth is.
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  ASSERT_EQ(cluster.Do(ActionKind::kGrow, "job", "aab"), "done");
  Make("go");
  ASSERT_TRUE(WaitFor([&] { return local::LastAttempt(jobs() + "/1/w0-0", 0, UptimeNow()).number == 5; }));
  EXPECT_EQ(cluster.End("job", 5), "none");
  EXPECT_EQ(cluster->Failures("job"), 0);
}

TEST_F(LocalClusterTest, AJobThatNamesItsOwnRestartsIsNotCounted) {
  TestCluster cluster(jobs());
  TestJob job = Retrying("sleep 0.2");
  job.spec.backoff_limit = 0;
  job.spec.max_restarts = 100;
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  EXPECT_EQ(cluster.End("job", 4), "none");
}

TEST_F(LocalClusterTest, LogsOfEveryStartAreKeptUpToALimit) {
  TestCluster cluster(jobs(), {.trial = 30});
  TestJob job = ShellJob("job", "echo ${PET_RDZV_ID%-*}; exit 1");
  job.spec.backoff_limit = 100;
  cluster->AddJob(job, false);
  cluster->Run();
  for (int i = 0; i < 14; ++i) ASSERT_NE(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  const Strings files = cluster->LogFiles(1, "secret", 0);
  // Starts with a verdict are pruned at the next start.
  EXPECT_EQ(files.size(), 11U);
  EXPECT_EQ(Slurp(files.back()), "job-14\n");
  EXPECT_EQ(Slurp(files.front()), "job-4\n");
  EXPECT_EQ(cluster->Failures("job"), 14);
}

// A job may put pipes in the place of its log and its records: nobody reads from them, and the job's end is
// known all the same, also to the next Voda.
TEST_F(LocalClusterTest, AJobThatPutsPipesInThePlaceOfItsFilesHangsNobody) {
  const std::string pipes =
      "cd $VODA_JOB_DIR/../w0-*; rm -f log.* exit.tmp spec cgroup ../job; mkfifo log.0 log.1 log.2 exit "
      "exit.tmp spec "
      "cgroup ../hosts ../seats ../failures ../job; head -c 2000000 /dev/zero; ";
  TestJob good = ShellJob("good", pipes + "exit 0");
  TestJob bad = ShellJob("bad", pipes + "exit 3");
  bad.id = 2;
  bad.spec.restart_policy = RestartPolicy::kNo;
  for (const bool restarted : {false, true}) {
    TestCluster cluster(jobs());
    cluster->AddJob(good, restarted);
    cluster->AddJob(bad, restarted);
    cluster->Run();
    if (!restarted) {
      cluster.Order(ActionKind::kStart, "good", "a");
      cluster.Order(ActionKind::kStart, "bad", "a");
      EXPECT_EQ(cluster.End("good"), "completed");
      EXPECT_NE(cluster.End("bad").find("exited with code 3"), std::string::npos) << cluster.End("bad");
    }
    EXPECT_EQ(cluster.Outcome(cluster.Order(ActionKind::kHalt, "none", "")),
              "there is no job none on this machine")
        << "the cluster's thread goes on";
  }
}

TEST_F(LocalClusterTest, AJobWhoseFolderIsRemovedIsNotRunTwice) {
  const std::string runs = folder_.path() + "/runs";
  const std::string go = folder_.path() + "/go";
  TestCluster cluster(jobs());
  cluster->AddJob(
      ShellJob("job", "echo run >> " + runs + "; while ! [ -e " + go + " ]; do sleep 0.05; done; exit 0"),
      false);
  cluster->Run();
  EXPECT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  local::RemoveTree(jobs() + "/1");
  ASSERT_TRUE(local::ReplaceFile(go, "", 0600, local::Durable::kNo));
  EXPECT_EQ(cluster.End("job"), "completed");
  EXPECT_EQ(Slurp(runs), "run\n");
  cluster->ForgetJob("job");
  const local::JobFolder folder(jobs() + "/1");
  EXPECT_TRUE(WaitFor([&] { return folder.End().value().has_value(); }));
  const auto owner = folder.Identity().value();
  ASSERT_TRUE(owner) << "a lost store could not be rebuilt with it";
  EXPECT_EQ(owner->name, "job");
}

TEST_F(LocalClusterTest, LeavesNoFilesOpenAndNoZombies) {
  TestCluster cluster(jobs());
  cluster->AddJob(ShellJob("job", kSleep), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "a"), "done");
  ASSERT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  const std::size_t open = local::ListFolder("/proc/self/fd").value().size();
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(cluster.Do(ActionKind::kStart, "job", "abc"), "done");
    ASSERT_EQ(cluster.Do(ActionKind::kHalt, "job", ""), "done");
  }
  EXPECT_EQ(local::ListFolder("/proc/self/fd").value().size(), open);
  const auto all = local::AllProcesses();
  for (const local::Process& process : all.value()) EXPECT_NE(process.parent, ::getpid());
}

TEST_F(LocalClusterTest, OneClusterToAFolder) {
  TestCluster first(jobs());
  TestCluster second(jobs());
  EXPECT_EQ(second.error(), "another Voda uses " + jobs() + "; stop it first");
}

// An MPIJob's launcher: keeps as many processes with a HOROVOD_RANK as the discovery script says.
const char* const kLauncher = R"(
import os, subprocess, sys, time
script, ranks = sys.argv[1], []
while not os.path.exists(os.environ['VODA_JOB_DIR'] + '/stop'):
    wanted = int(subprocess.check_output([script]).decode().strip().split(':')[1])
    while len(ranks) < wanted:
        env = dict(os.environ, HOROVOD_RANK=str(len(ranks)))
        # Each with a child of its own, as a data loader.
        ranks.append(subprocess.Popen(['/bin/sh', '-c', 'sleep 1000 & wait'], env=env, start_new_session=True))
    while len(ranks) > wanted and not os.path.exists(os.environ['VODA_JOB_DIR'] + '/stubborn'):
        rank = ranks.pop()
        os.killpg(rank.pid, 9)
        rank.wait()
    time.sleep(0.05)
)";

TestJob MpiJob() {
  TestJob job = ShellJob("mpi", "");
  job.spec.kind = JobKind::kMpiJob;
  job.spec.slots_per_worker = 2;
  job.spec.grace_seconds = 1;
  job.spec.launcher.emplace();
  job.spec.launcher->command = {"/usr/bin/python3", "-c", kLauncher, "/etc/mpi/discover_hosts.sh"};
  job.spec.launcher->env = {{"SCRIPT", "x=/etc/mpi/discover_hosts.sh,/etc/mpi/discover_hosts.sh.old"}};
  return job;
}

int Ranks(const std::string& folder) {
  int count = 0;
  for (const local::JobProcess& process : testing::ProcessesBelow(folder))
    if (local::Lookup(process.environment, "HOROVOD_RANK")) ++count;
  return count / 2;
}

TEST_F(LocalClusterTest, AnMpiJobFollowsItsListOfHosts) {
  TestCluster cluster(jobs());
  cluster->AddJob(MpiJob(), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "mpi", "ab"), "done");
  EXPECT_TRUE(WaitFor([&] { return Ranks(jobs()) == 4; }));
  ASSERT_EQ(cluster.Do(ActionKind::kGrow, "mpi", "abc"), "done");
  EXPECT_TRUE(WaitFor([&] { return Ranks(jobs()) == 6; }));
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "mpi", "a"), "done");
  EXPECT_LE(Ranks(jobs()), 2);
  ASSERT_EQ(cluster.Do(ActionKind::kMove, "mpi", "c"), "done");
  ASSERT_EQ(cluster.Do(ActionKind::kHalt, "mpi", ""), "done");
  EXPECT_EQ(Workers(), Strings{});
  // The job completes.
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "mpi", "a"), "done");
  ASSERT_TRUE(local::ReplaceFile(work() + "/stop", "", 0600, local::Durable::kNo));
  EXPECT_EQ(cluster.End("mpi"), "completed");
  EXPECT_EQ(Workers(), Strings{});
}

TEST_F(LocalClusterTest, RanksThatDoNotFollowTheListAreStopped) {
  TestCluster cluster(jobs());
  cluster->AddJob(MpiJob(), false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "mpi", "ab"), "done");
  EXPECT_TRUE(WaitFor([&] { return Ranks(jobs()) == 4; }));
  ASSERT_TRUE(local::ReplaceFile(work() + "/stubborn", "", 0600, local::Durable::kNo));
  ASSERT_EQ(cluster.Do(ActionKind::kShrink, "mpi", "a"), "done");
  EXPECT_LE(Ranks(jobs()), 2);
}

TEST_F(LocalClusterTest, TheOperatorsScriptIsReplacedByOurs) {
  TestCluster cluster(jobs());
  TestJob job = MpiJob();
  job.spec.launcher->command = {"/bin/sh", "-c",
                                "env > $VODA_JOB_DIR/env; /etc/mpi/discover_hosts.sh; exec sleep 1000"};
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "mpi", "abc"), "done");
  const std::string script = jobs() + "/1/discover_hosts.sh";
  ASSERT_TRUE(WaitFor([&] { return !cluster->LogFiles(1, "secret", 0).empty(); }));
  EXPECT_EQ(Lines(cluster->LogFiles(1, "secret", 0)[0], 1), Strings{"localhost:6"});
  const std::string env = Slurp(work() + "/env");
  EXPECT_NE(env.find("\nVODA_DISCOVER_HOSTS=" + script + "\n"), std::string::npos);
  EXPECT_NE(env.find("\nSCRIPT=x=" + script + ",/etc/mpi/discover_hosts.sh.old\n"), std::string::npos) << env;
  EXPECT_EQ(env.find("PET_"), std::string::npos);
}

TEST_F(LocalClusterTest, ALostLauncherIsAFailure) {
  TestCluster cluster(jobs());
  TestJob job = MpiJob();
  job.spec.launcher->command = {"/bin/sh", "-c", Await("go") + "exit 5"};
  cluster->AddJob(job, false);
  cluster->Run();
  ASSERT_EQ(cluster.Do(ActionKind::kStart, "mpi", "abc"), "done");
  Make("go");
  EXPECT_TRUE(WaitFor([&] { return cluster.Observed("mpi").empty(); }));
  EXPECT_EQ(cluster->Failures("mpi"), 1);
  EXPECT_FALSE(local::Exists(jobs() + "/1/seats"));
}

}  // namespace

}  // namespace voda
