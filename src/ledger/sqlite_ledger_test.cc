#include "ledger/sqlite_ledger.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "base/log.h"
#include "ledger/ledger_contract.h"
#include "store/store_testing.h"
#include "support/test_data.h"

namespace voda {
namespace {

using testing::ChildProcess;
using testing::LedgerHarness;

class SqliteHarness final : public LedgerHarness {
 public:
  SqliteHarness() { Open(); }
  Ledger& ledger() override { return *ledger_; }
  void Settle(const std::function<bool()>&) override { ledger_->Flush(); }
  LedgerContents Reopen() override {
    Open();
    return ledger_->Read().value();
  }
  bool AcceptAndDie(std::vector<LedgerJob> jobs, const SubmissionKey& key, int writes) override {
    bool answered = false;
    ledger_->Accept(std::move(jobs), key, [&](const std::optional<Refusal>&) { answered = true; });
    if (writes > 0) ledger_->Flush();
    return answered;
  }
  int WritesOf(int) const override { return 1; }  // a transaction

 private:
  void Open() {
    SetLog({LogLevel::kError, false});
    ledger_.reset();
    store_.reset();
    store_ = testing::MustOpen(folder_.Path("voda.db"));
    ledger_ = std::make_unique<SqliteLedger>(*store_);
  }

  sim::TempDir folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SqliteLedger> ledger_;
};

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(Sqlite, LedgerContract,
                         ::testing::Values(LedgerContractCase{
                             "file", [] { return std::unique_ptr<LedgerHarness>(new SqliteHarness); }}));
}  // namespace testing

namespace {

LedgerJob Nameless() {
  LedgerJob job;
  job.spec = std::make_shared<const JobSpec>();
  return job;
}

TEST(SqliteLedgerTest, ADocumentThatThisVersionCannotReadIsSaid) {
  const sim::TempDir folder;
  const auto store = testing::MustOpen(folder.Path("voda.db"));
  SqliteLedger ledger(*store);
  store->Write("INSERT INTO ledger VALUES ('a', 1, 'v100', 't', 1, 0, '{}', 'kind: Old')");
  ledger.Flush();
  const auto jobs = ledger.Read()->jobs;
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_NE(jobs[0].refusal.find("cannot be read by this version"), std::string::npos) << jobs[0].refusal;
}

// Ends that nobody waits for outlast a store that fails for a while.
TEST(SqliteLedgerTest, WhatNobodyWaitsForIsWrittenLater) {
  SetLog({LogLevel::kError, false});
  const sim::TempDir folder;
  const auto store = testing::MustOpen(folder.Path("voda.db"));
  SqliteLedger ledger(*store);
  store->Write("INSERT INTO ledger VALUES ('a', 1, 'v100', 't', 1, 0, '{}', '')");
  store->Write("INSERT INTO ledger VALUES ('b', 2, 'v100', 't', 1, 0, '{}', '')");
  ledger.Flush();
  bool ended = false;
  ledger.End("b", [&] { ended = true; });
  store->Write("INSERT INTO nowhere VALUES (1)");
  ledger.Flush();
  EXPECT_FALSE(ended);
  EXPECT_EQ(ledger.Read()->jobs.size(), 2U);
  store->CommitAll();
  EXPECT_TRUE(ended);
  EXPECT_EQ(ledger.Read()->jobs.size(), 1U);
}

// What was asked of a ledger, after a commit.
bool Kept(SqliteLedger& ledger, const std::function<void(const Ledger::Done&)>& ask) {
  bool kept = false;
  ask([&](const std::optional<Refusal>& refused) { kept = !refused; });
  ledger.Flush();
  return kept;
}

TEST(SqliteLedgerTest, JobsAreStoppedWithNoByteFree) {
  SetLog({LogLevel::kError, false});
  const sim::TempDir folder;
  const std::string disk = folder.Path("disk");
  std::filesystem::create_directory(disk);
  const auto body = [&] {
    testing::MountDisk(disk, "2m");
    const std::string path = disk + "/voda.db";
    auto store = testing::MustOpen(path);
    auto ledger = std::make_unique<SqliteLedger>(*store);
    const auto reopen = [&] {
      ledger.reset();
      store.reset();
      store = testing::MustOpen(path);
      ledger = std::make_unique<SqliteLedger>(*store);
      std::map<std::string, FoundJob> found;
      const auto contents = ledger->Read();
      for (const FoundJob& job : contents->jobs) found.emplace(job.name, job);
      return found;
    };
    std::int64_t id = 0;
    JobState state;
    state.limits = {1, 1, 4};
    for (const char* const name : {"held", "deleted", "resumed", "other"}) {
      LedgerJob job = Nameless();
      job.id = ++id;
      job.name = name;
      job.state = state;
      EXPECT_TRUE(Kept(*ledger, [&](const Ledger::Done& done) { ledger->Accept({job}, {}, done); }));
    }
    testing::FillDisk(disk + "/filler");
    const auto hold = [&](const std::string& job, const JobState& to) {
      return Kept(*ledger, [&](const Ledger::Done& done) { ledger->Change(job, to, done); });
    };
    JobState held = state;
    held.held = true;
    EXPECT_TRUE(hold("held", held));
    EXPECT_TRUE(hold("resumed", held));
    EXPECT_TRUE(Kept(*ledger, [&](const Ledger::Done& done) {
      ledger->Remove("deleted", [done](const Answer<Ledger::Removal>& removed) {
        done(removed ? std::nullopt : std::optional(removed.error()));
      });
    }));
    EXPECT_FALSE(hold("resumed", state)) << "it takes nothing back";
    JobState more = held;
    more.priority = 5;
    EXPECT_FALSE(hold("other", more)) << "more than a stop";

    auto found = reopen();  // on the full disk, as after a crash
    EXPECT_TRUE(found.at("held").state->held);
    EXPECT_TRUE(found.at("resumed").state->held);
    EXPECT_TRUE(found.at("deleted").deleting);
    EXPECT_FALSE(found.at("other").deleting || found.at("other").state->held);

    std::filesystem::remove(disk + "/filler");
    EXPECT_TRUE(hold("resumed", state));
    EXPECT_EQ(testing::Bytes(path + "-stops"), std::string(StopFile::kBytes, '\0')) << "the store has them";
    found = reopen();
    EXPECT_TRUE(found.at("held").state->held);
    EXPECT_FALSE(found.at("resumed").state->held);
    EXPECT_TRUE(found.at("deleted").deleting);
  };
  VODA_WITH_OWN_MOUNTS(body);
}

TEST(SqliteLedgerTest, EveryAnsweredBatchSurvivesAKillAsAWhole) {
  const sim::TempDir folder;
  const std::string path = folder.Path("voda.db");
  for (unsigned round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ChildProcess writer([&] {
      ::close(ends[0]);
      const auto store = testing::MustOpen(path);
      SqliteLedger ledger(*store);
      for (int batch = 0;; ++batch) {
        std::vector<LedgerJob> jobs;
        for (int i = 0; i < 3; ++i) {
          LedgerJob job = Nameless();
          job.id = (static_cast<std::int64_t>(round) * 1'000'000 + batch) * 3 + i;
          job.name = std::to_string(job.id);
          jobs.push_back(std::move(job));
        }
        ledger.Accept(std::move(jobs), {}, [&](const std::optional<Refusal>& refused) {
          const std::int64_t told = static_cast<std::int64_t>(round) * 1'000'000 + batch;
          if (refused || ::write(ends[1], &told, sizeof told) != static_cast<ssize_t>(sizeof told))
            ::_exit(1);
        });
        ledger.Flush();
      }
    });
    ::close(ends[1]);
    std::set<std::int64_t> told;
    std::int64_t batch = 0;
    if (::read(ends[0], &batch, sizeof batch) == static_cast<ssize_t>(sizeof batch)) told.insert(batch);
    std::this_thread::sleep_for(std::chrono::microseconds(std::mt19937(round)() % 30'000));
    writer.Kill();
    while (::read(ends[0], &batch, sizeof batch) == static_cast<ssize_t>(sizeof batch)) told.insert(batch);
    ::close(ends[0]);
    ASSERT_FALSE(told.empty());
    const auto store = testing::MustOpen(path);
    std::map<std::int64_t, int> there;
    SqliteLedger ledger(*store);
    const auto contents = ledger.Read();
    ASSERT_TRUE(contents);
    for (const FoundJob& job : contents->jobs) ++there[job.id / 3];
    for (const auto& [one, jobs] : there) EXPECT_EQ(jobs, 3) << one;
    for (const std::int64_t one : told) EXPECT_TRUE(there.contains(one)) << one;
  }
}

}  // namespace
}  // namespace voda
