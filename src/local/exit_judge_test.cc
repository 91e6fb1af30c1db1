#include "local/exit_judge.h"

#include <gtest/gtest.h>

namespace voda::local {

namespace {

using Kind = ExitVerdict::Kind;

ExitJudgement Of(RestartPolicy policy, int code, int signal, int failures, bool disturbed = false,
                 int row = 0, double ran = 1) {
  JobSpec spec;
  spec.restart_policy = policy;
  spec.backoff_limit = 6;
  return JudgeExit(spec,
                   {.exit = {.code = code, .signal = signal},
                    .ran = ran,
                    .disturbed = disturbed,
                    .failures = failures,
                    .disturbed_row = row},
                   60);
}

TEST(ExitJudge, CountsFailuresUpToTheLimit) {
  for (const RestartPolicy policy : {RestartPolicy::kOnFailure, RestartPolicy::kAlways}) {
    EXPECT_EQ(Of(policy, 1, 0, 5).verdict.kind, Kind::kFailure);
    EXPECT_EQ(Of(policy, 1, 0, 5).verdict.number, 6);
    EXPECT_EQ(Of(policy, 1, 0, 6).verdict.kind, Kind::kFatal);
    EXPECT_EQ(Of(policy, 1, 0, 6).rule, "failure 7, backoffLimit 6");
  }
}

TEST(ExitJudge, NeverMeansTheFirstFailureIsTheLast) {
  EXPECT_EQ(Of(RestartPolicy::kNo, 1, 0, 0).verdict.kind, Kind::kFatal);
}

TEST(ExitJudge, ExitCodeRetriesSignalsOnly) {
  EXPECT_EQ(Of(RestartPolicy::kExitCode, 1, 0, 0).verdict.kind, Kind::kFatal);
  EXPECT_EQ(Of(RestartPolicy::kExitCode, 127, 0, 0).verdict.kind, Kind::kFatal);
  EXPECT_EQ(Of(RestartPolicy::kExitCode, 130, 0, 0).verdict.kind, Kind::kFailure);
  EXPECT_EQ(Of(RestartPolicy::kExitCode, 0, 9, 0).verdict.kind, Kind::kFailure);
}

TEST(ExitJudge, TheEffectOfAChangeIsNoFailureForSomeTimes) {
  EXPECT_EQ(Of(RestartPolicy::kNo, 1, 0, 0, true, 0).verdict.kind, Kind::kDisturbed);
  EXPECT_EQ(Of(RestartPolicy::kOnFailure, 1, 0, 3, true, 4).verdict.number, 5);
  EXPECT_EQ(Of(RestartPolicy::kOnFailure, 1, 0, 3, true, kDisturbedMax).verdict.kind, Kind::kFailure);
  // A worker that had run for long begins a new row.
  EXPECT_EQ(Of(RestartPolicy::kOnFailure, 1, 0, 3, true, 4, 100).verdict.number, 1);
}

TEST(ExitJudge, SaysHowItEnded) {
  EXPECT_EQ(Describe(ExitRecord{.code = 3}), "exited with code 3");
  EXPECT_EQ(Describe(ExitRecord{.signal = 9}), "was killed by signal 9 (Killed)");
  EXPECT_EQ(Describe(ExitRecord{.signal = 9, .out_of_memory = true}),
            "was killed by signal 9 (Killed, its memory limit was reached)");
}

TEST(LastLines, AreTheLastTwentyAtMost4KiB) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "line " + std::to_string(i) + "\n";
  const std::string last = LastLines(text);
  EXPECT_TRUE(last.starts_with("line 80\n"));
  EXPECT_TRUE(last.ends_with("\nline 99"));
  EXPECT_LE(LastLines(std::string(100'000, 'x')).size(), 4096U);
  EXPECT_GE(LastLines(std::string(100'000, 'x')).size(), 4000U);
  EXPECT_EQ(LastLines(std::string(5000, 'x') + "\nshort\n"), "short");
  EXPECT_EQ(LastLines(""), "");
  EXPECT_EQ(LastLines("\n\n"), "");
}

TEST(LastLines, AreSafeToShow) {
  EXPECT_EQ(LastLines("\x1b[31mred\x1b[0m\tand\x01 \x7f"), "red and? ?");
  EXPECT_EQ(LastLines("10%\r50%\r100%\r\nend"), "100%\nend");
  EXPECT_EQ(LastLines("na\xc3\xafve \xff\xc3"), "na\xc3\xafve ??");
  EXPECT_EQ(LastLines("\xc2\x9b"
                      "31m"),
            "??31m");
  // A character that the limit cuts in two is left out.
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "\xe2\x82\xac";
  const std::string last = LastLines(wide);
  EXPECT_EQ(last.size() % 3, 0U);
  EXPECT_EQ(static_cast<unsigned char>(last[0]), 0xe2);
}

}  // namespace

}  // namespace voda::local
