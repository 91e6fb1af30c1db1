// What users ask of jobs that are there.
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using ChangesTest = testing::ServiceTest;

TEST_F(ChangesTest, AnEndedJobIsErasedWithItsFiles) {
  const std::string name = Submit(Yaml("a", 1, 4));
  const std::int64_t id = Record(name).id;
  EXPECT_EQ(Wait([&](auto then) { service_->changes().Erase(name, then); })->status, 409) << "it runs";
  service_->Deliver({"cpu", JobCompleted{name}}, now_ + 5);
  Settle();
  EXPECT_EQ(Wait([&](auto then) { service_->changes().Delete(name, then); })->status, 409)
      << "its checkpoints stay";
  int accepted = 0;
  const auto done = [&](const Answer<std::int64_t>& ids) { accepted += ids ? 1 : 0; };
  service_->changes().Erase(name, done);
  BreakTheCommit();
  service_->Step(now_);
  EXPECT_EQ(accepted, 0);
  ASSERT_NE(service_->jobs().Find(name), nullptr);
  EXPECT_TRUE(cluster_.erased.empty());
  service_->changes().Erase(name, done);
  service_->changes().Erase(name, done);  // asked again before it was answered
  service_->Notice({name, "cpu", JobNotice::Kind::kWorkerFailed, "late", 1});
  Settle();
  EXPECT_EQ(accepted, 2);
  EXPECT_EQ(service_->store_error(), "");
  EXPECT_EQ(service_->jobs().Find(name), nullptr);
  EXPECT_EQ(cluster_.erased, std::vector<std::int64_t>{id});
  EXPECT_EQ(Wait([&](auto then) { service_->changes().Erase(name, then); })->status, 404);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(service_->jobs().Find(name), nullptr);
}

TEST_F(ChangesTest, HeldJobsGiveTheirGpusBack) {
  const std::string name = Submit(Yaml("a", 1, 2));
  EXPECT_FALSE(Wait([&](auto done) { service_->changes().Hold(name, true, done); }));
  EXPECT_TRUE(cluster_.running[name].empty());
  EXPECT_EQ(Record(name).status, JobStatus::kWaiting);
  Open({{"a", 4, "cpu", {}}});  // held over a restart
  EXPECT_TRUE(cluster_.running[name].empty());
  EXPECT_FALSE(Wait([&](auto done) { service_->changes().Hold(name, false, done); }));
  EXPECT_EQ(cluster_.running[name].size(), 2U);
  EXPECT_EQ(Record(name).starts, 2);
}

TEST_F(ChangesTest, LimitsChangeWhileItRuns) {
  const std::string name = Submit(Yaml("a", 1, 4));
  JobChanges::Wish changes;
  changes.max = 2;
  EXPECT_FALSE(Wait([&](auto done) { service_->changes().Change(name, changes, done); }));
  EXPECT_EQ(cluster_.running[name].size(), 2U);
  changes.max = 0;
  EXPECT_EQ(Wait([&](auto done) { service_->changes().Change(name, changes, done); })->status, 400);
  EXPECT_EQ(Record(name).limits.max, 2);
  EXPECT_EQ(Wait([&](auto done) { service_->changes().Change("nobody", changes, done); })->status, 404);
}

TEST_F(ChangesTest, RequestsOfOneBatchAboutOneJobAllCount) {
  const std::string name = Submit(Yaml("a", 1, 2));
  int accepted = 0;
  const auto done = [&](const Answer<std::int64_t>& ids) { accepted += ids ? 1 : 0; };
  JobChanges::Wish priority;
  priority.priority = 5;
  JobChanges::Wish max;
  max.max = 3;
  JobChanges::Wish min;
  min.min = 3;  // holds with the other's max only
  service_->changes().Change(name, priority, done);
  service_->changes().Hold(name, true, done);
  service_->changes().Change(name, max, done);
  service_->changes().Change(name, min, done);
  ProgressReport report;  // writes the job in the same transaction
  EXPECT_FALSE(service_->reports().Take(name, Record(name).token, report, now_));
  Settle();
  EXPECT_EQ(accepted, 4);
  const auto check = [&](const JobRecord& record) {
    EXPECT_EQ(record.priority, 5);
    EXPECT_TRUE(record.held);
    EXPECT_EQ(record.limits.min, 3);
    EXPECT_EQ(record.limits.num, 3);
    EXPECT_EQ(record.limits.max, 3);
    EXPECT_EQ(record.epoch, 1);
  };
  check(Record(name));
  check(history_->Jobs()->front());
  Open({{"a", 4, "cpu", {}}});
  check(Record(name));
}

TEST_F(ChangesTest, ADeletionIsNotUndoneByWhatComesWithIt) {
  const std::string name = Submit(Yaml("a", 1, 2));
  JobChanges::Wish changes;
  changes.priority = 5;
  std::optional<int> held;
  service_->changes().Delete(name, [](const Answer<std::int64_t>&) {});
  service_->changes().Change(name, changes, [](const Answer<std::int64_t>&) {});
  service_->changes().Hold(name, true, [&](const Answer<std::int64_t>& id) { held = id.error().status; });
  service_->Step(now_);
  service_->Step(now_);
  EXPECT_EQ(held, 409);  // it is being stopped
  EXPECT_TRUE(ledger_->Read()->jobs.front().deleting);
  cluster_.running[name] = {"a"};
  cluster_.done.clear();
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(name).status, JobStatus::kCanceled);
}

TEST_F(ChangesTest, ChangesThatTheStoreRefusesLeaveNothing) {
  const std::string name = Submit(Yaml("a", 1, 2));
  JobChanges::Wish changes;
  changes.priority = 5;
  int refused = 0;
  const auto done = [&](const Answer<std::int64_t>& ids) { refused += !ids ? 1 : 0; };
  service_->changes().Change(name, changes, done);
  service_->changes().Hold(name, true, done);
  for (int i = 1; i <= 2; ++i) {  // the second is tried after the first
    BreakTheCommit();
    ledger_->Flush();
    EXPECT_EQ(refused, i);
  }
  JobChanges::Wish max;
  max.max = 3;
  EXPECT_FALSE(Wait([&](auto then) { service_->changes().Change(name, max, then); }));
  EXPECT_EQ(Record(name).priority, 0);
  EXPECT_FALSE(Record(name).held);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(name).priority, 0);
  EXPECT_FALSE(Record(name).held);
  EXPECT_EQ(Record(name).limits.max, 3);
}

}  // namespace
}  // namespace voda
