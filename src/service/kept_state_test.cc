#include "service/kept_state.h"

#include <gtest/gtest.h>

namespace voda {
namespace {

JobRecord Lived() {
  JobRecord record;
  record.name = "team/resnet";
  record.min = 2;
  record.num = 3;
  record.max = 8;
  record.priority = -4;
  record.held = true;
  record.waited = 12.3456;
  record.ran = 100;
  record.gpu_seconds = 400.5;
  record.attained = 300;
  record.accounted = 1'700'000'112;
  record.first_started = 1'700'000'012;
  record.last_change = 1'700'000'050.25;
  record.starts = 2;
  record.epoch = 7;
  return record;
}

TEST(KeptState, ComesBack) {
  JobRecord read;
  read.name = "team/resnet";
  EXPECT_EQ(KeptName(WriteKeptState(Lived())), "team/resnet");
  ASSERT_TRUE(ReadKeptState(WriteKeptState(Lived()), read));
  EXPECT_EQ(WriteKeptState(read), WriteKeptState(Lived()));
  EXPECT_TRUE(read.held);
  EXPECT_EQ(read.max, 8);
  EXPECT_DOUBLE_EQ(read.waited, 12.346);
  EXPECT_EQ(read.last_start, std::nullopt);
}

TEST(KeptState, NewerTotalsStay) {
  JobRecord newer = Lived();
  newer.accounted += 10;
  newer.ran = 110;
  newer.held = false;
  ASSERT_TRUE(ReadKeptState(WriteKeptState(Lived()), newer));
  EXPECT_EQ(newer.ran, 110);
  EXPECT_TRUE(newer.held) << "what users asked for is on the object";
}

TEST(KeptState, RubbishChangesNothing) {
  for (const char* text : {"{", "[]", "7", R"({"min":"2"})", R"({"min":0})", R"({"min":9,"max":3})",
                           R"({"at":1e9,"ran":-1})", R"({"at":1e9,"ran":"x"})", R"({"priority":1e12})"}) {
    JobRecord record;
    EXPECT_FALSE(ReadKeptState(text, record)) << text;
    EXPECT_EQ(WriteKeptState(record), WriteKeptState(JobRecord())) << text;
  }
  JobRecord record;
  EXPECT_TRUE(ReadKeptState("", record));
}

}  // namespace
}  // namespace voda
