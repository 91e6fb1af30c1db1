#include "service/rebuild.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>

#include "base/files.h"
#include "history/sqlite_history.h"
#include "ledger/sqlite_ledger.h"
#include "local/job_folder.h"
#include "service/test_service.h"

namespace voda {
namespace {

using local::ExitVerdict;
using local::JobFolder;

class RebuildTest : public ::testing::Test {
 protected:
  RebuildTest() {
    std::string pattern = ::testing::TempDir() + "/voda-rebuild-XXXXXX";
    data_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(data_ + "/jobs");
  }
  ~RebuildTest() override { std::filesystem::remove_all(data_); }

  // The folder of a job, with one start that has this verdict.
  JobFolder Folder(std::int64_t id, const std::string& name, std::optional<ExitVerdict::Kind> verdict = {}) {
    JobFolder folder(data_ + "/jobs/" + std::to_string(id));
    const auto specs = ParseJobs(testing::Yaml("job", 1, 2));
    EXPECT_TRUE(folder
                    .Claim({.id = id,
                            .name = name,
                            .gpu_type = "cpu",
                            .token = "token of " + name,
                            .accepted = 1000,
                            .document = specs->front().document})
                    .value());
    local::WorkerSpec start;
    start.argv = {"true"};
    if (verdict) {
      EXPECT_TRUE(folder.NewStart(start));
      const local::StartRecord written = folder.Starts().value().front();
      EXPECT_TRUE(folder.Write(written, {*verdict, 1}));
      const local::ExitRecord exit{.code = *verdict == ExitVerdict::Kind::kFatal ? 3 : 0};
      EXPECT_TRUE(ReplaceFile(local::ExitPath(written.folder), Encode(exit), 0600, Durable::kNo));
    }
    return folder;
  }
  Rebuilt Rebuild() {
    auto rebuilt = RebuildStore(data_);
    EXPECT_TRUE(rebuilt) << rebuilt.error().message;
    return rebuilt ? *rebuilt : Rebuilt();
  }

  std::string data_;
};

using Names = std::vector<std::string>;

TEST_F(RebuildTest, WhatTheFoldersTellIsInTheStoreAgain) {
  Folder(3, "waits");
  Folder(4, "ran", ExitVerdict::Kind::kFailure);
  ASSERT_TRUE(Folder(5, "completed", ExitVerdict::Kind::kCompleted).NoteEnd(2000));
  ASSERT_TRUE(Folder(6, "failed", ExitVerdict::Kind::kFatal).NoteEnd(2001));
  ASSERT_TRUE(Folder(7, "deleted", ExitVerdict::Kind::kStopped).NoteEnd(2002));
  std::filesystem::create_directory(data_ + "/jobs/8");
  std::filesystem::rename(data_ + "/jobs/7", data_ + "/jobs/9");
  Folder(7, "deleted");
  std::filesystem::rename(data_ + "/jobs/9/ended", data_ + "/jobs/7/ended");

  const Rebuilt rebuilt = Rebuild();
  EXPECT_EQ(rebuilt.active, (Names{"waits", "ran"}));
  EXPECT_EQ(rebuilt.ended, (Names{"completed", "failed", "deleted"}));
  ASSERT_EQ(rebuilt.left.size(), 2U) << "one says nothing, and one was moved to another number";

  const auto store = Store::Open(data_ + "/voda.db");
  ASSERT_TRUE(store);
  SqliteLedger ledger(**store);
  SqliteHistory history(**store);
  const auto contents = ledger.Read();
  ASSERT_EQ(contents->jobs.size(), 2U);
  EXPECT_EQ(contents->jobs[0].id, 3);
  EXPECT_EQ(contents->jobs[0].name, "waits");
  EXPECT_EQ(contents->jobs[0].token, "token of waits");
  EXPECT_EQ(contents->jobs[0].gpu_type, "cpu");
  EXPECT_EQ(contents->jobs[0].created, 1000);
  EXPECT_EQ(contents->jobs[0].state->limits.max, 2);
  EXPECT_EQ(contents->jobs[0].refusal, "");
  const auto records = history.Jobs();
  ASSERT_EQ(records->size(), 3U);
  const std::map<std::string, JobStatus> expected = {{"completed", JobStatus::kCompleted},
                                                     {"failed", JobStatus::kFailed},
                                                     {"deleted", JobStatus::kCanceled}};
  for (const JobRecord& record : *records) {
    EXPECT_EQ(record.status, expected.at(record.name)) << record.name;
    EXPECT_GE(record.ended.value_or(0), 2000) << record.name;
    const std::map<std::string, int> codes = {{"completed", 0}, {"failed", 3}, {"deleted", kNoExitCode}};
    EXPECT_EQ(record.exit_code, codes.at(record.name)) << record.name;
  }
  EXPECT_EQ(history.LastId().value(), 7);
}

TEST_F(RebuildTest, AnExitTellsTheEndWhereTheDiskHadNoRoomForAVerdict) {
  const auto ended = [this](std::int64_t id, const std::string& name, const local::ExitRecord& exit) {
    const JobFolder folder = Folder(id, name);
    local::WorkerSpec start;
    start.argv = {"true"};
    const auto path = folder.NewStart(start);
    ASSERT_TRUE(path);
    ASSERT_TRUE(ReplaceFile(local::ExitPath(*path), Encode(exit), 0600, Durable::kNo));
    ASSERT_TRUE(folder.NoteEnd(2000));
  };
  ended(3, "completed", {.ended = 1});
  ended(4, "failed", {.code = 3, .ended = 1});
  ended(5, "deleted", {.signal = 15, .asked = true, .ended = 1});
  Rebuild();
  const auto store = Store::Open(data_ + "/voda.db");
  ASSERT_TRUE(store);
  SqliteHistory history(**store);
  const auto records = history.Jobs();
  ASSERT_EQ(records->size(), 3U);
  const std::map<std::string, JobStatus> expected = {{"completed", JobStatus::kCompleted},
                                                     {"failed", JobStatus::kFailed},
                                                     {"deleted", JobStatus::kCanceled}};
  for (const JobRecord& record : *records) EXPECT_EQ(record.status, expected.at(record.name)) << record.name;
}

TEST_F(RebuildTest, WhatTheStoreKnowsIsLeftAlone) {
  Folder(3, "a");
  EXPECT_EQ(Rebuild().active, Names{"a"});
  Folder(4, "b");
  const Rebuilt again = Rebuild();
  EXPECT_EQ(again.active, Names{"b"});
  EXPECT_TRUE(again.left.empty());
  EXPECT_TRUE(Rebuild().active.empty());
}

TEST_F(RebuildTest, AFolderOfAnotherJobUnderAKnownNumberIsToldOf) {
  Folder(3, "a");
  Rebuild();
  std::filesystem::remove_all(data_ + "/jobs/3");
  Folder(3, "b");
  const Rebuilt again = Rebuild();
  EXPECT_TRUE(again.active.empty());
  ASSERT_EQ(again.left.size(), 1U);
  EXPECT_NE(again.left[0].find("/jobs/3: the store knows another job of this number"), std::string::npos)
      << again.left[0];
}

TEST_F(RebuildTest, ANameThatIsTakenGetsAnother) {
  Folder(3, "a");
  Rebuild();
  JobFolder other(data_ + "/jobs/4");
  ASSERT_TRUE(other
                  .Claim({.id = 4,
                          .name = "a",
                          .gpu_type = "cpu",
                          .token = "another",
                          .accepted = 1000,
                          .document = ParseJobs(testing::Yaml("job", 1, 2))->front().document})
                  .value());
  EXPECT_EQ(Rebuild().active, Names{"job-19700101-001640"});
}

TEST_F(RebuildTest, NotWhileVodaRuns) {
  const auto lock = local::LockJobs(data_ + "/jobs");
  ASSERT_TRUE(lock);
  const auto refused = RebuildStore(data_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another Voda uses"), std::string::npos) << refused.error().message;
  EXPECT_FALSE(std::filesystem::exists(data_ + "/voda.db"));
}

}  // namespace
}  // namespace voda
