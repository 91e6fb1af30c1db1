#include "base/indexed.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace voda {
namespace {

using Apple = Index<struct AppleTag>;
using Pear = Index<struct PearTag>;
template <class T>
using PerApple = IndexedVector<Apple, T>;

template <class List, class Position>
concept Subscripts = requires(List list, Position position) {
  list[position];
};

static_assert(std::is_trivially_copyable_v<Apple> && sizeof(Apple) == 4);
static_assert(Subscripts<PerApple<int>, Apple>);
static_assert(!Subscripts<PerApple<int>, Pear>);
static_assert(!std::is_constructible_v<Apple, Pear>);
static_assert(!std::is_convertible_v<Apple, int> && !std::is_convertible_v<Apple, bool>);

TEST(Index, IsAPositionOrNone) {
  Apple apple = 2;
  EXPECT_EQ(static_cast<int>(apple), 2);
  EXPECT_EQ(++apple, Apple(3));
  EXPECT_EQ(apple.next(), Apple(4));
  EXPECT_EQ(--apple, Apple(2));
  EXPECT_LT(apple, apple.next());
  EXPECT_EQ(Apple(), Apple(-1));
  EXPECT_EQ(::testing::PrintToString(apple), "2");
}

TEST(IndexedVector, IsSubscriptedByItsOwnPositions) {
  PerApple<int> weights = {5, 6, 7};
  EXPECT_EQ(weights[0], 5);
  weights[Apple(2)] = 8;
  int sum = 0;
  for (const Apple i : weights.indices()) sum += weights[i];
  EXPECT_EQ(sum, 19);
  EXPECT_EQ(weights.end_index(), Apple(3));
  weights.EraseAt(1);
  EXPECT_EQ(weights, (PerApple<int>{5, 8}));
}

TEST(IndexedVector, HoldsFlagsToo) {
  PerApple<bool> ripe(2, false);
  ripe[1] = true;
  EXPECT_FALSE(ripe[0]);
  EXPECT_TRUE(ripe[1]);
}

TEST(IndexedVector, AnEmptyOneHasNoPositions) {
  for ([[maybe_unused]] const Apple i : PerApple<int>().indices()) FAIL();
}

}  // namespace
}  // namespace voda
