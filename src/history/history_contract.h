// For the tests: what every history does. A test of a history says how to open it (HistoryHarness) and
// instantiates HistoryContract with that.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "history/history.h"

namespace voda::testing {

class HistoryHarness {
 public:
  virtual ~HistoryHarness() = default;
  // The history as another run of Voda finds it, at first empty.
  virtual History& Reopen() = 0;
  // The next Flush fails.
  virtual void Break() = 0;
};

struct HistoryContractCase {
  const char* name;
  std::unique_ptr<HistoryHarness> (*make)();

  friend void PrintTo(const HistoryContractCase& one, std::ostream* out) { *out << one.name; }
};

class HistoryContract : public ::testing::TestWithParam<HistoryContractCase> {
 protected:
  HistoryContract() : harness_(GetParam().make()), history_(&harness_->Reopen()) {}
  void Reopen() { history_ = &harness_->Reopen(); }
  History& history() { return *history_; }

  JobRecord Put(std::int64_t id, JobStatus status = JobStatus::kRunning) {
    JobRecord job;
    job.id = id;
    job.name = "job" + std::to_string(id);
    job.gpu_type = "v100";
    job.kind = JobKind::kMpiJob;
    job.status = status;
    job.submitted = 1000;
    if (Terminal(status)) job.ended = 10'000 - static_cast<double>(id);
    history().Put(job);
    return job;
  }
  std::vector<std::int64_t> Ids() {
    std::vector<std::int64_t> ids;
    const auto jobs = history().Jobs();
    for (const JobRecord& job : jobs.value()) ids.push_back(job.id);
    return ids;
  }
  std::vector<std::int64_t> Prune(const Retention& retention) {
    std::vector<std::int64_t> removed;
    history().Prune(retention, 10'000, [&](const std::vector<std::int64_t>& ids) { removed = ids; });
    history().Flush();
    return removed;
  }

  std::unique_ptr<HistoryHarness> harness_;
  History* history_;
};

// NOLINTBEGIN(misc-definitions-in-headers): one file of a program includes it.
TEST_P(HistoryContract, WhatIsPutIsDurableAfterAFlush) {
  JobRecord job = Put(7);
  EXPECT_TRUE(history().Waiting());
  EXPECT_TRUE(Ids().empty()) << "reads see what is durable";
  history().PutDocument(7, "{}");
  history().AddSize(7, {5, 1, 0, 4, "r", "t", {"n", "n", "m", ""}});
  history().AddSize(7, {6, 2, 4, 2, "s", "u", {}});
  job.message = "later";
  job.limits = {2, 3, 4};
  history().Put(job);
  history().Flush();
  EXPECT_FALSE(history().Waiting());
  Reopen();
  const auto jobs = history().Jobs().value();
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].name, "job7");
  EXPECT_EQ(jobs[0].message, "later");
  EXPECT_EQ(jobs[0].status, JobStatus::kRunning);
  EXPECT_EQ(jobs[0].kind, JobKind::kMpiJob);
  EXPECT_EQ(jobs[0].limits, (Limits{2, 3, 4}));
  EXPECT_EQ(history().Document(7).value(), "{}");
  EXPECT_FALSE(history().Document(8).value());
  const auto sizes = history().Sizes(7).value();
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].to, 4);
  EXPECT_EQ(sizes[0].reason, "r");
  EXPECT_EQ(sizes[0].trigger, "t");
  EXPECT_EQ(sizes[0].nodes, (std::vector<std::string>{"n", "n", "m", ""}));
  EXPECT_EQ(sizes[1].from, 4);
  EXPECT_TRUE(sizes[1].nodes.empty());
  EXPECT_TRUE(history().Sizes(8)->empty());
}

TEST_P(HistoryContract, AJobThatHasReportedIsKnownByIt) {
  JobRecord job = Put(1);
  job.reported = true;
  job.progress_time = 1100;  // in its first epoch
  history().Put(job);
  Put(2);
  history().Flush();
  Reopen();
  const auto jobs = history().Jobs().value();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_TRUE(jobs[0].reported);
  EXPECT_FALSE(jobs[1].reported);
}

TEST_P(HistoryContract, TheHighestIdIsKnownAlsoWhenItsJobIsGone) {
  EXPECT_EQ(history().LastId().value(), 0);
  Put(3, JobStatus::kFailed);
  Put(9, JobStatus::kFailed);
  history().Flush();
  EXPECT_EQ(Prune({.ended_jobs = 0}), (std::vector<std::int64_t>{3, 9}));
  Reopen();
  EXPECT_TRUE(Ids().empty());
  EXPECT_EQ(history().LastId().value(), 9);
}

TEST_P(HistoryContract, AFlushThatFailsLosesNothing) {
  Put(1);
  history().AddSize(1, {.to = 1});
  history().PutMean({"v100", "mnist", "epoch", 2, 1, 12.5, 3});
  harness_->Break();
  history().Flush();
  EXPECT_NE(history().Error(), "");
  EXPECT_TRUE(history().Waiting());
  EXPECT_TRUE(Ids().empty());
  history().Flush();
  EXPECT_EQ(history().Error(), "");
  EXPECT_EQ(Ids(), std::vector<std::int64_t>{1});
  EXPECT_EQ(history().Sizes(1)->size(), 1U);
  EXPECT_EQ(history().Means()->size(), 1U);
}

TEST_P(HistoryContract, AJobIsRemovedWithAllThereIsOfIt) {
  Put(1, JobStatus::kCompleted);
  Put(2);
  history().Flush();
  int failed = 0;
  int removed = 0;
  const auto done = [&](const Status& status) { ++(status ? removed : failed); };
  history().AddSize(1, {.to = 1});  // of what was left to write
  history().Remove(1, done);
  harness_->Break();
  history().Flush();
  EXPECT_EQ(failed, 1);
  history().PutDocument(1, "{}");
  history().Remove(1, done);
  history().Remove(1, done);
  history().Flush();
  EXPECT_EQ(removed, 2);
  EXPECT_EQ(Ids(), std::vector<std::int64_t>{2});
  EXPECT_TRUE(history().Sizes(1)->empty());
  EXPECT_FALSE(history().Document(1).value());
}

TEST_P(HistoryContract, RoundsComeNewestFirst) {
  for (int i = 1; i <= 5; ++i) {
    history().AddRound({"v100", i, 10.5 * i, "Price", "t", "n", 0.25, "[]"});
    history().AddRound({"a100", 10 * i, 0, "", "", "", 0, "[]"});
  }
  history().Flush();
  const auto rounds = history().Rounds("v100", 0, 2).value();
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].round, 5);
  EXPECT_EQ(rounds[0].time, 52.5);
  EXPECT_EQ(rounds[0].algorithm, "Price");
  EXPECT_EQ(rounds[0].note, "n");
  EXPECT_EQ(rounds[0].seconds, 0.25);
  EXPECT_EQ(rounds[0].changes, "[]");
  EXPECT_EQ(rounds[1].round, 4);
  EXPECT_EQ(history().Rounds("v100", 3, 100)->size(), 2U);
  EXPECT_EQ(history().Rounds("", 0, 100)->size(), 10U);
  EXPECT_EQ(history().Rounds("", 0, 100)->front().gpu_type, "a100");
  EXPECT_TRUE(history().Rounds("v100", 0, 0)->empty());
  EXPECT_TRUE(history().Rounds("none", 0, 9)->empty());
}

TEST_P(HistoryContract, TheLatestMeanCounts) {
  history().PutMean({"v100", "mnist", "epoch", 2, 1, 12.5, 3});
  history().PutMean({"v100", "mnist", "epoch", 2, 1, 12.25, 4});
  history().PutMean({"v100", "mnist", "epoch", 2, 2, 14, 1});
  history().PutMean({"a100", "mnist", "start", 0, 0, 9, 1});
  history().Flush();
  Reopen();
  const auto means = history().Means().value();
  ASSERT_EQ(means.size(), 3U);
  EXPECT_EQ(means[0].gpu_type, "a100");
  EXPECT_EQ(means[0].kind, "start");
  EXPECT_EQ(means[1].value, 12.25);
  EXPECT_EQ(means[1].count, 4);
  EXPECT_EQ(means[2].nodes, 2);
}

TEST_P(HistoryContract, PruneKeepsActiveJobsAndTheNewestOfTheEnded) {
  for (int i = 1; i <= 20; ++i) {
    Put(i, i % 2 == 0 ? JobStatus::kFailed : JobStatus::kRunning);  // the later submitted, the earlier ended
    history().AddSize(i, {});
  }
  history().Flush();
  EXPECT_EQ(Prune({.ended_jobs = 8}), (std::vector<std::int64_t>{18, 20}));
  EXPECT_EQ(Prune({.ended_seconds = 9}), (std::vector<std::int64_t>{10, 12, 14, 16}));
  EXPECT_EQ(Prune({.ended_jobs = 0}), (std::vector<std::int64_t>{2, 4, 6, 8}));
  EXPECT_EQ(Ids().size(), 10U);
  EXPECT_TRUE(history().Sizes(20)->empty());
  EXPECT_EQ(history().Sizes(19)->size(), 1U);
}

TEST_P(HistoryContract, APruneThatFailsLosesNothing) {
  JobRecord job = Put(1, JobStatus::kCompleted);
  history().Flush();
  job.name = "another";
  history().Put(job);
  harness_->Break();
  EXPECT_TRUE(Prune({.ended_jobs = 0}).empty());
  history().Flush();
  EXPECT_EQ(history().Jobs()->front().name, "another");
}

TEST_P(HistoryContract, PruneKeepsTheNewestSizesRoundsAndMeans) {
  const Retention retention{.rounds = 4, .sizes_per_job = 3, .means = 2, .finished = 3};
  for (const int job : {1, 2}) {
    Put(job);
    for (int i = 0; i < 10; ++i) history().AddSize(job, {.to = i});
  }
  for (int i = 1; i <= 10; ++i) {
    history().AddRound({i % 2 == 0 ? "v100" : "a100", i, 0, "", "", "", 0, "[]"});
    history().PutMean({"v100", "mnist", "epoch", i, 1, 1, 1});
  }
  history().PutMean({"v100", "mnist", "epoch", 3, 1, 7, 1});
  for (int i = 1; i <= 10; ++i) history().PutMean({"v100", "busy", std::string(kWorkMean), i, 0, 1, i});
  history().Flush();
  const auto check = [&] {
    for (const std::int64_t job : {1, 2}) {
      const auto sizes = history().Sizes(job).value();
      ASSERT_EQ(sizes.size(), 3U);
      EXPECT_EQ(sizes.front().to, sizes.back().to - 2);
    }
    EXPECT_EQ(history().Rounds("", 0, 100)->size(), 4U);
    EXPECT_EQ(history().Rounds("", 0, 100)->back().round, 7);
    const auto means = history().Means().value();
    ASSERT_EQ(means.size(), 5U) << "finished work takes no room from the others";
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(means[i].kind, kWorkMean);
      EXPECT_EQ(means[i].workers, 8 + i);
    }
    EXPECT_EQ(means[3].workers, 3) << "written again, so it is among the newest";
    EXPECT_EQ(means[4].workers, 10);
  };
  harness_->Break();
  Prune(retention);  // what is undone is done by the next
  EXPECT_EQ(history().Sizes(1)->size(), 10U);
  Prune(retention);
  check();
  history().AddSize(2, {.to = 10});
  history().Flush();
  Prune(retention);
  check();
  EXPECT_EQ(history().Sizes(2)->back().to, 10);
  history().AddSize(1, {.to = 10});
  history().Flush();
  Reopen();  // with too many from an earlier life
  Prune(retention);
  check();
}

// NOLINTEND(misc-definitions-in-headers)

}  // namespace voda::testing
