#include "base/duration.h"

#include <gtest/gtest.h>

namespace voda {

namespace {

TEST(Duration, IsPrintedAsGoPrintsIt) {
  EXPECT_EQ(GoDuration(0), "0s");
  EXPECT_EQ(GoDuration(-5), "0s");
  EXPECT_EQ(GoDuration(28.9), "28s");
  EXPECT_EQ(GoDuration(28.999), "28s");
  EXPECT_EQ(GoDuration(60), "1m0s");
  EXPECT_EQ(GoDuration(65), "1m5s");
  EXPECT_EQ(GoDuration(3600), "1h0m0s");
  EXPECT_EQ(GoDuration(3723), "1h2m3s");
  EXPECT_EQ(GoDuration(360000), "100h0m0s");
  EXPECT_EQ(GoDuration(1e300), "?");
  EXPECT_EQ(FineDuration(0.002), "2ms");
  EXPECT_EQ(FineDuration(0.00001), "1ms");
  EXPECT_EQ(FineDuration(1.5), "1.5s");
  EXPECT_EQ(FineDuration(65), "1m5s");
  EXPECT_EQ(FineDuration(0), "0s");
}

TEST(Duration, IsSpokenRounded) {
  EXPECT_EQ(SpokenDuration(0), "0 s");
  EXPECT_EQ(SpokenDuration(-1), "0 s");
  EXPECT_EQ(SpokenDuration(0.1), "1 s");
  EXPECT_EQ(SpokenDuration(119.4), "119 s");
  EXPECT_EQ(SpokenDuration(119.6), "2 min");
  EXPECT_EQ(SpokenDuration(448), "7 min 30 s");
  EXPECT_EQ(SpokenDuration(596), "10 min");
  EXPECT_EQ(SpokenDuration(3600), "1 h");
  EXPECT_EQ(SpokenDuration(4800), "1 h 20 min");
  EXPECT_EQ(SpokenDuration(86399), "1 d");
  EXPECT_EQ(SpokenDuration(90000), "1 d 1 h");
  EXPECT_EQ(SpokenDuration(1e300), "over 300 years");
}

TEST(Duration, IsReadWithOrWithoutAUnit) {
  const auto read = [](const char* text) {
    const auto seconds = ParseDuration(text);
    return seconds ? *seconds : -1;
  };
  EXPECT_EQ(read("30"), 30);
  EXPECT_EQ(read("30s"), 30);
  EXPECT_EQ(read("1.5m"), 90);
  EXPECT_EQ(read("2h"), 7200);
  EXPECT_EQ(read("100ms"), 0.1);
  for (const char* wrong : {"", "s", "-1", "1d", "1 s", "inf", "nan", "1e300h"})
    EXPECT_EQ(read(wrong), -1) << wrong;
  EXPECT_EQ(ParseDuration("1d").error().message, "\"1d\" is not a duration; write 30, 30s, 1.5m or 2h");
}

}  // namespace

}  // namespace voda
