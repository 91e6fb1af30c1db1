#include "base/text.h"

#include <gtest/gtest.h>

namespace voda {

namespace {

using Parts = std::vector<std::string_view>;

TEST(Text, IsSplitAtEverySeparator) {
  EXPECT_EQ(Split("", ','), Parts{""});
  EXPECT_EQ(Split("a", ','), Parts{"a"});
  EXPECT_EQ(Split("a,,b,", ','), (Parts{"a", "", "b", ""}));
}

TEST(Text, ASeparatorMayEndAPart) {
  EXPECT_EQ(SplitEnded(""), Parts{});
  EXPECT_EQ(SplitEnded("a"), Parts{"a"});
  EXPECT_EQ(SplitEnded("a\nb\n"), (Parts{"a", "b"}));
  EXPECT_EQ(SplitEnded("\n\n"), (Parts{"", ""}));
  EXPECT_EQ(SplitEnded("a&b", '&'), (Parts{"a", "b"}));
}

TEST(Text, WordsAreNeverEmpty) {
  EXPECT_EQ(SplitWords(""), Parts{});
  EXPECT_EQ(SplitWords("  a  b "), (Parts{"a", "b"}));
  EXPECT_EQ(SplitWords("a b\nc\n", " \n"), (Parts{"a", "b", "c"}));
}

TEST(Text, ANameMayHaveANamespace) {
  EXPECT_EQ(SplitName("team-a/resnet").name_space, "team-a");
  EXPECT_EQ(SplitName("team-a/resnet").name, "resnet");
  EXPECT_EQ(SplitName("resnet").name_space, "");
  EXPECT_EQ(SplitName("resnet").name, "resnet");
  EXPECT_EQ(SplitName("a/b/c").name, "b/c") << "no name of Kubernetes; for the caller to refuse";
}

TEST(Text, IsTrimmed) {
  EXPECT_EQ(Trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \n"), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(Text, IsEncodedForAUrl) {
  EXPECT_EQ(PercentEncode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncode("a b/c?d&e=f%"), "a%20b%2Fc%3Fd%26e%3Df%25");
  EXPECT_EQ(PercentEncode("a/b c?&%\xC3"), "a%2Fb%20c%3F%26%25%C3");
}

}  // namespace

}  // namespace voda
