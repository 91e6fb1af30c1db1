#include "local/torchrun.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "local/environment.h"
#include "local/test_cluster.h"

namespace voda::local {

namespace {

JobSpec Runs(std::vector<std::string> command, std::vector<std::string> args = {}) {
  JobSpec spec;
  spec.worker.command = std::move(command);
  spec.worker.args = std::move(args);
  return spec;
}

TEST(Torchrun, IsFoundInCommandsAndInTheTextOfShells) {
  EXPECT_TRUE(NamesTorchrun(Runs({"torchrun", "train.py"})));
  EXPECT_TRUE(NamesTorchrun(Runs({"/opt/venv/bin/torchrun"}, {"train.py"})));
  EXPECT_TRUE(NamesTorchrun(Runs({"python", "-m", "torch.distributed.run", "train.py"})));
  EXPECT_TRUE(NamesTorchrun(Runs({"sh", "-c", "exec torchrun --redirects 1 train.py"})));
  EXPECT_TRUE(NamesTorchrun(Runs({"bash"}, {"-c", "pip install x;torchrun train.py"})));
  EXPECT_TRUE(NamesTorchrun(Runs({"bash", "-c", "cd /x\n/opt/bin/torchrun \\\n  train.py\n"})));
  EXPECT_TRUE(NamesTorchrun(Runs({"bash", "-c", "true && python3 -m torch.distributed.run a.py"})));
  EXPECT_TRUE(NamesTorchrun(Runs({"bash", "-c", "(torchrun)"})));

  EXPECT_FALSE(NamesTorchrun(Runs({"python", "train.py"})));
  EXPECT_FALSE(NamesTorchrun(Runs({"sh", "-c", "cat torchrun.log mytorchrun torchrun_leave.py"})));
  EXPECT_FALSE(NamesTorchrun(Runs({"python", "-m", "torch.distributed.runner"})));

  JobSpec master = Runs({"python", "train.py"});
  master.master = Runs({"torchrun", "train.py"}).worker;
  EXPECT_TRUE(NamesTorchrun(master));
}

// A training process of worker 0 of two, as torchrun starts it for job 1 of a Voda on this folder.
class TrainingOf {
 public:
  explicit TrainingOf(const std::string& job_path) {
    std::vector<std::string> env = {"VODA_JOB_ID=1", "VODA_JOB_DIR=" + WorkPath(job_path), "VODA_WORKER=0",
                                    "GROUP_WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=x"};
    std::vector<char*> environment;
    for (std::string& pair : env) environment.push_back(pair.data());
    environment.push_back(nullptr);
    std::string program = "/bin/sleep";
    std::string seconds = "1000";
    char* const argv[] = {program.data(), seconds.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, argv, environment.data()), 0);
  }
  TrainingOf(const TrainingOf&) = delete;
  TrainingOf& operator=(const TrainingOf&) = delete;
  ~TrainingOf() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

// The clock may have been set since the attempt began.
TEST(Torchrun, AnAttemptBeganAfterTheStartOfItsWorkerAndBeforeNow) {
  const testing::Folder start;
  const std::string run = TorchrunPath(start.path()) + "/run";
  for (const char* attempt : {"/attempt_0", "/attempt_1"}) ASSERT_TRUE(MakeFolder(run + attempt, 0700));
  const auto began = [&](double wall) {
    const timespec at{static_cast<time_t>(wall), 0};
    const timespec times[] = {at, at};
    EXPECT_EQ(::utimensat(AT_FDCWD, (run + "/attempt_0").c_str(), times, 0), 0);
    const Attempt last = LastAttempt(start.path(), 1000, 5000);
    EXPECT_EQ(last.number, 1);
    return last.previous_began;
  };
  EXPECT_NEAR(began(WallNow() - 2000), 3000, 1000);
  EXPECT_EQ(began(WallNow() - 86400), 1000);
  EXPECT_EQ(began(WallNow() + 86400), 5000);
}

TEST(Torchrun, TrainingOfAnotherVodasJobIsNotOurs) {
  const testing::Folder ours;
  const testing::Folder others;
  const TrainingOf mine(ours.path() + "/1");
  const TrainingOf theirs(others.path() + "/1");
  const std::vector<Training> found = TrainingProcesses(ours.path() + "/1").value();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].process.pid, mine.pid());
  EXPECT_EQ(found[0].worker, 0);
  EXPECT_EQ(found[0].group, 2);
}

}  // namespace

}  // namespace voda::local
