#include "local/worker_processes.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#include "local/test_cluster.h"

namespace voda::local {

namespace {

using testing::Folder;
using testing::WaitFor;

// Once it is patient, it does not return from a shim that is to be watched before that shim has ended.
class PatientWatch final : public DescriptorWatch {
 public:
  bool Add(int descriptor) override {
    pollfd handle{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (patient && ::poll(&handle, 1, 20'000) == 1) ++ended;
    return room;
  }
  void Remove(int /*descriptor*/) override {}

  bool patient = false;
  bool room = true;
  int ended = 0;
};

// A program that is not found, on a busy machine: the worker has ended before anybody hears of its start.
TEST(WorkerProcesses, AWorkerThatEndsAtOnceStartsBeforeItEnds) {
  const Folder folder;
  PatientWatch watch;
  WorkerProcesses workers(JobFolder(folder.path()), "/proc/self/exe", 20, watch);
  WorkerSpec spec;
  spec.argv = {"/nowhere/torchrun"};
  spec.env = {{"PATH", "/nowhere"}};
  spec.working_dir = "/tmp";
  spec.log_bytes = 1 << 20;
  const auto begun = workers.Start(spec);
  ASSERT_TRUE(begun) << begun.error().message;
  watch.patient = true;
  std::vector<int> started;
  std::vector<StartRecord> ended;
  EXPECT_TRUE(WaitFor([&] {
    WorkerProcesses::Changes changes = workers.Look(UptimeNow());
    for (const int number : changes.started) {
      EXPECT_NE(workers.Find(number), nullptr) << "whoever hears of a start may look at its worker";
      started.push_back(number);
    }
    for (StartRecord& start : changes.ended) ended.push_back(std::move(start));
    return !ended.empty();
  }));
  EXPECT_EQ(watch.ended, 1) << "the shim was to end before its start was told of";
  EXPECT_EQ(started, std::vector<int>{0});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].exit->code, 127);
}

WorkerSpec Program(std::vector<std::string> argv) {
  WorkerSpec spec;
  spec.argv = std::move(argv);
  spec.env = {{"PATH", "/usr/bin:/bin"}};
  spec.working_dir = "/tmp";
  spec.log_bytes = 1 << 20;
  return spec;
}

// Starts a worker and waits until its shim has ended, without a look at what became of it.
void StartAndEnd(WorkerProcesses& workers, WorkerSpec spec) {
  const auto begun = workers.Start(std::move(spec));
  ASSERT_TRUE(begun) << begun.error().message;
  ASSERT_TRUE(WaitFor([&] { return workers.Look(UptimeNow()).started.size() == 1; }));
  ASSERT_TRUE(WaitFor([&] { return Ended(workers.Find(0)->shim); }));
}

// Out of descriptors, nobody can see how a worker ended: that is no failure of the worker.
TEST(WorkerProcesses, ARecordThatCannotBeReadIsWaitedFor) {
  const Folder folder;
  PatientWatch watch;
  WorkerProcesses workers(JobFolder(folder.path()), "/proc/self/exe", 20, watch);
  StartAndEnd(workers, Program({"true"}));
  {
    const testing::NoDescriptors none;
    EXPECT_TRUE(workers.Look(UptimeNow()).ended.empty());
    EXPECT_EQ(workers.live().size(), 1U);
    const double now = UptimeNow();
    EXPECT_LT(workers.Next(now), now + 10) << "it is looked at again";
  }
  const auto changes = workers.Look(UptimeNow());
  ASSERT_EQ(changes.ended.size(), 1U);
  EXPECT_TRUE(changes.ended[0].exit->success());
}

TEST(WorkerProcesses, NothingIsAdoptedWhileFilesCannotBeRead) {
  const Folder folder;
  PatientWatch watch;
  {
    WorkerProcesses workers(JobFolder(folder.path()), "/proc/self/exe", 20, watch);
    StartAndEnd(workers, Program({"true"}));
  }
  WorkerProcesses next(JobFolder(folder.path()), "/proc/self/exe", 20, watch);
  {
    const testing::NoDescriptors none;
    EXPECT_FALSE(next.Adopt({}));
  }
  const auto ended = next.Adopt({});
  ASSERT_TRUE(ended) << ended.error().message;
  ASSERT_EQ(ended->size(), 1U);
  ASSERT_TRUE((*ended)[0].exit);
  EXPECT_TRUE((*ended)[0].exit->success());
  EXPECT_FALSE((*ended)[0].verdict);
}

// The kernel limits how much one user may watch.
TEST(WorkerProcesses, WhatCannotBeWatchedIsLookedAtAgain) {
  const Folder folder;
  PatientWatch watch;
  watch.room = false;
  WorkerProcesses workers(JobFolder(folder.path()), "/proc/self/exe", 1000, watch);
  ASSERT_TRUE(workers.Start(Program({"true"})));
  std::vector<StartRecord> ended;
  EXPECT_TRUE(WaitFor([&] {
    const double now = UptimeNow();
    ended = workers.Look(now).ended;
    EXPECT_TRUE(!ended.empty() || workers.Next(now) < now + 1) << "nobody else would wake it";
    return !ended.empty();
  }));
}

// What a worker put in the place of its record is no record, and nobody waits for a better one.
TEST(WorkerProcesses, APipeInThePlaceOfARecordIsNoRecord) {
  const Folder folder;
  PatientWatch watch;
  WorkerProcesses workers(JobFolder(folder.path()), "/proc/self/exe", 20, watch);
  StartAndEnd(workers, Program({"true"}));
  const std::string exit = ExitPath(StartPath(folder.path(), 0, 0));
  ASSERT_EQ(::rename(exit.c_str(), (exit + ".moved").c_str()), 0);
  ASSERT_EQ(::mkfifo(exit.c_str(), 0600), 0);
  std::vector<StartRecord> ended;
  EXPECT_TRUE(WaitFor([&] {
    ended = workers.Look(UptimeNow()).ended;
    return !ended.empty();
  }));
  EXPECT_EQ(ended.at(0).exit->signal, SIGKILL);
}

}  // namespace

}  // namespace voda::local
