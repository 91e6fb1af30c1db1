#include "local/shim.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>

#include "local/job_folder.h"
#include "local/launch.h"
#include "local/test_cluster.h"
#include "local/worker_group.h"

namespace voda::local {

namespace {

using testing::Folder;
using testing::Slurp;
using testing::WaitFor;

FindPatience Patiently() {
  const double until = UptimeNow() + testing::kPatience;
  return {.wait_until = until, .give_up = until};
}

// Starts a shim and tells it to start its worker.
Result<Shim> StartShim(const std::string& program, const std::string& folder) {
  auto launch = Launch::Begin(program, folder);
  if (!launch) return launch.error();
  Status reported = Ok{};
  const bool heard = WaitFor([&] {
    reported = (*launch)->Look();
    return !reported || (*launch)->ready();
  });
  if (!reported) return reported.error();
  if (!heard) return (*launch)->DidNotStart();
  return (*launch)->Go();
}

// A start folder with a spec, and its shim.
class ShimTest : public ::testing::Test {
 protected:
  void TearDown() override { KillGroup(path()); }
  void Begin(std::vector<std::string> argv) {
    spec_.argv = std::move(argv);
    spec_.env.push_back({"PATH", "/usr/bin:/bin"});
    spec_.env.push_back({"VODA_TEST", folder_.path()});
    if (spec_.log_bytes == 0) spec_.log_bytes = 1 << 20;
    if (spec_.working_dir.empty()) spec_.working_dir = "/tmp";
    ASSERT_TRUE(ReplaceFile(SpecPath(path()), Encode(spec_), 0600, Durable::kNo));
    auto shim = StartShim("/proc/self/exe", path());
    ASSERT_TRUE(shim) << shim.error().message;
    shim_ = std::move(*shim);
  }
  void Shell(const std::string& script) { Begin({"/bin/sh", "-c", script}); }

  ExitRecord WaitExit() {
    EXPECT_TRUE(WaitFor([&] { return Ended(shim_); }));
    const auto record = ReadExit(path());
    EXPECT_TRUE(record && *record);
    return record.value().value_or(ExitRecord{.code = -1});
  }

  std::string LogText() {
    std::string text;
    for (const std::string& piece : LogPieces(path())) text += Slurp(piece);
    return text;
  }

  // Processes with our mark in their environment.
  int Marked() {
    int count = 0;
    const auto all = AllProcesses();
    for (const Process& process : all.value()) {
      if (!process.zombie && Lookup(EnvironmentOf(process.pid).value(), "VODA_TEST") == folder_.path())
        ++count;
    }
    return count;
  }

  virtual std::string path() const { return folder_.path(); }

  Folder folder_;
  WorkerSpec spec_;
  Shim shim_;
};

TEST_F(ShimTest, RecordsTheExitCodeAndTheOutput) {
  Shell("echo out; echo err >&2; exit 7");
  const ExitRecord record = WaitExit();
  EXPECT_EQ(record.code, 7);
  EXPECT_EQ(record.signal, 0);
  EXPECT_FALSE(record.asked);
  EXPECT_GT(record.ended, 0);
  EXPECT_EQ(LogText(), "out\nerr\n");
  EXPECT_FALSE(LockHeld(path()).value());
  EXPECT_EQ(Marked(), 0);
}

// Below a folder for all jobs, as Voda has one.
class RemovedFolderTest : public ShimTest {
 protected:
  RemovedFolderTest() { EXPECT_TRUE(MakeFolder(path(), 0700)); }
  std::string job() const { return folder_.path() + "/jobs/1"; }
  std::string path() const override { return job() + "/w0-0"; }
  // A worker that ends when it is told to.
  void BeginWaiting() {
    Shell("echo hello; while ! [ -e " + folder_.path() + "/go ]; do sleep 0.05; done; echo bye; exit 3");
    ASSERT_TRUE(WaitFor([&] { return LogText() == "hello\n"; }));
  }
  void Go() { ASSERT_TRUE(ReplaceFile(folder_.path() + "/go", "", 0600, Durable::kNo)); }
};

TEST_F(RemovedFolderTest, TheEndIsRecordedAllTheSame) {
  BeginWaiting();
  RemoveTree(job());
  Go();
  EXPECT_EQ(WaitExit().code, 3);
  const auto starts = JobFolder(job()).Starts().value();
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(Encode(starts[0].spec.value()), Encode(spec_));
  const std::string log = LogText();
  EXPECT_NE(log.find("hello\n"), std::string::npos) << log;
  EXPECT_NE(log.find("bye\n"), std::string::npos) << log;
}

TEST_F(RemovedFolderTest, TheNextVodaFindsTheShim) {
  BeginWaiting();
  ASSERT_EQ(::rename(job().c_str(), (job() + ".moved").c_str()), 0);
  EXPECT_TRUE(WaitFor([&] { return LockHeld(path()).value(); }));
  const auto found = FindShim(path(), Patiently());
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->pid, shim_.pid);
  Go();
  EXPECT_EQ(WaitExit().code, 3);
}

TEST_F(RemovedFolderTest, NothingIsMadeAgainWhereVodasDataIsGone) {
  BeginWaiting();
  RemoveTree(folder_.path() + "/jobs");
  Go();
  EXPECT_TRUE(WaitFor([&] { return Ended(shim_); }));
  EXPECT_FALSE(Exists(folder_.path() + "/jobs"));
}

TEST_F(ShimTest, RecordsASignal) {
  Shell("kill -SEGV $$");
  const ExitRecord record = WaitExit();
  EXPECT_EQ(record.signal, SIGSEGV);
  EXPECT_EQ(record.status(), 128 + SIGSEGV);
}

TEST_F(ShimTest, GivesExactlyTheEnvironmentAndTheFolderOfTheSpec) {
  ::setenv("VODA_TEST_LEAK", "1", 1);
  spec_.working_dir = "/usr";
  spec_.env.push_back({"EMPTY", ""});
  spec_.env.push_back({"LINES", "a\nb"});
  Begin({"/usr/bin/python3", "-c",
         "import os\nprint(os.getcwd())\n"
         "for pair in open('/proc/self/environ').read().split(chr(0)): print(repr(pair))"});
  ::unsetenv("VODA_TEST_LEAK");
  WaitExit();
  EXPECT_EQ(LogText(),
            "/usr\n'EMPTY='\n'LINES=a\\nb'\n'PATH=/usr/bin:/bin'\n'VODA_TEST=" + folder_.path() + "'\n''\n");
}

TEST_F(ShimTest, AProgramThatCannotBeRunIs127WithItsName) {
  Begin({"no-such-program-here", "x"});
  EXPECT_EQ(WaitExit().code, 127);
  EXPECT_EQ(LogText(), "voda: cannot run no-such-program-here: No such file or directory\n");
}

TEST_F(ShimTest, AMissingWorkingDirectoryIs127WithItsName) {
  spec_.working_dir = "/no/such/folder";
  Shell("true");
  EXPECT_EQ(WaitExit().code, 127);
  EXPECT_NE(LogText().find("cannot enter the working directory /no/such/folder"), std::string::npos);
}

TEST_F(ShimTest, SignalsAndFilesAreAsInAFreshProcess) {
  Begin({"/usr/bin/python3", "-c",
         "import os,signal\n"
         "print(sorted(int(f) for f in os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))\n"
         "s=dict(l.split(':',1) for l in open('/proc/self/status') if ':' in l)\n"
         "print(s['SigBlk'].strip(), int(s['SigIgn'],16) & ~(1<<12|1<<24))\n"  // python ignores PIPE and XFSZ
         "print(os.readlink('/proc/self/fd/0'), os.getpgid(0)==os.getpid())\n"});
  EXPECT_EQ(WaitExit().code, 0);
  // The fourth descriptor is the folder being listed.
  EXPECT_EQ(LogText(), "[0, 1, 2] 4\n0000000000000000 0\n/dev/null True\n");
}

TEST_F(ShimTest, StopsWhenAsked) {
  Shell("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done");
  ASSERT_TRUE(WaitFor([&] { return LogText() == "up\n"; }));
  SendSignal(shim_, SIGTERM);
  const ExitRecord record = WaitExit();
  EXPECT_TRUE(record.asked);
  EXPECT_EQ(record.code, 3);
  EXPECT_TRUE(LogText().ends_with("bye\n")) << LogText();
}

TEST_F(ShimTest, AWorkerThatIgnoresSigtermIsKilledAfterItsGrace) {
  spec_.grace_seconds = 1;
  Shell("trap '' TERM; echo up; while :; do sleep 0.05; done");
  ASSERT_TRUE(WaitFor([&] { return LogText() == "up\n"; }));
  const double asked_at = UptimeNow();
  SendSignal(shim_, SIGTERM);
  const ExitRecord record = WaitExit();
  EXPECT_TRUE(record.asked);
  EXPECT_EQ(record.signal, SIGKILL);
  EXPECT_GE(record.ended - asked_at, 0.9);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(ShimTest, LeavesNoDescendantBehind) {
  // One process is in the group, one ignores SIGTERM in a session of its own, one is orphaned in another
  // session.
  Shell(
      "sleep 1000 & setsid sh -c \"trap '' TERM; while :; do sleep 0.05; done\" & "
      "setsid sh -c 'setsid sleep 1000 & exit 0'; echo up; "
      "while [ ! -e $VODA_TEST/go ]; do sleep 0.05; done; exit 5");
  ASSERT_TRUE(WaitFor([&] { return LogText() == "up\n" && Marked() >= 4; }));
  ASSERT_TRUE(ReplaceFile(path() + "/go", "", 0600, Durable::kNo));
  const ExitRecord record = WaitExit();
  EXPECT_EQ(record.code, 5);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(ShimTest, AskedToStopItTakesDaemonsAlong) {
  spec_.grace_seconds = 1;
  Shell("setsid sh -c \"trap '' TERM; while :; do sleep 0.05; done\" & echo up; exec sleep 1000");
  ASSERT_TRUE(WaitFor([&] { return LogText() == "up\n" && Marked() >= 2; }));
  SendSignal(shim_, SIGTERM);
  EXPECT_TRUE(WaitExit().asked);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(ShimTest, TheWorkerDiesWithItsShim) {
  Shell("echo up; exec sleep 1000");
  ASSERT_TRUE(WaitFor([&] { return LogText() == "up\n"; }));
  SendSignal(shim_, SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return Ended(shim_); }));
  EXPECT_TRUE(WaitFor([&] { return Marked() == 0; }));
  EXPECT_FALSE(LockHeld(path()).value());
  EXPECT_FALSE(ReadExit(path()).value());
}

TEST_F(ShimTest, KeepsTheNewestOfALongLog) {
  spec_.log_bytes = 100'000;
  Shell("i=0; while [ $i -lt 40000 ]; do echo line $i; i=$((i+1)); done");
  EXPECT_EQ(WaitExit().code, 0);
  const std::string text = LogText();
  EXPECT_LE(text.size(), 100'000U);
  EXPECT_GE(text.size(), 50'000U);
  EXPECT_TRUE(text.ends_with("line 39998\nline 39999\n"));
  // There is no gap: the log is the end of what was printed.
  std::string all;
  for (int i = 0; i < 40000; ++i) all += "line " + std::to_string(i) + "\n";
  EXPECT_TRUE(all.ends_with(text));
}

TEST_F(ShimTest, ALockIsHeldFromTheStartAndASecondShimIsRefused) {
  Shell("exec sleep 1000");
  EXPECT_TRUE(LockHeld(path()).value());
  const auto second = StartShim("/proc/self/exe", path());
  EXPECT_FALSE(second);
  auto found = FindShim(path(), Patiently());
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->pid, shim_.pid);
  SendSignal(shim_, SIGTERM);
  WaitExit();
  EXPECT_FALSE(FindShim(path(), Patiently()).value());
}

TEST_F(ShimTest, AForeignHolderOfTheLockIsWaitedForNoLongerThanAsked) {
  const auto lock = TakeLock(path());
  ASSERT_TRUE(lock);
  EXPECT_FALSE(FindShim(path(), {.wait_until = 0, .give_up = UptimeNow() + 1e6})) << "it may become a shim";
  const auto found = FindShim(path(), {});
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found) << "it is none";
}

TEST_F(ShimTest, AShimThatIsNotThereIsAnError) {
  spec_.argv = {"true"};
  ASSERT_TRUE(ReplaceFile(SpecPath(path()), Encode(spec_), 0600, Durable::kNo));
  const auto missing = StartShim("/no/such/shim", path());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/no/such/shim"), std::string::npos);
  const auto other = StartShim("/bin/false", path());
  ASSERT_FALSE(other);
  EXPECT_FALSE(LockHeld(path()).value());
}

TEST_F(ShimTest, AMemoryLimitKillsTheWorkerOnly) {
  spec_.memory_bytes = std::int64_t{64} << 20;
  Begin({"/usr/bin/python3", "-c", "x = b'x' * (400 << 20)\nprint(len(x))"});
  const ExitRecord record = WaitExit();
  if (LogText().find("is not applied") != std::string::npos)
    GTEST_SKIP() << "LEFT OUT: the memory limit of a worker; no cgroup can be made here: " << LogText();
  EXPECT_EQ(record.signal, SIGKILL);
  EXPECT_TRUE(record.out_of_memory);
  EXPECT_NE(LogText().find("the memory limit of 67108864 bytes was reached"), std::string::npos);
  EXPECT_FALSE(Exists(Slurp(CgroupPath(path()))));
}

// Runs on a disk of its own, which can be full.
class FullDiskTest : public ShimTest {
 protected:
  void SetUp() override {
    if (::mount("none", folder_.path().c_str(), "tmpfs", 0, "size=512k") != 0)
      GTEST_SKIP() << "LEFT OUT: a full disk under a shim; mounting a tmpfs needs root";
    mounted_ = true;
  }
  void TearDown() override {
    ShimTest::TearDown();
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  bool mounted_ = false;
};

TEST_F(FullDiskTest, CostsLogLinesAndNothingElse) {
  // This takes the room that the log does not use; it is freed at the end, for the last output and the
  // record.
  {
    const Fd ballast(::open((path() + "/ballast").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    WriteAll(ballast.get(), std::string(300'000, 'b'));
  }
  Shell("head -c 1000000 /dev/zero | tr '\\0' x; echo; rm $VODA_TEST/ballast; echo after; exit 9");
  EXPECT_EQ(WaitExit().code, 9);
  EXPECT_NE(LogText().find("output of the worker could not be written and is lost: No space left on device"),
            std::string::npos);
  EXPECT_TRUE(LogText().ends_with("after\n"));
}

TEST_F(FullDiskTest, TheEndIsRecordedAllTheSame) {
  Shell("head -c 1000000 /dev/zero | tr '\\0' x; exit 9");
  EXPECT_EQ(WaitExit().code, 9);
}

}  // namespace

}  // namespace voda::local
