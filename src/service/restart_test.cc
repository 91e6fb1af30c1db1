// What another run of Voda makes of what an earlier one left on this machine.
#include "document/documents.h"
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using RestartTest = testing::ServiceTest;

TEST_F(RestartTest, ARestartWritesNothingToTheCluster) {
  const std::string a = Submit(Yaml("a", 1, 2));
  const std::string b = Submit(Yaml("b", 2, 2));
  Submit(Yaml("c", 4, 4));
  const int before = cluster_.actions;
  const double waited = Record(b).waited;
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(cluster_.actions, before);
  EXPECT_EQ(Record(a).status, JobStatus::kRunning);
  EXPECT_EQ(Record(a).starts, 1);
  EXPECT_GE(Record(b).waited, waited);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(cluster_.actions, before);
}

TEST_F(RestartTest, TimesGoOnOverARestart) {
  const std::string name = Submit(Yaml("a", 2, 2));
  now_ += 100;
  Open({{"a", 4, "cpu", {}}});
  Settle();
  service_->Deliver({"cpu", JobCompleted{name}}, now_);
  Settle();
  const JobRecord& record = Record(name);
  EXPECT_GT(record.ran, 100);
  EXPECT_NEAR(record.waited + record.ran, *record.ended - record.submitted, 1e-6);
  EXPECT_NEAR(record.gpu_seconds, 2 * record.ran, 1e-6);
}

TEST_F(RestartTest, UnderAnEarlierClockNothingIsPutOffOrCountedTwice) {
  const std::string first = Submit(Yaml("z", 4, 4));
  const std::string second = Submit(Yaml("y", 4, 4));
  now_ += 100;
  Settle();
  const double ran = Record(first).ran;
  now_ -= 86400;
  Open({{"a", 4, "cpu", {}}});
  const std::string third = Submit(Yaml("x", 4, 4));
  const State& state = service_->pools().Find("cpu")->state();
  for (const Job& job : state.world.jobs) {
    EXPECT_LE(job.submit_time, now_) << job.name;
    EXPECT_LE(job.last_change, now_) << job.name;
  }
  EXPECT_LT(state.world.job(FindJob(state, first)).submit_time,
            state.world.job(FindJob(state, second)).submit_time);
  EXPECT_LE(state.world.job(FindJob(state, second)).submit_time,
            state.world.job(FindJob(state, third)).submit_time);
  now_ += 50;
  service_->Deliver({"cpu", JobCompleted{first}}, now_);
  Settle();
  EXPECT_EQ(Record(second).status, JobStatus::kRunning) << "the older one is served first";
  EXPECT_GE(Record(first).ran, ran + 50);
  const auto shown = ParseJson(*service_->views().Job(first, now_));
  ASSERT_TRUE(shown);
  EXPECT_GE((*shown)["total_seconds"].Number(), (*shown)["running_seconds"].Number());
}

TEST_F(RestartTest, UnderAClockThatIsFarAheadNothingIsForgottenAtOnce) {
  const std::string name = Submit(Yaml("a", 1, 1));
  service_->Deliver({"cpu", JobCompleted{name}}, now_);
  Settle();
  now_ += 10 * 365 * 86400.0;
  Open({{"a", 4, "cpu", {}}});
  Settle();
  now_ += 3600;
  Settle();
  EXPECT_NE(service_->jobs().Find(name), nullptr) << "somebody may notice the clock";
  now_ += 2 * 86400;
  Settle();
  EXPECT_EQ(service_->jobs().Find(name), nullptr);
}

TEST_F(RestartTest, ADeletionIsNotForgottenOverARestart) {
  const std::string name = Submit(Yaml("a", 1, 1));
  bool answered = false;
  service_->changes().Delete(name, [&](const Answer<std::int64_t>&) { answered = true; });
  service_->Step(now_);  // committed; the workers have not been reported as stopped
  ASSERT_TRUE(answered);
  cluster_.running[name] = {"a"};
  cluster_.done.clear();
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(name).status, JobStatus::kCanceled);
  EXPECT_TRUE(cluster_.running[name].empty());
}

TEST_F(RestartTest, ARestartReadsAllJobsThereAre) {
  constexpr int kJobs = 100'002;
  JobRecord job;
  job.gpu_type = "cpu";
  job.status = JobStatus::kCompleted;
  job.ended = now_;
  for (job.id = 1; job.id <= kJobs; ++job.id) {
    job.name = "job-" + std::to_string(job.id);
    history_->Put(job);
  }
  history_->Flush();
  Open({{"a", 4, "cpu", {}}});
  EXPECT_NE(service_->jobs().Find(job.name), nullptr);
}

// The store was lost, or is an older copy: nobody gets the files of a job that it does not know.
TEST_F(RestartTest, IdsGoOnAboveTheFilesThereAre) {
  const std::string a = Submit(Yaml("a", 1, 1));
  EXPECT_EQ(Record(a).id, 1);
  cluster_.last_id = 41;
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(Submit(Yaml("b", 1, 1))).id, 42);
  cluster_.last_id = 3;
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(Submit(Yaml("c", 1, 1))).id, 43);
}

TEST_F(RestartTest, AStartThatNeverHappenedIsNotRemembered) {
  std::string name;
  service_->submitter().Submit(*ParseJobs(Yaml("a", 1, 1)), {}, now_,
                               [&](const Answer<std::vector<std::int64_t>>& ids) {
                                 name = service_->jobs().Find(ids->front())->record.name;
                               });
  service_->Step(now_);
  service_->Step(now_);
  ASSERT_TRUE(cluster_.running.contains(name)) << "the start is on its way";
  cluster_.running.clear();
  cluster_.done.clear();
  Open({});  // no node to start it on
  EXPECT_EQ(Record(name).status, JobStatus::kWaiting);
  EXPECT_FALSE(Record(name).first_started);
  EXPECT_EQ(Record(name).starts, 0);
}

TEST_F(RestartTest, AStartThatTheEarlierRunDidNotHearOfIsCounted) {
  const std::string name = Submit(Yaml("a", 1, 1));
  now_ += 10;
  ASSERT_FALSE(Wait([&](auto done) { service_->changes().Hold(name, true, done); }));
  Settle();
  ASSERT_TRUE(cluster_.running[name].empty());
  now_ += 10;
  service_->changes().Hold(name, false, [](const Answer<std::int64_t>&) {});
  service_->Step(now_);
  service_->Step(now_);
  ASSERT_FALSE(cluster_.running[name].empty()) << "the start is on its way";
  cluster_.done.clear();
  for (int restart = 0; restart < 2; ++restart) {
    Open({{"a", 4, "cpu", {}}});
    EXPECT_EQ(Record(name).status, JobStatus::kRunning);
    EXPECT_EQ(Record(name).starts, 2);
  }
}

TEST_F(RestartTest, ARunThatNobodyHeardOfIsCounted) {
  std::string name;
  service_->submitter().Submit(*ParseJobs(Yaml("a", 2, 2)), {}, now_,
                               [&](const Answer<std::vector<std::int64_t>>& ids) {
                                 name = service_->jobs().Find(ids->front())->record.name;
                               });
  service_->Step(now_);
  service_->Step(now_);
  ASSERT_TRUE(cluster_.running.contains(name)) << "the start is on its way";
  cluster_.running.clear();
  cluster_.done.clear();
  cluster_.unheard = 3;
  now_ += 10;
  Open({});
  ASSERT_TRUE(Record(name).first_started);
  EXPECT_LE(*Record(name).first_started, now_ - 3);
  service_->Deliver({"cpu", JobCompleted{name}}, now_);
  EXPECT_EQ(Record(name).starts, 1);
  EXPECT_NEAR(Record(name).ran, 3, 1e-6);
  EXPECT_NEAR(Record(name).gpu_seconds, 6, 1e-6);
}

TEST_F(RestartTest, AJobThatThisVersionCannotReadIsToldOf) {
  store_->Write("INSERT INTO ledger VALUES ('old', 77, 'cpu', 't', 1, 0, '{}', 'kind: Old')");
  store_->Commit();
  Open({{"a", 4, "cpu", {}}});  // the history knows nothing of it
  EXPECT_EQ(Record("old").id, 77);
  EXPECT_EQ(Record("old").status, JobStatus::kCanceled);
  EXPECT_NE(Record("old").message.find("cannot be read by this version"), std::string::npos);
  EXPECT_TRUE(ledger_->Read()->jobs.empty());
  Submit(Yaml("a", 1, 1));
  EXPECT_GT(service_->jobs().all().rbegin()->first, 77) << "ids are not used again";
}

}  // namespace
}  // namespace voda
