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
  epochs.Ended("old");
  for (std::size_t job = 0; job < JobEpochs::kMost; ++job) epochs.Add(std::to_string(job), {1, 1}, 100);
  EXPECT_FALSE(epochs.Uneven());
  EXPECT_NEAR(epochs.Length("old", [](Layout) { return 1.0; }), 100, 1e-9);
}

TEST(JobEpochs, JobsThatRunAreNotForgotten) {
  JobEpochs epochs;
  const auto length = [&](const std::string& job) { return epochs.Length(job, [](Layout) { return 1.0; }); };
  epochs.Add("first", {1, 1}, 7);
  epochs.Add("second", {1, 1}, 9);
  for (std::size_t job = 0; job < 2 * JobEpochs::kMost; ++job) epochs.Add(std::to_string(job), {1, 1}, 100);
  EXPECT_NEAR(length("first"), 7, 1e-9);
  epochs.Ended("second");
  EXPECT_GT(length("second"), 90) << "there are enough others";
  EXPECT_NEAR(length("first"), 7, 1e-9);
  for (std::size_t job = 0; job < 2 * JobEpochs::kMost; ++job) epochs.Ended(std::to_string(job));
  EXPECT_LT(length("none"), 99) << "the latest are kept, and the first is one of them";
  EXPECT_GT(length("none"), 90);
}

TEST(JobEpochs, AJobOfTheSameNameIsAnother) {
  JobEpochs epochs;
  const auto one = [](Layout) { return 1.0; };
  epochs.Add("a", {1, 1}, 7);
  epochs.Ended("a");
  epochs.Ended("unseen");
  EXPECT_NEAR(epochs.Length("a", one), 7, 1e-9);
  epochs.Add("a", {1, 1}, 100);
  EXPECT_NEAR(epochs.Length("a", one), 100, 1e-9);
  for (std::size_t job = 0; job < JobEpochs::kMost; ++job) epochs.Add(std::to_string(job), {1, 1}, 50);
  EXPECT_NEAR(epochs.Length("a", one), 100, 1e-9) << "it runs";
}

TEST(JobEpochs, WhatAnEarlierRunFittedCountsUntilEnoughIsSeenAnew) {
  JobEpochs earlier;
  for (int job = 0; job < 4; ++job) {
    const double length = std::pow(10, job);
    earlier.Add(std::to_string(job), {1, 1}, length);
    earlier.Add(std::to_string(job), {4, 1}, length / 3);
  }
  earlier.Add("elsewhere", {8, 2}, 5);
  const EpochFit fit = earlier.Fit();
  EXPECT_EQ(fit.jobs, 5);
  EXPECT_EQ(fit.times.at({4, 1}).jobs, 4);
  EXPECT_EQ(fit.times.at({8, 2}).jobs, 0) << "no job compares it with another";
  JobEpochs epochs;
  for (const auto& [layout, time] : fit.times) epochs.RestoreTime(layout, time);
  EXPECT_FALSE(epochs.Uneven());
  epochs.RestoreTypical(fit.length, fit.jobs);
  EXPECT_TRUE(epochs.Uneven());
  for (const auto& [layout, time] : earlier.Times())
    EXPECT_NEAR(epochs.Times().at(layout), time, 1e-9) << layout.workers;
  // Another job has a fifth of the say.
  epochs.Add("new", {1, 1}, 30);
  epochs.Add("new", {4, 1}, 30 / 6.0);
  EXPECT_NEAR(epochs.Times().at({1, 1}) / epochs.Times().at({4, 1}), 3 * std::pow(2, 0.2), 1e-9);
  for (std::size_t job = 0; job < JobEpochs::kMost; ++job) epochs.Add(std::to_string(job), {1, 1}, 100);
  EXPECT_FALSE(epochs.Uneven());
}

}  // namespace
}  // namespace voda
