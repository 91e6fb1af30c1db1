// Submission: what is accepted, and what a key does.
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using SubmitterTest = testing::ServiceTest;

TEST_F(SubmitterTest, NothingIsAnsweredBeforeItIsDurable) {
  bool answered = false;
  service_->submitter().Submit(*ParseJobs(Yaml("a", 1, 2)), {}, now_,
                               [&](const Answer<std::vector<std::int64_t>>& ids) {
                                 answered = true;
                                 ASSERT_TRUE(ids);
                               });
  EXPECT_FALSE(answered);
  service_->Step(now_);
  EXPECT_TRUE(answered);
  EXPECT_EQ(ledger_->Read()->jobs.size(), 1U);
}

TEST_F(SubmitterTest, NothingIsAcceptedThatCannotBeStarted) {
  const SubmissionKey key{"k", "hash"};
  const std::string known = Submit(Yaml("known", 1, 1), key);
  EXPECT_EQ(service_->Trouble(), "");
  cluster_.able = Error{"no job can be started: Permission denied"};
  EXPECT_NE(Submit(Yaml("a", 1, 1)).find("Permission denied"), std::string::npos);
  EXPECT_NE(service_->Trouble().find("Permission denied"), std::string::npos);
  EXPECT_EQ(Submit(Yaml("known", 1, 1), key), known) << "it was accepted before";
  EXPECT_EQ(ledger_->Read()->jobs.size(), 1U);
}

TEST_F(SubmitterTest, WhatIsIgnoredIsToldOnce) {
  EXPECT_NE(Record(Submit(Yaml("a", 1, 1))).warnings.find("ignored: "), std::string::npos);
  EXPECT_EQ(Record(Submit(Yaml("b", 1, 1))).warnings, "");
  const std::string too_large = Record(Submit(Yaml("c", 9, 9))).warnings;
  EXPECT_NE(too_large.find("it waits until nodes are added"), std::string::npos) << too_large;
  EXPECT_EQ(too_large.find("ignored: "), std::string::npos) << too_large;
}

TEST_F(SubmitterTest, TheGpuTypeMustBeOneThereIs) {
  EXPECT_NE(Submit(Yaml("x", 1, 1, "v100")).find("its types are cpu"), std::string::npos);
  Open({{"a", 4, "cpu", {}}, {"b", 4, "v100", {}}});
  EXPECT_NE(Submit(Yaml("x", 1, 1)).find("there are several (cpu, v100)"), std::string::npos);
  const std::string name = Submit(Yaml("x", 1, 1, "v100"));
  EXPECT_EQ(cluster_.running[name], std::vector<std::string>{"b"});
}

TEST_F(SubmitterTest, SeveralDocumentsAreAcceptedTogetherOrNotAtAll) {
  EXPECT_NE(Submit(Yaml("a", 1, 1) + "---\n" + Yaml("b", 1, 1, "v100")).find("v100"), std::string::npos);
  EXPECT_TRUE(history_->Jobs()->empty());
  Submit(Yaml("a", 1, 1) + "---\n" + Yaml("a", 1, 1));
  const auto jobs = history_->Jobs();
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_NE((*jobs)[0].name, (*jobs)[1].name);
}

// The scheduler forgets a job that has ended; its name is not given again all the same.
TEST_F(SubmitterTest, AnotherJobDoesNotGetTheNameOfOneThatHasEnded) {
  const double then = now_;
  const std::string first = Submit(Yaml("a", 1, 1));
  service_->Deliver({"cpu", JobCompleted{first}}, now_);
  Settle();
  now_ = then;
  const std::string second = Submit(Yaml("a", 1, 1));
  EXPECT_NE(first, second);
  EXPECT_EQ(Record(first).status, JobStatus::kCompleted);
  EXPECT_EQ(Record(second).status, JobStatus::kRunning);
  service_->Deliver({"cpu", JobFailed{first, "late"}}, now_);
  EXPECT_EQ(Record(first).status, JobStatus::kCompleted);
}

TEST_F(SubmitterTest, AKeyGivesTheSameJobOnce) {
  const std::string first = Submit(Yaml("a", 1, 1), SubmissionKey{"key", "hash"});
  EXPECT_EQ(Submit(Yaml("a", 1, 1), SubmissionKey{"key", "hash"}), first);
  EXPECT_EQ(history_->Jobs()->size(), 1U);
  EXPECT_NE(Submit(Yaml("b", 1, 1), SubmissionKey{"key", "other"}).find("another body"), std::string::npos);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Submit(Yaml("a", 1, 1), SubmissionKey{"key", "hash"}), first);
}

TEST_F(SubmitterTest, TwoRequestsWithOneKeyInOneBatchAreOneJob) {
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 2; ++i) {
    service_->submitter().Submit(
        *ParseJobs(Yaml("a", 1, 1)), SubmissionKey{"key", "hash"}, now_,
        [&](Answer<std::vector<std::int64_t>> accepted) { ids.push_back((*accepted).front()); });
  }
  Settle();
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(history_->Jobs()->size(), 1U);
}

}  // namespace
}  // namespace voda
