#include "estimate/job_epochs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace voda {
namespace {

// Seconds of an epoch of length 1 on n workers.
double TimeOn(int workers) {
  return 1 / std::pow(workers, 0.6);
}

TEST(JobEpochs, OneJobIsAlike) {
  JobEpochs epochs;
  epochs.Add("a", {1, 1}, 100);
  epochs.Add("a", {4, 1}, 1000);
  EXPECT_FALSE(epochs.Uneven());
}

TEST(JobEpochs, JobsThatScatterLittleAreAlike) {
  JobEpochs epochs;
  for (int job = 0; job < 20; ++job) epochs.Add(std::to_string(job), {2, 1}, job % 2 == 0 ? 100 : 120);
  EXPECT_FALSE(epochs.Uneven());
}

TEST(JobEpochs, JobsAtDifferentSizesAreNotCompared) {
  JobEpochs epochs;
  epochs.Add("a", {1, 1}, 100);
  epochs.Add("b", {2, 1}, 1);
  EXPECT_FALSE(epochs.Uneven());
  epochs.Add("c", {2, 1}, 100);
  EXPECT_TRUE(epochs.Uneven());
}

TEST(JobEpochs, TimesComeFromJobsThatChangedTheirSize) {
  JobEpochs epochs;
  int job = 0;
  for (const double length : {3.0, 70.0, 1000.0, 0.2}) {
    const std::string name = std::to_string(job++);
    epochs.Add(name, {job, 1}, length * TimeOn(job));
    epochs.Add(name, {job + 1, 1}, length * TimeOn(job + 1));
  }
  const auto times = epochs.Times();
  ASSERT_EQ(times.size(), 5U);
  for (int n = 1; n < 5; ++n) {
    // Ten turns of the fit come near; they need not be exact.
    EXPECT_NEAR(times.at({n, 1}) / times.at({n + 1, 1}), TimeOn(n) / TimeOn(n + 1), 0.05) << n;
  }
  const auto time_of = [](Layout layout) { return TimeOn(layout.workers); };
  EXPECT_NEAR(epochs.Length("1", time_of), 70, 1e-9);
  EXPECT_NEAR(epochs.Length("unseen", time_of), std::pow(3.0 * 70 * 1000 * 0.2, 0.25), 1e-9);
}

TEST(JobEpochs, WhereNoJobConnectsTwoSizesTheUsualCurveDoes) {
  JobEpochs epochs;
  epochs.Add("a", {1, 1}, 100);
  epochs.Add("b", {4, 1}, 5000);
  const auto times = epochs.Times();
  EXPECT_NEAR(times.at({1, 1}) / times.at({4, 1}), std::pow(4, 0.8), 1e-9);
}

TEST(JobEpochs, TheOldestJobsAreForgotten) {
  JobEpochs epochs;
  epochs.Add("old", {1, 1}, 1);
  for (std::size_t job = 0; job < JobEpochs::kMost; ++job) epochs.Add(std::to_string(job), {1, 1}, 100);
  EXPECT_FALSE(epochs.Uneven());
  EXPECT_NEAR(epochs.Length("old", [](Layout) { return 1.0; }), 100, 1e-9);
}

}  // namespace
}  // namespace voda
