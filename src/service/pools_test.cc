#include "service/pools.h"

#include "service/test_parts.h"

namespace voda {
namespace {

using PoolsTest = testing::PartsTest;

TEST_F(PoolsTest, APoolIsMadeOnceWithWhatWasSetForItsType) {
  pools_.UseSettings({{"algorithm/a100", "Tiresias threshold=7"}, {"ratelimit/a100", "12"}});
  EXPECT_EQ(pools_.Find("a100"), nullptr);
  Pool* const a100 = pools_.For("a100").value();
  EXPECT_EQ(pools_.For("a100").value(), a100);
  EXPECT_EQ(pools_.Find("a100"), a100);
  EXPECT_EQ(AlgorithmText(a100->algorithm, a100->options), "Tiresias threshold=7");
  EXPECT_EQ(a100->state().config.rate_limit, 12);
  const Pool* const v100 = pools_.For("v100").value();
  EXPECT_EQ(v100->algorithm, "ElasticFIFO");
  EXPECT_EQ(v100->state().config.rate_limit, 0);
  EXPECT_EQ(pools_.Types(), (std::vector<std::string>{"a100", "v100"}));
}

TEST_F(PoolsTest, AFlagWinsOverWhatWasSet) {
  config_.algorithm_given = config_.rate_limit_given = true;
  pools_.UseSettings({{"algorithm/a100", "Tiresias"}, {"ratelimit/a100", "12"}});
  const Pool* const pool = pools_.For("a100").value();
  EXPECT_EQ(pool->algorithm, "ElasticFIFO");
  EXPECT_EQ(pool->state().config.rate_limit, 0);
}

TEST_F(PoolsTest, WhatWasSetAndCannotBeUsedAnyMoreIsLeftOut) {
  SetLog({LogLevel::kError, false});
  pools_.UseSettings({{"algorithm/a100", "Gone"}, {"ratelimit/a100", "-1"}});
  const Pool* const pool = pools_.For("a100").value();
  EXPECT_EQ(pool->algorithm, "ElasticFIFO");
  EXPECT_EQ(pool->state().config.rate_limit, 0);
}

TEST_F(PoolsTest, WithoutAPolicyThereIsNoPool) {
  config_.algorithm = "Unknown";
  EXPECT_FALSE(pools_.For("a100"));
  EXPECT_EQ(pools_.Find("a100"), nullptr);
}

TEST_F(PoolsTest, RoundsAreCountedOnFromTheHistory) {
  RoundRecord round;
  round.gpu_type = "a100";
  round.round = 41;
  history_.AddRound(round);
  history_.Flush();
  EXPECT_EQ(pools_.For("a100").value()->state().rounds, 41);
  EXPECT_EQ(pools_.For("v100").value()->state().rounds, 0);
}

TEST_F(PoolsTest, AnActionIsToldOfBeforeItIsCarriedOut) {
  Declare({{"a", 4, "cpu", {}}});
  Arrive("x", 1, 1);
  Settle();
  ASSERT_EQ(before_.size(), 1U);
  EXPECT_EQ(before_[0].first.kind, ActionKind::kStart);
  EXPECT_EQ(before_[0].first.job, "x");
  EXPECT_EQ(before_[0].second, "cpu");
  EXPECT_EQ(cluster_.actions, 1);
}

TEST_F(PoolsTest, ATypeThatThereIsNotIsRefusedWithThoseThatThereAre) {
  EXPECT_EQ(pools_.NoSuchType("h100"), "\"h100\" is not a GPU type of this cluster; it has no node yet");
  ASSERT_TRUE(pools_.For("v100"));
  ASSERT_TRUE(pools_.For("a100"));
  EXPECT_EQ(pools_.NoSuchType("h100"),
            "\"h100\" is not a GPU type of this cluster; its types are a100, v100");
}

}  // namespace
}  // namespace voda
