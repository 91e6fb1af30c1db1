#include "ledger/job_state.h"

#include <gtest/gtest.h>

#include <limits>

namespace voda {
namespace {

JobState Lived() {
  JobState state;
  state.limits = {2, 3, 8};
  state.priority = -4;
  state.held = true;
  state.waited = 12.3456;
  state.ran = 100;
  state.gpu_seconds = 400.5;
  state.attained = 300;
  state.accounted = 1'700'000'112;
  state.first_started = 1'700'000'012;
  state.last_change = 1'700'000'050.25;
  state.starts = 2;
  state.epoch = 7;
  state.reported = true;
  return state;
}

TEST(JobState, ComesBack) {
  const JobStateText read = ReadJobState(WriteJobState("team/resnet", Lived()));
  EXPECT_EQ(read.job, "team/resnet");
  ASSERT_TRUE(read.state);
  EXPECT_DOUBLE_EQ(read.state->waited, 12.346);
  JobState rounded = Lived();
  rounded.waited = read.state->waited;
  EXPECT_EQ(*read.state, rounded);
  EXPECT_EQ(ReadJobState(WriteJobState("a", {})).state, JobState());
}

// The specs of jobs allow any int.
TEST(JobState, APriorityOfAnySizeComesBack) {
  for (const int priority : {std::numeric_limits<int>::min(), 2'000'000, std::numeric_limits<int>::max()}) {
    JobState state;
    state.held = true;
    state.priority = priority;
    EXPECT_EQ(ReadJobState(WriteJobState("a", state)).state, state);
  }
}

TEST(JobState, NewerTotalsStay) {
  JobState newer = Lived();
  newer.accounted += 10;
  newer.ran = 110;
  newer.held = false;
  TakeKept(Lived(), newer);
  EXPECT_EQ(newer.ran, 110);
  EXPECT_TRUE(newer.held) << "what users asked for is what was kept";
  JobState older;
  TakeKept(Lived(), older);
  EXPECT_EQ(older, Lived());
}

TEST(JobState, WhoHasReportedHasReported) {
  JobState state;
  state.reported = true;  // and is in its first epoch
  EXPECT_EQ(ReadJobState(WriteJobState("a", state)).state, state);
  EXPECT_TRUE(ReadJobState(R"({"job":"a","epoch":3})").state->reported) << "as older versions wrote it";
  EXPECT_FALSE(ReadJobState(R"({"job":"a","epochs":3})").state->reported);
  JobState older;
  older.limits = {1, 2, 3};
  TakeKept(older, state);
  EXPECT_TRUE(state.reported);
  older.accounted = 1;  // a leader of an older version wrote last
  TakeKept(older, state);
  EXPECT_TRUE(state.reported);
  EXPECT_EQ(state.limits, older.limits);
}

TEST(JobState, RubbishIsNone) {
  for (const char* text : {"", "{", "[]", "7", R"({"min":2})", R"({"job":7})"}) {
    EXPECT_EQ(ReadJobState(text).job, "") << text;
    EXPECT_FALSE(ReadJobState(text).state) << text;
  }
  for (const char* fields : {R"("min":"2")", R"("min":0)", R"("min":9,"max":3)", R"("at":1e9,"ran":-1)",
                             R"("at":1e9,"ran":"x")", R"("priority":3000000000)"}) {
    const JobStateText read = ReadJobState(std::string(R"({"job":"a",)") + fields + "}");
    EXPECT_EQ(read.job, "a") << fields;
    EXPECT_FALSE(read.state) << fields;
  }
}

}  // namespace
}  // namespace voda
