#include "service/jobs.h"

#include <gtest/gtest.h>

namespace voda {
namespace {

JobRecord Named(Jobs& jobs, const std::string& name) {
  JobRecord record;
  record.id = jobs.NewId();
  record.name = name;
  return record;
}

TEST(JobsTest, AreFoundByIdAndByName) {
  Jobs jobs;
  jobs.StartIdsAfter(7);
  jobs.StartIdsAfter(3);
  const JobEntry& job = jobs.Add(Named(jobs, "a"));
  EXPECT_EQ(job.record.id, 8);
  EXPECT_EQ(jobs.Find("a"), &job);
  EXPECT_EQ(jobs.Find(8), &job);
  EXPECT_EQ(jobs.Find("b"), nullptr);
  EXPECT_EQ(jobs.Find(7), nullptr);
}

TEST(JobsTest, AReservedNameIsTakenUntilItIsFreed) {
  Jobs jobs;
  jobs.Reserve("a");
  EXPECT_TRUE(jobs.Taken("a"));
  EXPECT_EQ(jobs.Find("a"), nullptr);
  jobs.Free("a");
  EXPECT_FALSE(jobs.Taken("a"));
  jobs.Reserve("a");
  jobs.Add(Named(jobs, "a"));
  jobs.Free("a");
  EXPECT_NE(jobs.Find("a"), nullptr) << "it belongs to a job by now";
}

TEST(JobsTest, ANameMayPassToAnotherJob) {
  Jobs jobs;
  JobEntry& old = jobs.Add(Named(jobs, "a"));
  jobs.Rename(old, "a@1");
  const JobEntry& job = jobs.Add(Named(jobs, "a"));
  EXPECT_EQ(jobs.Find("a"), &job);
  EXPECT_EQ(jobs.Find("a@1"), &old);
  jobs.Touch(old);
  jobs.Touch(job);
  jobs.Remove(1);
  EXPECT_EQ(jobs.Find("a"), &job);
  EXPECT_FALSE(jobs.Taken("a@1"));
  EXPECT_EQ(jobs.TakeTouched(), std::set<std::int64_t>{2});
  EXPECT_TRUE(jobs.TakeTouched().empty());
}

}  // namespace
}  // namespace voda
