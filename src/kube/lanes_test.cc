#include "kube/lanes.h"

#include <gtest/gtest.h>

namespace voda::kube {
namespace {

LimitsOfLanes Only(LaneLimits limits) {
  LimitsOfLanes all = DefaultLanes();
  all[Lane::kWrite] = limits;
  return all;
}

using Ids = std::vector<Lanes::Id>;

TEST(KubeLanes, ABucketFillsAtItsRate) {
  TokenBucket bucket(2, 3);
  TimePoint now{Duration(5000)};
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
  EXPECT_EQ(bucket.ReadyAt(now), now + Duration(500));
  now += Duration(499);
  EXPECT_FALSE(bucket.Take(now));
  now += Duration(1);
  EXPECT_TRUE(bucket.Take(now));
  now += Duration(3'600'000);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
  TokenBucket free(0, 0);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(free.Take(now));
}

TEST(KubeLanes, FlowsTakeTurnsAndKeepTheirOrder) {
  Lanes lanes(Only({.per_second = 0, .in_flight = 4, .waiting = 100}));
  for (Lanes::Id id = 1; id <= 5; ++id) ASSERT_TRUE(lanes.Add(Lane::kWrite, "greedy", id));
  ASSERT_TRUE(lanes.Add(Lane::kWrite, "modest", 10));
  EXPECT_EQ(lanes.Take({}), (Ids{1, 10, 2, 3}));
  EXPECT_TRUE(lanes.Take({}).empty());
  EXPECT_FALSE(lanes.NextAt({}));
  lanes.Finished(Lane::kWrite);
  EXPECT_EQ(lanes.Take({}), Ids{4});
}

TEST(KubeLanes, OneLaneDoesNotHoldUpAnother) {
  Lanes lanes(Only({.per_second = 1, .burst = 1, .in_flight = 1, .waiting = 100}));
  for (Lanes::Id id = 1; id <= 50; ++id) lanes.Add(Lane::kWrite, "", id);
  const TimePoint now{Duration(1000)};
  EXPECT_EQ(lanes.Take(now), Ids{1});
  lanes.Add(Lane::kLease, "", 100);
  EXPECT_EQ(lanes.NextAt(now), now);
  EXPECT_EQ(lanes.Take(now), Ids{100});
  lanes.Finished(Lane::kWrite);
  EXPECT_EQ(lanes.NextAt(now), now + Duration(1000));
}

TEST(KubeLanes, TheQueueIsBounded) {
  Lanes lanes(Only({.per_second = 0, .in_flight = 0, .waiting = 2}));
  EXPECT_TRUE(lanes.Add(Lane::kWrite, "a", 1));
  EXPECT_TRUE(lanes.Add(Lane::kWrite, "b", 2));
  EXPECT_FALSE(lanes.Add(Lane::kWrite, "c", 3));
  lanes.Remove(Lane::kWrite, 1);
  lanes.Remove(Lane::kWrite, 77);
  EXPECT_TRUE(lanes.Add(Lane::kWrite, "c", 3));
  EXPECT_EQ(lanes.waiting(Lane::kWrite), 2U);
}

}  // namespace
}  // namespace voda::kube
