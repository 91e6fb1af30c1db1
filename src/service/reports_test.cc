// Reports of progress, and what is learned from them.
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using ReportsTest = testing::ServiceTest;

TEST_F(ReportsTest, ProgressNeedsTheJobsOwnToken) {
  const std::string a = Submit(Yaml("a", 1, 1));
  const std::string b = Submit(Yaml("b", 1, 1));
  ProgressReport report;
  report.epoch = 0;
  EXPECT_EQ(service_->reports().Take(a, Record(b).token, report, now_)->status, 403);
  const auto unknown = service_->reports().Take("nobody", Record(a).token, report, now_);
  const auto wrong = service_->reports().Take(a, "wrong", report, now_);
  ASSERT_TRUE(unknown && wrong);
  EXPECT_EQ(unknown->status, 403);
  EXPECT_EQ(unknown->message, wrong->message) << "nobody learns whether a job exists";
  EXPECT_FALSE(service_->reports().Take(a, Record(a).token, report, now_));
  EXPECT_EQ(Record(a).epoch, 1);
  EXPECT_EQ(Record(a).total_epochs, 10);
}

TEST_F(ReportsTest, WhatWasLearnedServesTheNextJobOfTheCategory) {
  const std::string name = Submit(Yaml("mnist", 2, 2));
  ProgressReport report;
  report.begin = true;
  ASSERT_FALSE(service_->reports().Take(name, Record(name).token, report, now_ + 3));
  report.begin = false;
  report.epoch_seconds = 8;
  ASSERT_FALSE(service_->reports().Take(name, Record(name).token, report, now_ + 11));
  now_ += 11;
  Settle();
  service_->Deliver({"cpu", JobCompleted{name}}, now_);
  Settle();
  Open({{"a", 4, "cpu", {}}});
  const std::string next = Submit(Yaml("mnist", 1, 4));
  const auto asked = service_->views().AskPlan("cpu", now_);
  ASSERT_TRUE(asked);
  const View& view = dynamic_cast<const PlanQuestion&>(*(*asked)).decider->view;
  const Job& job = view.world().job(view.Find(next));
  EXPECT_TRUE(job.guessed);
  EXPECT_DOUBLE_EQ(job.total_seconds, 10 * 16);  // ten epochs of 16 s on one worker
  EXPECT_EQ(*job.measured, std::vector<int>{2});
}

TEST_F(ReportsTest, WhatWasLearnedWithinJobsOutlivesVoda) {
  for (const auto& [workers, seconds] : {std::pair{1, 1000.0}, {1, 10.0}, {2, 5.0}}) {
    const std::string name = Submit(Yaml("mnist", workers, workers));
    ProgressReport report;
    report.begin = true;
    ASSERT_FALSE(service_->reports().Take(name, Record(name).token, report, now_));
    report.begin = false;
    report.epoch_seconds = seconds;
    now_ += seconds;
    ASSERT_FALSE(service_->reports().Take(name, Record(name).token, report, now_));
  }
  const auto on_two = [&] {
    const Pool& pool = *service_->pools().Find("cpu");
    return pool.collector.CurveFor("mnist", *Curve::Linear(1, 2))->speedup(1);
  };
  ASSERT_NEAR(on_two(), GuessedSpeedup(2), 1e-9) << "the epochs differ by job, not by size";
  Settle();
  Open({{"a", 4, "cpu", {}}});
  EXPECT_NEAR(on_two(), GuessedSpeedup(2), 1e-9);
}

class SilentJobsTest : public testing::ServiceTest {
 protected:
  // A job that does not even say how many epochs it has.
  static std::string Quiet(int min, int max) {
    std::string yaml = Yaml("quiet", min, max);
    const auto at = yaml.find(", env:");
    return yaml.erase(at, yaml.rfind(']', yaml.rfind('}')) + 1 - at);
  }
  Job Seen(const std::string& name) {
    const auto asked = service_->views().AskPlan("cpu", now_);
    const View& view = dynamic_cast<const PlanQuestion&>(**asked).decider->view;
    return view.world().job(view.Find(name));
  }
};

TEST_F(SilentJobsTest, AreGuessedByWhatTheOthersOfTheirCategoryTook) {
  const std::string first = Submit(Quiet(2, 2));
  EXPECT_TRUE(Seen(first).guessed);
  EXPECT_DOUBLE_EQ(Seen(first).remaining_seconds, 3600);
  const std::string second = Submit(Quiet(2, 2));
  now_ += 990;
  service_->Deliver({"cpu", JobCompleted{first}}, now_);
  const double took = Record(first).ran * GuessedSpeedup(2);
  EXPECT_NEAR(took, 1000 * GuessedSpeedup(2), 30);
  EXPECT_NEAR(Seen(second).remaining_seconds, 0.2 * took, 30) << "the others hear of it at once";
  const std::string next = Submit(Quiet(4, 4));
  EXPECT_NEAR(Seen(next).remaining_seconds, took, 1);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_NEAR(Seen(next).remaining_seconds, took, 1) << "what finished jobs took outlives Voda";
  EXPECT_NEAR(Seen(second).work_done, took, 60) << "and so does what a job has done";
}

TEST_F(SilentJobsTest, AreNotGuessedAnyMoreOnceTheyReport) {
  const std::string name = Submit(Quiet(2, 2));
  ProgressReport report;
  report.begin = true;
  report.total_epochs = 5;
  ASSERT_FALSE(service_->reports().Take(name, Record(name).token, report, now_));
  EXPECT_FALSE(Seen(name).guessed);
  EXPECT_TRUE(Seen(name).curve->linear());
  EXPECT_DOUBLE_EQ(Seen(name).remaining_seconds, 5 * kUnknownEpochSeconds);
  EXPECT_DOUBLE_EQ(Seen(name).total_seconds, 5 * kUnknownEpochSeconds);
  Settle();
  Open({{"a", 4, "cpu", {}}});
  EXPECT_FALSE(Seen(name).guessed);
}

// The total follows what is learned of the category, or a long job of a category that was unknown when it
// came would be late by the guard for ever.
TEST_F(SilentJobsTest, TheTotalOfAReportingJobFollowsWhatIsLearned) {
  const std::string name = Submit(Yaml("mnist", 1, 1));
  ProgressReport report;
  report.epoch_seconds = 7000;
  now_ += 7000;
  ASSERT_FALSE(service_->reports().Take(name, Record(name).token, report, now_));
  EXPECT_DOUBLE_EQ(Seen(name).total_seconds, 10 * 7000);
  EXPECT_DOUBLE_EQ(Seen(name).remaining_seconds, 9 * 7000);
  ProgressReport step;
  step.epoch = 1;
  step.partly = 0.5;
  ASSERT_FALSE(service_->reports().Take(name, Record(name).token, step, now_ + 10));
  EXPECT_DOUBLE_EQ(Seen(name).remaining_seconds, 8.5 * 7000);
}

// A job that says that it begins and then nothing must not teach its category the seconds before that.
TEST_F(SilentJobsTest, AJobThatReportsNoEpochTeachesWhatItRan) {
  const std::string name = Submit(Quiet(2, 2));
  ProgressReport report;
  report.begin = true;
  ASSERT_FALSE(service_->reports().Take(name, Record(name).token, report, now_));
  now_ += 5000;
  Settle();
  Open({{"a", 4, "cpu", {}}});
  now_ += 5000;
  service_->Deliver({"cpu", JobCompleted{name}}, now_);
  Settle();
  const std::string next = Submit(Quiet(4, 4));
  EXPECT_NEAR(Seen(next).total_seconds, 10'000 * GuessedSpeedup(2), 100);
}

}  // namespace
}  // namespace voda
