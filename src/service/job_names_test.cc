#include "service/job_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace voda {
namespace {

TEST(JobNames, CarryTheTimeOfDayInUtcOn24Hours) {
  const auto free = [](const std::string&) { return false; };
  EXPECT_EQ(UniqueJobName("mnist", 1634269848, free), "mnist-20211015-035048");
  EXPECT_EQ(UniqueJobName("mnist", 1634269848 + 12 * 3600, free), "mnist-20211015-155048");
  EXPECT_EQ(UniqueJobName("mnist-", 0, free), "mnist-19700101-000000");
}

TEST(JobNames, TwoInOneSecondDiffer) {
  std::set<std::string> taken;
  for (int i = 0; i < 100; ++i) {
    const std::string name =
        UniqueJobName("a", 5, [&](const std::string& other) { return taken.contains(other); });
    EXPECT_TRUE(taken.insert(name).second) << name;
  }
  EXPECT_TRUE(taken.contains("a-19700101-000005-100"));
}

TEST(WithoutOthers, NamesOfOtherNamespacesAreLeftOut) {
  const std::string text =
      "waits: 2 jobs before it in the order got GPUs, the last of them team-b/bert-1; job team-a/x arrived";
  EXPECT_EQ(WithoutOthers(text, "team-a"),
            "waits: 2 jobs before it in the order got GPUs, the last of them a job of another namespace; job "
            "team-a/x arrived");
  EXPECT_EQ(WithoutOthers(text, "team-b"),
            "waits: 2 jobs before it in the order got GPUs, the last of them team-b/bert-1; job a job of "
            "another namespace arrived");
  for (const char* same : {"", "/", "a/", "/a", "runs on 3 workers (3 GPUs)", "5 s / GPU", "a//b"})
    EXPECT_EQ(WithoutOthers(same, "team-a"), same);
  EXPECT_EQ(WithoutOthers("b/c", ""), "a job of another namespace");
}

}  // namespace
}  // namespace voda
