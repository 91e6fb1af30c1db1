#include "os/run.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace voda::os {

namespace {

using Kind = RunEnd::Kind;

RunEnd RunShell(const std::string& script, const RunLimits& limits = {.seconds = 60},
                std::optional<std::string_view> input = std::nullopt) {
  auto end = Run({.argv = {"/bin/sh", "-c", script}}, input, limits);
  EXPECT_TRUE(end);
  EXPECT_TRUE(::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) << "a child was left";
  return end ? std::move(*end) : RunEnd{};
}

TEST(Run, GivesWhatWasPrintedAndHowItEnded) {
  const RunEnd end = RunShell("cat; echo out; exit 3", {.seconds = 60}, "in\n");
  EXPECT_EQ(end.kind, Kind::kExited);
  EXPECT_EQ(end.number, 3);
  EXPECT_EQ(end.output, "in\nout\n");
  EXPECT_EQ(RunShell("cat").output, "");  // of /dev/null
  const RunEnd killed = RunShell("kill -KILL $$");
  EXPECT_EQ(killed.kind, Kind::kSignaled);
  EXPECT_EQ(killed.number, SIGKILL);
}

TEST(Run, InputThatNobodyReadsDoesNotMatter) {
  const std::string much(10'000'000, 'x');  // NOLINT: it is meant to be this long
  EXPECT_EQ(RunShell("exit 0", {.seconds = 60}, much).kind, Kind::kExited);
  EXPECT_EQ(RunShell("wc -c", {.seconds = 60}, much).output, "10000000\n");
}

TEST(Run, AProgramThatCannotBeStartedSaysWhy) {
  const auto end = os::Run({.argv = {"no-such-program-here"}}, std::nullopt, {});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, Kind::kNotStarted);
  EXPECT_EQ(end->number, ENOENT);
}

TEST(Run, LimitsHold) {
  EXPECT_EQ(RunShell("sleep 1000", {.seconds = 0.2}).kind, Kind::kTooLate);
  EXPECT_EQ(RunShell("yes", {.seconds = 60, .output_bytes = 100'000}).kind, Kind::kTooMuch);
  std::atomic<bool> canceled = false;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    canceled = true;
  });
  EXPECT_EQ(RunShell("sleep 1000", {.seconds = 600, .canceled = &canceled}).kind, Kind::kCanceled);
  later.join();
}

TEST(Run, TheEndIsThatOfTheProgramAlone) {
  // A descendant that keeps stdout open, and is killed with the group.
  EXPECT_EQ(RunShell("sleep 1000 & echo out").output, "out\n");
  // A program that closes stdout and goes on.
  const RunEnd end = RunShell("echo out; exec >&-; sleep 0.2; exit 4");
  EXPECT_EQ(end.number, 4);
  EXPECT_EQ(end.output, "out\n");
}

}  // namespace

}  // namespace voda::os
