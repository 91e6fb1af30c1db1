#include "kubeflow/expiring_cache.h"

#include <gtest/gtest.h>

#include <string>

namespace voda::kubeflow {
namespace {

using kube::Duration;
constexpr kube::TimePoint kStart{Duration(1000)};

TEST(ExpiringCache, HoldsForAWhile) {
  ExpiringCache<int, std::string> cache(10);
  cache.Put(1, "a", kStart, Duration(100));
  ASSERT_NE(cache.Find(1, kStart + Duration(99)), nullptr);
  EXPECT_EQ(*cache.Find(1, kStart), "a");
  EXPECT_EQ(cache.Find(1, kStart + Duration(100)), nullptr);
  EXPECT_EQ(cache.Find(2, kStart), nullptr);
  cache.Put(1, "b", kStart + Duration(50), Duration(100));
  EXPECT_EQ(*cache.Find(1, kStart + Duration(149)), "b");
  EXPECT_EQ(cache.size(), 1u);
}

TEST(ExpiringCache, TheOldestMakeRoom) {
  ExpiringCache<int, int> cache(3);
  for (int key = 0; key < 3; ++key) cache.Put(key, key, kStart, Duration(100));
  cache.Put(0, 7, kStart, Duration(100));  // not the oldest any more
  cache.Put(3, 3, kStart, Duration(100));
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.Find(1, kStart), nullptr);
  for (const int key : {0, 2, 3}) EXPECT_NE(cache.Find(key, kStart), nullptr) << key;
}

TEST(ExpiringCache, WhatIsOverIsDropped) {
  ExpiringCache<int, int> cache(100);
  for (int key = 0; key < 50; ++key) cache.Put(key, key, kStart, Duration(10));
  cache.Put(50, 50, kStart + Duration(10), Duration(10));
  EXPECT_EQ(cache.size(), 1u);
}

TEST(ExpiringCache, NoRoomOrNoTimeKeepsNothing) {
  ExpiringCache<int, int> none(0);
  none.Put(1, 1, kStart, Duration(10));
  EXPECT_EQ(none.size(), 0u);
  ExpiringCache<int, int> cache(1);
  cache.Put(1, 1, kStart, Duration(10));
  cache.Put(1, 2, kStart, Duration(0));
  EXPECT_EQ(cache.Find(1, kStart), nullptr);
}

}  // namespace
}  // namespace voda::kubeflow
