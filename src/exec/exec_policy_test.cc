// Real child processes: small scripts in a folder of their own.
#include "exec/exec_policy.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "codec/snapshot_json.h"

namespace voda {
namespace {

namespace fs = std::filesystem;

// Capacity 8. In order of service: urgent (priority), early, late; huge can never be seated.
constexpr const char* kSnapshot = R"({"nodes": [{"name": "n0", "gpus": 8}], "jobs": [
  {"name": "late", "submit_time": 5, "min": 1, "max": 8, "sizes": [1, 2, 4, 8], "workers": ["n0", "n0", "n0"]},
  {"name": "early", "submit_time": 1, "min": 2, "max": 4, "workers": ["n0", "n0", "n0", "n0"]},
  {"name": "huge", "submit_time": 0, "min": 9, "max": 9},
  {"name": "urgent", "submit_time": 9, "priority": 1, "min": 1, "max": 2, "gpus_per_worker": 2, "workers": ["n0"]}]})";
constexpr JobIndex kLate = 0, kEarly = 1, kHuge = 2, kUrgent = 3;

class ExecPolicyTest : public testing::Test {
 protected:
  ExecPolicyTest() {
    std::string name = (fs::temp_directory_path() / "voda_exec_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    auto parsed = ParseSnapshot(kSnapshot);
    if (parsed) snapshot_ = std::move(*parsed);
    files_before_ = OpenFiles();
  }
  ~ExecPolicyTest() override {
    EXPECT_EQ(OpenFiles(), files_before_) << "descriptors leaked";
    EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) << "a child was left";
    fs::remove_all(folder_);
  }

  static std::ptrdiff_t OpenFiles() {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  }

  std::string Script(const std::string& text) const {
    const fs::path path = folder_ / "policy";
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
    return path.string();
  }
  Allocation RunText(const std::string& text, double timeout_seconds = 10) const {
    return MakeExecPolicy(Script(text), timeout_seconds)->Allocate(snapshot_);
  }

  // The previous allocation: urgent 1 x 2 GPUs, early 4, late of its 3 the 2 that are left and allowed.
  void ExpectPrevious(const Allocation& allocation, const std::string& want_note) const {
    EXPECT_EQ(allocation.workers, (std::vector<int>{2, 4, 0, 1}));
    EXPECT_EQ(allocation.order, (std::vector<JobIndex>{kUrgent, kEarly, kLate}));
    EXPECT_NE(allocation.note.find(want_note), std::string::npos) << allocation.note;
    EXPECT_NE(allocation.note.find("the previous allocation stands"), std::string::npos);
    for (const JobIndex i : {kLate, kEarly, kUrgent}) {
      EXPECT_EQ(allocation.reasons[i].code, ReasonCode::kPolicyFailed);
    }
    EXPECT_EQ(allocation.reasons[kHuge].code, ReasonCode::kNeverFits);
    EXPECT_EQ(allocation.reasons[kHuge].free, 8);
    EXPECT_TRUE(Valid(snapshot_, allocation));
  }

  fs::path folder_;
  Snapshot snapshot_;
  std::ptrdiff_t files_before_ = 0;
};

TEST_F(ExecPolicyTest, TakesAGoodAnswer) {
  const Allocation allocation =
      RunText("#!/bin/sh\ncat >/dev/null\necho '{\"allocation\": {\"late\": 4, \"urgent\": 2}}'\n");
  EXPECT_EQ(allocation.workers, (std::vector<int>{4, 0, 0, 2}));
  EXPECT_EQ(allocation.note, "");
  for (const JobIndex i : {kLate, kEarly, kUrgent})
    EXPECT_EQ(allocation.reasons[i].code, ReasonCode::kExternal);
  EXPECT_EQ(allocation.reasons[kHuge].code, ReasonCode::kNeverFits);
  EXPECT_EQ(allocation.order, (std::vector<JobIndex>{kUrgent, kEarly, kLate}));
  EXPECT_EQ(allocation.entry, Entry::kMin);
}

TEST_F(ExecPolicyTest, GivesTheSnapshotAndArguments) {
  const std::string path = Script(R"(#!/usr/bin/env python3
import json, sys
snapshot = json.load(open("/dev/stdin"))
free = sum(node["gpus"] for node in snapshot["nodes"])
answer = {}
for job in sorted(snapshot["jobs"], key=lambda job: job["submit_time"]):
    need = job["min"] * job["gpus_per_worker"]
    if need <= free and job["name"] != sys.argv[1]:
        answer[job["name"]] = job["min"]
        free -= need
json.dump({"allocation": answer}, sys.stdout)
)");
  const Allocation allocation = MakeExecPolicy(path + "  late ")->Allocate(snapshot_);
  EXPECT_EQ(allocation.workers, (std::vector<int>{0, 2, 0, 1})) << allocation.note;
  EXPECT_EQ(allocation.note, "");
}

TEST_F(ExecPolicyTest, DoesNotOfferJobsSetAside) {
  snapshot_.jobs[kEarly].aside = Aside::kHeld;
  const std::string text =
      "#!/bin/sh\nif grep -q early; then exit 3; fi\necho '{\"allocation\": {\"late\": 1}}'\n";
  const Allocation allocation = RunText(text);
  EXPECT_EQ(allocation.note, "");
  EXPECT_EQ(allocation.workers, (std::vector<int>{1, 0, 0, 0}));
  EXPECT_EQ(allocation.reasons[kEarly].code, ReasonCode::kHeld);
}

TEST_F(ExecPolicyTest, AnswerThatBreaksARuleIsRefused) {
  const auto answer = [&](const std::string& json) { return RunText("#!/bin/sh\necho '" + json + "'\n"); };
  ExpectPrevious(answer("garbage"), "not JSON");
  ExpectPrevious(answer(""), "not JSON");
  ExpectPrevious(answer(R"({"allocation": {"nobody": 1}})"),
                 "names job \"nobody\", which is not in the snapshot");
  ExpectPrevious(answer(R"({"allocation": {"late": 3}})"), "gives job \"late\" 3 workers");
  ExpectPrevious(answer(R"({"allocation": {"late": 3}})"), "an allowed size (1, 2, 4, 8)");
  ExpectPrevious(answer(R"({"allocation": {"late": -1}})"), "gives job \"late\" -1 workers");
  ExpectPrevious(answer(R"({"allocation": {"late": 4294967297}})"), "gives job \"late\" 4294967297 workers");
  ExpectPrevious(answer(R"({"allocation": {"late": 8, "urgent": 1}})"),
                 "gives 10 GPUs in total, but there are 8");
  ExpectPrevious(answer(R"({"allocation": {"huge": 9}})"),
                 "gives job \"huge\" 9 workers, whose minimum of 9 cannot");
}

TEST_F(ExecPolicyTest, ProgramThatFails) {
  const std::string good = "echo '{\"allocation\": {}}'\n";
  ExpectPrevious(RunText("#!/bin/sh\n" + good + "exit 1\n"), "exit code 1");
  ExpectPrevious(RunText("#!/bin/sh\n" + good + "kill -TERM $$\n"), "killed by signal 15");
  ExpectPrevious(RunText("no shebang\n"), "cannot start it");
  ExpectPrevious(RunText("#!/no/such/interpreter\n"), "cannot start it");
  ExpectPrevious(MakeExecPolicy("/no/such/program")->Allocate(snapshot_), "No such file");
  ExpectPrevious(MakeExecPolicy(folder_.string())->Allocate(snapshot_), "Permission denied");
  ExpectPrevious(MakeExecPolicy(" ")->Allocate(snapshot_), "no program is named");
}

TEST_F(ExecPolicyTest, TooLongOrTooMuch) {
  const auto begin = std::chrono::steady_clock::now();
  const fs::path pids = folder_ / "pids";
  ExpectPrevious(RunText("#!/bin/sh\nsleep 100 &\necho $$ $! > " + pids.string() + "\nwait\n", 2.5),
                 "no answer within 2.5 s");
  // The program and everything that it started are gone.
  pid_t shell = 0;
  pid_t sleeper = 0;
  std::ifstream(pids) >> shell >> sleeper;
  ASSERT_GT(sleeper, 0);
  EXPECT_NE(::kill(shell, 0), 0);
  bool gone = false;  // gone, or for a moment a zombie of init's
  for (int i = 0; i < 2000 && !gone; ++i) {
    std::string state;
    std::ifstream stat("/proc/" + std::to_string(sleeper) + "/stat");
    stat >> state >> state >> state;
    gone = !stat || state == "Z";
    if (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
  ExpectPrevious(RunText("#!/bin/sh\nexec 1>&-\nsleep 100\n", 0.3), "no answer within 0.3 s");
  ExpectPrevious(RunText("#!/bin/sh\nexec yes\n", 60), "printed more than 67108864 bytes");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));  // not 100
}

TEST_F(ExecPolicyTest, ProgramThatDoesNotReadItsInput) {
  Job job = snapshot_.jobs[kEarly];
  for (int i = 0; i < 20'000; ++i) {
    job.name = "more" + std::to_string(i);
    snapshot_.jobs.push_back(job);
  }
  const std::string good = "echo '{\"allocation\": {\"early\": 2}}'\n";
  EXPECT_EQ(RunText("#!/bin/sh\nexec 0<&-\n" + good).note, "");
  EXPECT_EQ(RunText("#!/bin/sh\n" + good).note, "");
}

TEST_F(ExecPolicyTest, DescendantThatKeepsStdoutOpenDoesNotHoldUsUp) {
  const auto begin = std::chrono::steady_clock::now();
  const Allocation allocation =
      RunText("#!/bin/sh\nsleep 100 &\necho '{\"allocation\": {\"early\": 2}}'\n", 60);
  EXPECT_EQ(allocation.note, "");
  EXPECT_EQ(allocation.workers[kEarly], 2);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(ExecPolicyTest, PreviousAllocationFitsWhatIsLeft) {
  // The node shrank to 3 GPUs: urgent keeps 2, early's minimum of 2 no longer fits, late gets 1.
  snapshot_.nodes[0].gpus = 3;
  const Allocation allocation = MakeExecPolicy("/no/such/program")->Allocate(snapshot_);
  EXPECT_EQ(allocation.workers, (std::vector<int>{1, 0, 0, 1}));
}

}  // namespace
}  // namespace voda
