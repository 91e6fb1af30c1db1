#include "store/database.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <sstream>
#include <type_traits>

#include "store/records.h"
#include "store/store_testing.h"
#include "support/check.h"
#include "support/test_data.h"

namespace voda {
namespace {

using sim::TempDir;
using testing::MakeJob;
using testing::MustOpen;
using testing::Transact;

// Every field as text, so that one comparison covers them all and names what differs.
std::map<std::string, std::string> Shown(const JobRecord& job) {
  std::map<std::string, std::string> shown;
  const auto put = [&](const char* column, const auto& field) {
    std::ostringstream text;
    text.precision(17);
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::optional<double>>) {
      if (field) text << *field;
      if (!field) text << "none";
    } else {
      text << field;
    }
    shown[column] = text.str();
  };
  put("id", job.id);
  put("name", job.name);
  put("token", job.token);
  put("document", job.document);
  EachJobField(job, put);
  return shown;
}

std::string AnyText() {
  return *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
}

JobRecord AnyJob() {
  JobRecord job;
  job.name = AnyText();
  job.document = AnyText();
  job.token = AnyText();
  EachJobField(job, [](const char*, auto& field) {
    using Field = std::decay_t<decltype(field)>;
    if constexpr (std::is_same_v<Field, std::string>) {
      field = AnyText();
    } else if constexpr (std::is_same_v<Field, std::optional<double>>) {
      if (*rc::gen::arbitrary<bool>()) field = *rc::gen::arbitrary<double>();
    } else {
      field = *rc::gen::arbitrary<Field>();
    }
  });
  return job;
}

std::vector<std::int64_t> Ids(Database& database, const JobFilter& filter) {
  const auto jobs = database.Jobs(filter);
  EXPECT_TRUE(jobs.has_value());
  std::vector<std::int64_t> ids;
  for (const JobRecord& job : *jobs) ids.push_back(job.id);
  return ids;
}

TEST(DatabaseTest, EveryFieldOfAJobComesBackWhateverItHolds) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  testing::Check(
      [&] {
        JobRecord job = AnyJob();
        RC_PRE(!(*database->Job(job.name)).has_value());
        RC_ASSERT(Transact(*database, [&] { job.id = database->InsertJob(job); }).empty());
        const auto read = database->Job(job.name);
        RC_ASSERT(read.has_value() && read->has_value());
        RC_ASSERT(Shown(**read) == Shown(job));

        JobRecord changed = AnyJob();
        changed.id = job.id;
        RC_ASSERT(Transact(*database, [&] { database->UpdateJob(changed); }).empty());
        changed.name = job.name;
        changed.token = job.token;
        changed.document = job.document;
        RC_ASSERT(Shown(**database->Job(job.name)) == Shown(changed));
      },
      200);
}

TEST(DatabaseTest, EveryFieldOfTheRecordIsAColumn) {
  const JobRecord job;
  // Does not compile when JobRecord has another number of fields: add a new one to EachJobField and, by a
  // migration, to the table, then here.
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17,
                                f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28, f29, f30, f31, f32,
                                f33, f34, f35] = job;
  int fields = 4;  // id, name, token, document
  EachJobField(job, [&](const char*, const auto&) { ++fields; });
  EXPECT_EQ(fields, 35);
}

TEST(DatabaseTest, IdsAscendAndAreNeverUsedAgain) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  std::int64_t last = 0;
  {
    const auto database = MustOpen(path);
    EXPECT_EQ(Transact(*database,
                       [&] {
                         EXPECT_EQ(database->InsertJob(MakeJob("a", "Completed")), 1);
                         last = database->InsertJob(MakeJob("b", "Completed"));
                         EXPECT_EQ(last, 2);
                       }),
              "");
    EXPECT_EQ(Transact(*database, [&] { EXPECT_EQ(database->Prune({.ended_jobs = 0}, 1000).size(), 2U); }),
              "");
  }
  const auto database = MustOpen(path);
  EXPECT_TRUE(Ids(*database, {}).empty());
  EXPECT_EQ(Transact(*database, [&] { EXPECT_EQ(database->InsertJob(MakeJob("a")), last + 1); }), "");
}

TEST(DatabaseTest, RollbackKeepsNothing) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  ASSERT_TRUE(database->Begin());
  database->InsertJob(MakeJob("a"));
  database->PutSetting("k", "v");
  EXPECT_EQ(Ids(*database, {}).size(), 1U) << "reads within a transaction see it";
  database->Rollback();
  EXPECT_TRUE(Ids(*database, {}).empty());
  EXPECT_TRUE(database->Settings()->empty());
}

TEST(DatabaseTest, AFailedWriteUndoesTheWholeTransaction) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  ASSERT_EQ(Transact(*database, [&] { database->InsertJob(MakeJob("a")); }), "");
  const std::string twice = Transact(*database, [&] {
    EXPECT_GT(database->InsertJob(MakeJob("b")), 0);
    EXPECT_EQ(database->InsertJob(MakeJob("a")), 0);
    EXPECT_EQ(database->InsertJob(MakeJob("c")), 0);
    database->PutSetting("k", "v");
  });
  EXPECT_NE(twice.find("jobs.name"), std::string::npos) << twice;
  EXPECT_EQ(Ids(*database, {}).size(), 1U);
  EXPECT_TRUE(database->Settings()->empty());

  JobRecord nobody = MakeJob("nobody");
  nobody.id = 77;
  const std::string missing = Transact(*database, [&] { database->UpdateJob(nobody); });
  EXPECT_NE(missing.find("no job 77 ('nobody')"), std::string::npos) << missing;
  EXPECT_NE(Transact(*database, [&] { database->AddSize(77, {}); }), "");
  EXPECT_EQ(Transact(*database, [&] { database->InsertJob(MakeJob("b")); }), "") << "and it works again";
}

TEST(DatabaseTest, FiltersChooseJobs) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  const std::vector<std::string> statuses = {"Submitted", "Waiting", "Running",
                                             "Completed", "Failed",  "Canceled"};
  std::vector<JobRecord> all;
  ASSERT_EQ(Transact(*database,
                     [&] {
                       for (int i = 0; i < 60; ++i) {
                         JobRecord job = MakeJob((i % 3 == 0 ? "a%-" : "b_-") + std::to_string(i),
                                                 statuses[static_cast<std::size_t>(i) % statuses.size()]);
                         job.gpu_type = i % 2 == 0 ? "v100" : "a100";
                         job.category = i % 5 == 0 ? "bert" : "mnist";
                         job.id = database->InsertJob(job);
                         all.push_back(job);
                       }
                     }),
            "");
  const auto expect = [&](const JobFilter& filter, const auto& chosen) {
    std::vector<std::int64_t> ids;
    for (const JobRecord& job : all) {
      if (chosen(job) && static_cast<int>(ids.size()) < filter.limit) ids.push_back(job.id);
    }
    EXPECT_EQ(Ids(*database, filter), ids);
    return ids.size();
  };
  EXPECT_EQ(expect({}, [](const JobRecord&) { return true; }), 60U);
  EXPECT_EQ(expect({.statuses = {"Running", "Waiting", "Running"}},
                   [](const JobRecord& job) { return job.status == "Running" || job.status == "Waiting"; }),
            20U);
  EXPECT_EQ(expect({.statuses = {"running"}}, [](const JobRecord&) { return false; }), 0U);
  EXPECT_EQ(expect({.gpu_type = "a100"}, [](const JobRecord& job) { return job.gpu_type == "a100"; }), 30U);
  EXPECT_EQ(expect({.category = "bert"}, [](const JobRecord& job) { return job.category == "bert"; }), 12U);
  // Not a pattern: % and _ are themselves.
  EXPECT_EQ(expect({.name_prefix = "a%"}, [](const JobRecord& job) { return job.name[0] == 'a'; }), 20U);
  EXPECT_EQ(expect({.name_prefix = "%"}, [](const JobRecord&) { return false; }), 0U);
  EXPECT_EQ(expect({.name_prefix = "\xff"}, [](const JobRecord&) { return false; }), 0U);
  EXPECT_EQ(expect({.after = 50}, [](const JobRecord& job) { return job.id > 50; }), 10U);
  EXPECT_EQ(expect({.limit = 7}, [](const JobRecord&) { return true; }), 7U);
  EXPECT_EQ(expect({.limit = 0}, [](const JobRecord&) { return true; }), 0U);
  EXPECT_EQ(expect({.limit = -5}, [](const JobRecord&) { return false; }), 0U);
  EXPECT_EQ(expect({.statuses = {"Completed", "Failed"},
                    .gpu_type = "v100",
                    .category = "mnist",
                    .name_prefix = "b_-",
                    .after = 3,
                    .limit = 3},
                   [](const JobRecord& job) {
                     return (job.status == "Completed" || job.status == "Failed") && job.gpu_type == "v100" &&
                            job.category == "mnist" && job.name[0] == 'b' && job.id > 3;
                   }),
            3U);
  EXPECT_TRUE(database->Jobs({.statuses = std::vector<std::string>(200, "x")})->empty());
  std::vector<std::string> many;
  for (int i = 0; i < 101; ++i) many.push_back(std::to_string(i));
  EXPECT_FALSE(database->Jobs({.statuses = many}));

  const auto brief = database->Jobs({.limit = 1, .documents = false});
  EXPECT_EQ(brief->front().document, "");
  EXPECT_EQ(brief->front().token, "secret");
  EXPECT_EQ(database->Jobs({.limit = 1})->front().document, all.front().document);
}

TEST(DatabaseTest, TextIsNeverSql) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  const std::string evil = "'; DROP TABLE jobs; --";
  ASSERT_EQ(Transact(*database,
                     [&] {
                       database->InsertJob(MakeJob(evil));
                       database->PutSetting(evil, evil);
                     }),
            "");
  EXPECT_EQ(Ids(*database, {.statuses = {evil}, .gpu_type = evil}).size(), 0U);
  EXPECT_EQ(Ids(*database, {.name_prefix = "';"}).size(), 1U);
  EXPECT_TRUE((*database->Job(evil)).has_value());
  EXPECT_EQ(database->Settings()->at(evil), evil);
}

TEST(DatabaseTest, SizesRoundsNodesSettingsMeansAndKeysComeBack) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  {
    const auto database = MustOpen(path);
    ASSERT_EQ(
        Transact(*database,
                 [&] {
                   const auto job = database->InsertJob(MakeJob("a"));
                   database->InsertJob(MakeJob("b"));
                   database->AddSize(
                       job, {.time = 5, .round = 1, .from = 0, .to = 4, .reason = "r", .trigger = "t"});
                   database->AddSize(
                       job, {.time = 4, .round = 2, .from = 4, .to = 2, .reason = "s", .trigger = "u"});
                   for (int i = 1; i <= 5; ++i) {
                     database->AddRound({.gpu_type = "v100",
                                         .round = i,
                                         .time = 10.5 * i,
                                         .algorithm = "Price",
                                         .trigger = "t",
                                         .note = "n",
                                         .seconds = 0.25,
                                         .changes = "[]"});
                     database->AddRound({.gpu_type = "a100", .round = 10 * i});
                   }
                   database->PutNode({.name = "n1", .gpu_type = "v100", .state = "ready", .gpus = 4});
                   database->PutNode(
                       {.name = "n0", .gpu_type = "v100", .state = "ready", .gpus = 2, .devices = "0,1"});
                   database->PutNode({.name = "n1", .gpu_type = "v100", .state = "draining", .gpus = 8});
                   database->PutNode({.name = "n2"});
                   database->RemoveNode("n2");
                   database->PutSetting("algorithm", "FIFO");
                   database->PutSetting("algorithm", "Price");
                   database->PutMean({"v100", "mnist", "epoch", 2, 1, 12.5, 3});
                   database->PutMean({"v100", "mnist", "epoch", 2, 1, 12.25, 4});
                   database->PutMean({"v100", "mnist", "epoch", 2, 2, 14, 1});
                   database->PutMean({"a100", "mnist", "start", 0, 0, 9, 1});
                   database->PutIdempotency({"key", "hash", 100, 201, "application/json", "{}"});
                 }),
        "");
  }
  const auto database = MustOpen(path);
  const auto sizes = *database->Sizes(1);
  ASSERT_EQ(sizes.size(), 2U);
  EXPECT_EQ(sizes[0].to, 4);
  EXPECT_EQ(sizes[0].time, 5);
  EXPECT_EQ(sizes[0].round, 1);
  EXPECT_EQ(sizes[0].trigger, "t");
  EXPECT_EQ(sizes[1].from, 4);
  EXPECT_EQ(sizes[1].reason, "s");
  EXPECT_TRUE(database->Sizes(2)->empty());
  EXPECT_TRUE(database->Sizes(99)->empty());

  const auto rounds = *database->Rounds("v100", 0, 2);
  ASSERT_EQ(rounds.size(), 2U);
  EXPECT_EQ(rounds[0].round, 5);
  EXPECT_EQ(rounds[0].time, 52.5);
  EXPECT_EQ(rounds[0].algorithm, "Price");
  EXPECT_EQ(rounds[0].note, "n");
  EXPECT_EQ(rounds[0].seconds, 0.25);
  EXPECT_EQ(rounds[0].changes, "[]");
  EXPECT_EQ(rounds[1].round, 4);
  EXPECT_EQ(database->Rounds("v100", 3, 100)->size(), 2U);
  EXPECT_EQ(database->Rounds("", 0, 100)->size(), 10U);
  EXPECT_EQ(database->Rounds("", 0, 100)->front().gpu_type, "a100");
  EXPECT_TRUE(database->Rounds("v100", 0, 0)->empty());
  EXPECT_TRUE(database->Rounds("none", 0, 9)->empty());

  const auto nodes = *database->Nodes();
  ASSERT_EQ(nodes.size(), 2U);
  EXPECT_EQ(nodes[0].name, "n0");
  EXPECT_EQ(nodes[0].devices, "0,1");
  EXPECT_EQ(nodes[1].state, "draining");
  EXPECT_EQ(nodes[1].gpus, 8);
  EXPECT_EQ(*database->Settings(), (std::map<std::string, std::string>{{"algorithm", "Price"}}));

  const auto means = *database->Means();
  ASSERT_EQ(means.size(), 3U);
  EXPECT_EQ(means[0].gpu_type, "a100");
  EXPECT_EQ(means[1].value, 12.25);
  EXPECT_EQ(means[1].count, 4);
  EXPECT_EQ(means[2].nodes, 2);

  const auto key = *database->Idempotency("key");
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->body_hash, "hash");
  EXPECT_EQ(key->status, 201);
  EXPECT_EQ(key->content_type, "application/json");
  EXPECT_EQ(key->body, "{}");
  EXPECT_EQ(key->time, 100);
  EXPECT_FALSE((*database->Idempotency("other")).has_value());
}

TEST(DatabaseTest, PruneKeepsActiveJobsAndTheNewestOfTheEnded) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  ASSERT_EQ(Transact(*database,
                     [&] {
                       for (int i = 1; i <= 20; ++i) {
                         // The later a job was submitted, the earlier it ended.
                         JobRecord job =
                             MakeJob("job" + std::to_string(i), i % 2 == 0 ? "Failed" : "Running");
                         if (i % 2 == 0) job.ended = 10'000 - i;
                         database->AddSize(database->InsertJob(job), {});
                       }
                     }),
            "");
  std::vector<std::int64_t> removed;
  ASSERT_EQ(Transact(*database, [&] { removed = database->Prune({.ended_jobs = 8}, 10'000); }), "");
  EXPECT_EQ(removed, (std::vector<std::int64_t>{18, 20}));
  ASSERT_EQ(Transact(*database, [&] { removed = database->Prune({.ended_seconds = 9}, 10'000); }), "");
  EXPECT_EQ(removed, (std::vector<std::int64_t>{10, 12, 14, 16}));
  ASSERT_EQ(Transact(*database, [&] { removed = database->Prune({.ended_jobs = 0}, 10'000); }), "");
  EXPECT_EQ(removed, (std::vector<std::int64_t>{2, 4, 6, 8}));
  EXPECT_EQ(Ids(*database, {.statuses = {"Running"}}).size(), 10U);
  EXPECT_EQ(Ids(*database, {}).size(), 10U);
  EXPECT_TRUE(database->Sizes(20)->empty());
  EXPECT_EQ(database->Sizes(19)->size(), 1U);
}

TEST(DatabaseTest, PruneKeepsTheNewestSizesRoundsMeansAndKeys) {
  const TempDir folder;
  const std::string path = folder.Path("voda.db");
  const Retention retention{.rounds = 4, .sizes_per_job = 3, .means = 2, .idempotency_seconds = 100};
  auto database = MustOpen(path);
  ASSERT_EQ(Transact(*database,
                     [&] {
                       for (const char* name : {"a", "b"}) {
                         const auto job = database->InsertJob(MakeJob(name));
                         for (int i = 0; i < 10; ++i) database->AddSize(job, {.to = i});
                       }
                       for (int i = 1; i <= 10; ++i) {
                         database->AddRound({.gpu_type = i % 2 == 0 ? "v100" : "a100", .round = i});
                         database->PutMean({"v100", "mnist", "epoch", i, 1, 1, 1});
                         database->PutIdempotency({std::to_string(i), "", 1000.0 + 10 * i, 200, "", ""});
                       }
                       database->PutMean({"v100", "mnist", "epoch", 3, 1, 7, 1});
                     }),
            "");
  const auto check = [&] {
    for (const std::int64_t job : {1, 2}) {
      const auto sizes = *database->Sizes(job);
      ASSERT_EQ(sizes.size(), 3U);
      EXPECT_EQ(sizes.front().to, sizes.back().to - 2);
    }
    EXPECT_EQ(database->Rounds("", 0, 100)->size(), 4U);
    EXPECT_EQ(database->Rounds("", 0, 100)->back().round, 7);
    const auto means = *database->Means();
    ASSERT_EQ(means.size(), 2U);
    EXPECT_EQ(means[0].workers, 3) << "written again, so it is among the newest";
    EXPECT_EQ(means[1].workers, 10);
    EXPECT_FALSE((*database->Idempotency("4")).has_value());
    EXPECT_TRUE((*database->Idempotency("5")).has_value());
  };
  // What is undone is done by the next.
  ASSERT_TRUE(database->Begin());
  database->Prune(retention, 1150);
  database->Rollback();
  EXPECT_EQ(database->Sizes(1)->size(), 10U);
  ASSERT_EQ(Transact(*database, [&] { database->Prune(retention, 1150); }), "");
  check();
  ASSERT_EQ(Transact(*database,
                     [&] {
                       database->AddSize(2, {.to = 10});
                       database->Prune(retention, 1150);
                     }),
            "");
  check();
  EXPECT_EQ(database->Sizes(2)->back().to, 10);
  // Too many from an earlier life.
  ASSERT_EQ(Transact(*database, [&] { database->AddSize(1, {.to = 10}); }), "");
  database.reset();
  database = MustOpen(path);
  ASSERT_EQ(Transact(*database, [&] { database->Prune(retention, 1150); }), "");
  check();
}

TEST(DatabaseTest, PruneDoesABoundedShareAndTheNextCallTheRest) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  ASSERT_EQ(Transact(*database,
                     [&] {
                       for (int i = 0; i < 2500; ++i) {
                         database->InsertJob(MakeJob("job" + std::to_string(i), "Completed"));
                       }
                     }),
            "");
  std::vector<std::size_t> removed;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(
        Transact(*database, [&] { removed.push_back(database->Prune({.ended_jobs = 100}, 1000).size()); }),
        "");
  }
  EXPECT_EQ(removed, (std::vector<std::size_t>{1000, 1000, 400, 0}));
}

TEST(DatabaseTest, TenThousandJobsAreListedAndUpdated) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  JobRecord job = MakeJob("");
  job.document = std::string(3000, 'x');
  job.message = "waits for 2 GPUs";
  ASSERT_EQ(Transact(*database,
                     [&] {
                       for (int i = 0; i < 30'000; ++i) {
                         job.name = "resnet-20260101-120000-" + std::to_string(i);
                         job.status = i < 20'000 ? "Completed" : "Waiting";
                         database->InsertJob(job);
                       }
                     }),
            "");
  const auto timed = [](const char* what, const auto& body) {
    const auto from = std::chrono::steady_clock::now();
    body();
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
    ::testing::Test::RecordProperty(what, std::to_string(took.count()));
    std::printf("  %s: %.1f ms\n", what, took.count());
  };
  timed("first 10,000 of 30,000", [&] { EXPECT_EQ(database->Jobs({.limit = 10'000})->size(), 10'000U); });
  timed("first 10,000 without documents",
        [&] { EXPECT_EQ(database->Jobs({.limit = 10'000, .documents = false})->size(), 10'000U); });
  Result<std::vector<JobRecord>> active = Error{};
  timed("10,000 active of 30,000", [&] {
    active = database->Jobs({.statuses = {"Submitted", "Waiting", "Running"}});
  });
  ASSERT_EQ(active->size(), 10'000U);
  timed("10,000 updates and their commit", [&] {
    ASSERT_EQ(Transact(*database,
                       [&] {
                         for (JobRecord& one : *active) {
                           one.waited += 30;
                           database->UpdateJob(one);
                         }
                       }),
              "");
  });
  EXPECT_EQ((*database->Job(active->back().name))->waited, 30);
  timed("prune with nothing to do",
        [&] { ASSERT_EQ(Transact(*database, [&] { database->Prune({}, 1000); }), ""); });
}

using DatabaseDeathTest = ::testing::Test;

TEST(DatabaseDeathTest, WritingOutsideATransactionIsADefectOfTheCaller) {
  const TempDir folder;
  const auto database = MustOpen(folder.Path("voda.db"));
  EXPECT_DEATH(database->PutSetting("k", "v"), "invariant broken");
  EXPECT_DEATH((void)database->Commit(), "invariant broken");
  ASSERT_TRUE(database->Begin());
  EXPECT_DEATH((void)database->Begin(), "invariant broken");
  database->Rollback();
}

}  // namespace
}  // namespace voda
