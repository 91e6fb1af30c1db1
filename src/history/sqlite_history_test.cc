#include "history/sqlite_history.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <sstream>
#include <type_traits>

#include "base/log.h"
#include "history/history_contract.h"
#include "history/job_columns.h"
#include "store/store_testing.h"
#include "support/check.h"
#include "support/test_data.h"

namespace voda {
namespace {

class SqliteHarness final : public testing::HistoryHarness {
 public:
  History& Reopen() override {
    SetLog({LogLevel::kError, false});
    history_.reset();
    store_.reset();
    store_ = testing::MustOpen(folder_.Path("voda.db"));
    history_ = std::make_unique<SqliteHistory>(*store_);
    return *history_;
  }
  void Break() override { store_->Write("INSERT INTO nowhere VALUES (1)"); }

 private:
  sim::TempDir folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SqliteHistory> history_;
};

// Every field as text, so that one comparison covers them all and names what differs.
std::map<std::string, std::string> Shown(const JobRecord& job) {
  std::map<std::string, std::string> shown = {{"id", std::to_string(job.id)}};
  EachJobColumn(job, [&](const char* column, const auto& field) {
    std::ostringstream text;
    text.precision(17);
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::optional<double>>) {
      if (field) text << *field;
      if (!field) text << "none";
    } else if constexpr (std::is_enum_v<Field>) {
      text << Name(field);
    } else {
      text << field;
    }
    shown[column] = text.str();
  });
  return shown;
}

std::string AnyText() {
  return *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
}

JobRecord AnyJob() {
  JobRecord job;
  EachJobColumn(job, [](const char*, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::string>) {
      field = AnyText();
    } else if constexpr (std::is_same_v<Field, std::optional<double>>) {
      if (*rc::gen::arbitrary<bool>()) field = *rc::gen::arbitrary<double>();
    } else if constexpr (std::is_enum_v<Field>) {
      field = static_cast<Field>(*rc::gen::inRange(0, std::is_same_v<Field, JobStatus> ? 6 : 2));
    } else {
      field = *rc::gen::arbitrary<Field>();
    }
  });
  return job;
}

TEST(SqliteHistoryTest, EveryFieldOfAJobComesBackWhateverItHolds) {
  const sim::TempDir folder;
  const auto store = testing::MustOpen(folder.Path("voda.db"));
  SqliteHistory history(*store);
  std::int64_t id = 0;
  testing::Check(
      [&] {
        JobRecord job = AnyJob();
        job.id = ++id;
        job.name += "#" + std::to_string(id);
        for (int again = 0; again < 2; ++again) {
          history.Put(job);
          history.Flush();
          RC_ASSERT(history.Error().empty());
          const auto jobs = history.Jobs();
          RC_ASSERT(jobs.has_value() && Shown(jobs->back()) == Shown(job));
          const std::string name = job.name + "!";
          job = AnyJob();
          job.id = id;
          job.name += name;
        }
      },
      100);
}

TEST(SqliteHistoryTest, EveryFieldOfTheRecordIsAColumn) {
  const JobRecord job;
  // They do not compile when the record or the state has another number of fields: add a new one to
  // EachJobColumn and, by a migration, to the table, then here.
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17,
                                s18] = static_cast<const JobState&>(job);
  int fields = 1;  // id
  EachJobColumn(job, [&](const char*, const auto&) { ++fields; });
  // 18 of the state, where the limits are three columns and `reported` follows from others, and 17 of the
  // record.
  EXPECT_EQ(fields, 18 + 2 - 1 + 17);
  EXPECT_EQ(sizeof(JobRecord), 440U) << "a field was added to the record";
}

TEST(SqliteHistoryTest, TextIsNeverSql) {
  const sim::TempDir folder;
  const auto store = testing::MustOpen(folder.Path("voda.db"));
  SqliteHistory history(*store);
  JobRecord job;
  job.id = 1;
  job.name = "a'; DROP TABLE jobs; --";
  history.Put(job);
  history.Flush();
  EXPECT_EQ(history.Error(), "");
  EXPECT_EQ(history.Jobs()->front().name, job.name);
  EXPECT_TRUE(history.Rounds("x' OR '1'='1", 0, 10)->empty());
}

TEST(SqliteHistoryTest, PruneDoesABoundedShareAndTheNextCallTheRest) {
  const sim::TempDir folder;
  const auto store = testing::MustOpen(folder.Path("voda.db"));
  SqliteHistory history(*store);
  JobRecord job;
  job.status = JobStatus::kCompleted;
  for (job.id = 1; job.id <= 2500; ++job.id) {
    job.name = std::to_string(job.id);
    history.Put(job);
  }
  history.Flush();
  std::vector<std::size_t> removed;
  for (int i = 0; i < 4; ++i) {
    history.Prune({.ended_jobs = 100}, 1000,
                  [&](const std::vector<std::int64_t>& ids) { removed.push_back(ids.size()); });
    history.Flush();
  }
  EXPECT_EQ(removed, (std::vector<std::size_t>{1000, 1000, 400, 0}));
}

TEST(SqliteHistoryTest, WhatWaitsForAStoreThatFailsIsBounded) {
  SetLog({LogLevel::kError, false});
  const sim::TempDir folder;
  const auto store = testing::MustOpen(folder.Path("voda.db"));
  SqliteHistory history(*store);
  for (int i = 0; i < 30'000; ++i) history.AddRound({"v100", i, 0, "", "", "", 0, "[]"});
  store->Write("INSERT INTO nowhere VALUES (1)");
  history.Flush();
  history.Flush();
  const auto rounds = history.Rounds("", 0, 100'000).value();
  EXPECT_EQ(rounds.size(), 10'000U);
  EXPECT_EQ(rounds.front().round, 29'999) << "the oldest were dropped";
}

TEST(SqliteHistoryTest, TenThousandJobsAreListedAndUpdated) {
  const sim::TempDir folder;
  const auto store = testing::MustOpen(folder.Path("voda.db"));
  SqliteHistory history(*store);
  const auto timed = [](const char* what, const auto& body) {
    const auto from = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
    ::testing::Test::RecordProperty(what, std::to_string(took.count()));
    std::printf("  %s: %.1f ms\n", what, took.count());
  };
  JobRecord job;
  job.message = "waits for 2 GPUs";
  timed("30,000 jobs with documents", [&] {
    for (job.id = 1; job.id <= 30'000; ++job.id) {
      job.name = "resnet-20260101-120000-" + std::to_string(job.id);
      job.status = job.id <= 20'000 ? JobStatus::kCompleted : JobStatus::kWaiting;
      history.Put(job);
      history.PutDocument(job.id, std::string(3000, 'x'));
    }
    history.Flush();
  });
  std::vector<JobRecord> jobs;
  timed("30,000 read", [&] { jobs = history.Jobs().value(); });
  ASSERT_EQ(jobs.size(), 30'000U);
  timed("10,000 updates and their commit", [&] {
    for (std::size_t i = 20'000; i < jobs.size(); ++i) {
      jobs[i].waited += 30;
      history.Put(jobs[i]);
    }
    history.Flush();
  });
  EXPECT_EQ(history.Jobs()->back().waited, 30);
  timed("prune with nothing to do", [&] {
    history.Prune({}, 1000, [](const auto&) {});
    history.Flush();
  });
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(Sqlite, HistoryContract,
                         ::testing::Values(HistoryContractCase{
                             "file", [] { return std::unique_ptr<HistoryHarness>(new SqliteHarness); }}));
}  // namespace testing
}  // namespace voda
