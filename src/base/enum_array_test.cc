#include "base/enum_array.h"

#include <gtest/gtest.h>

#include <string_view>

namespace voda {
namespace {

enum class Fruit { kApple, kPear, kPlum };

constexpr EnumArray<std::string_view, Fruit::kPlum> kNames = {"apple", "pear", "plum"};
static_assert(kNames[Fruit::kPear] == "pear" && kNames.keys().size() == 3);

TEST(EnumArray, HasAnElementForEachValue) {
  EnumArray<int, Fruit::kPlum> counts{};
  ++counts[Fruit::kPlum];
  int sum = 0;
  for (const int count : counts) sum += count;
  EXPECT_EQ(sum, 1);
  for (const Fruit fruit : counts.keys()) EXPECT_EQ(counts[fruit], fruit == Fruit::kPlum ? 1 : 0);
}

}  // namespace
}  // namespace voda
