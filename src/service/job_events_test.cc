#include "service/job_events.h"

#include "service/test_parts.h"

namespace voda {
namespace {

using Strings = std::vector<std::string>;

class JobEventsTest : public testing::PartsTest {
 protected:
  JobEventsTest() { Declare({{"a", 4, "cpu", {}}}); }

  void Handle(const Event& event) { events_.Handle(pools_.At("cpu"), event, now_); }
};

TEST_F(JobEventsTest, AJobIsFollowedFromItsStartToItsEnd) {
  const JobEntry& job = Arrive("x", 2, 4);
  EXPECT_EQ(job.record.status, JobStatus::kWaiting);
  Settle();
  EXPECT_EQ(job.record.status, JobStatus::kRunning);
  EXPECT_EQ(job.nodes, Strings(4, "a"));
  EXPECT_EQ(job.record.starts, 1);
  EXPECT_TRUE(job.record.first_started);
  EXPECT_TRUE(Told("job.started")) << stream_->text;

  Account(pools_.At("cpu"), jobs_.Find("x")->record);
  now_ += 100;
  Handle(JobCompleted{"x"});
  EXPECT_EQ(job.record.status, JobStatus::kCompleted);
  EXPECT_EQ(job.record.ended, now_);
  EXPECT_NEAR(job.record.waited + job.record.ran, now_ - job.record.submitted, 1e-6);
  EXPECT_GE(job.record.ran, 100);
  EXPECT_TRUE(job.nodes.empty());
  EXPECT_FALSE(job.spec) << "it is for active jobs only";
  EXPECT_TRUE(Told("job.completed")) << stream_->text;
  EXPECT_TRUE(cluster_.forgotten.empty()) << "not before the ledger has its end";
  store_->CommitAll();
  EXPECT_EQ(cluster_.forgotten, Strings{"x"});
  EXPECT_EQ(history_.Jobs()->front().status, JobStatus::kCompleted);
}

TEST_F(JobEventsTest, AnEndIsFinal) {
  const JobEntry& job = Arrive("x", 1, 1);
  Settle();
  Handle(JobFailed{"x", "out of memory"});
  now_ += 5;
  Handle(JobCompleted{"x"});
  events_.Gone("x", now_);
  EXPECT_EQ(job.record.status, JobStatus::kFailed);
  EXPECT_EQ(job.record.ended, now_ - 5);
  EXPECT_EQ(job.record.message, "out of memory");
  EXPECT_FALSE(Told("job.completed"));
  EXPECT_FALSE(Told("job.canceled"));
}

TEST_F(JobEventsTest, TheOutcomeOfAnActionIsCounted) {
  Arrive("x", 1, 1);
  Advance();
  ASSERT_EQ(cluster_.done.size(), 1U);
  const ActionId id = std::exchange(cluster_.done, {}).front().second;
  Handle(ActionFailed{id, "no shim"});
  Handle(ActionFailed{id, "no shim"});  // it is not in flight any more
  EXPECT_TRUE(Exports(R"(voda_actions_total{gpu_type="cpu",kind="start",outcome="failed"} 1)"))
      << metrics_.Text(Metrics::Role::kAll);
  EXPECT_EQ(jobs_.Find("x")->record.status, JobStatus::kWaiting);
}

TEST_F(JobEventsTest, ANoticeIsToldAndKept) {
  const JobEntry& job = Arrive("x", 1, 1);
  JobNotice notice{"x", "cpu", JobNotice::Kind::kWorkerFailed, "worker 0 exited with 3", 2};
  events_.Notice(notice);
  EXPECT_EQ(job.record.failures, 2);
  EXPECT_EQ(job.record.message, "worker 0 exited with 3");
  EXPECT_EQ(jobs_.TakeTouched(), std::set<std::int64_t>{job.record.id});
  EXPECT_TRUE(Told("job.restarted")) << stream_->text;
  notice.job = "unknown";
  events_.Notice(notice);
  EXPECT_TRUE(jobs_.TakeTouched().empty());
}

TEST_F(JobEventsTest, AJobWhoseRecordIsGoneIsCanceled) {
  const JobEntry& job = Arrive("x", 1, 1);
  Settle();
  ASSERT_EQ(job.record.status, JobStatus::kRunning);
  events_.Gone("x", now_);
  EXPECT_EQ(job.record.status, JobStatus::kCanceled);
  EXPECT_EQ(job.record.ended, now_);
  EXPECT_TRUE(Told("job.canceled")) << stream_->text;
  EXPECT_FALSE(events_.WentEarly("x"));
}

TEST_F(JobEventsTest, ARecordMayGoBeforeItsJobIsStarted) {
  jobs_.Reserve("x");
  events_.Gone("x", now_);
  events_.Gone("nobody", now_);
  EXPECT_TRUE(events_.WentEarly("x"));
  EXPECT_FALSE(events_.WentEarly("x")) << "it is said once";
  EXPECT_FALSE(events_.WentEarly("nobody"));
}

}  // namespace
}  // namespace voda
