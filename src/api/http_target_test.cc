#include "api/http_target.h"

#include <gtest/gtest.h>

#include "support/check.h"

namespace voda {
namespace {

TEST(HttpTarget, TakesPathAndQueryApart) {
  const auto target = ParseTarget("/api/v1/jobs/a%20b%2f+c?limit=5&name=x%26y+z&flag&empty=&a=b=c");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/api/v1/jobs/a b/+c");
  const std::map<std::string, std::string, std::less<>> query = {
      {"limit", "5"}, {"name", "x&y z"}, {"flag", ""}, {"empty", ""}, {"a", "b=c"}};
  EXPECT_EQ(target->query, query);
}

TEST(HttpTarget, TakesTheFormOfProxies) {
  EXPECT_EQ(ParseTarget("http://localhost:55587/a?b=c")->path, "/a");
  EXPECT_EQ(ParseTarget("HTTPS://x")->path, "/");
  EXPECT_EQ(ParseTarget("/")->path, "/");
  EXPECT_TRUE(ParseTarget("/?")->query.empty());
}

TEST(HttpTarget, RefusesWhatIsNoText) {
  for (const char* wrong :
       {"/%",   "/%4",     "/%zz",         "/a?b=%",        "/a?%=1",     "/%00",       "/a?b=%00", "/%ff",
        "/%c3", "/%c0%af", "/%ed%a0%80",   "/%f5%80%80%80", "/%e0%80%80", "/a?b=%80",   "/\xff",    "",
        "*",    "a/b",     "localhost:80", "ftp://x/y",     "http://x?y", "/a?b=1&b=2", "/a?b&%62"}) {
    const auto target = ParseTarget(wrong);
    ASSERT_FALSE(target) << wrong;
    EXPECT_FALSE(target.error().message.empty());
  }
}

TEST(HttpTarget, EveryTextComesThroughEncoded) {
  testing::Check([](const std::string& given) {
    const std::string text = IsUtf8(given) ? given : "ü€𝄞" + std::to_string(given.size());
    if (text.find('\0') != std::string::npos) return;
    std::string encoded;
    for (const char c : text) {
      constexpr std::string_view kHex = "0123456789aBcDeF";
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHex[byte / 16], kHex[byte % 16]};
    }
    const auto target = ParseTarget("/" + encoded + "?k=" + encoded);
    RC_ASSERT(target.has_value());
    RC_ASSERT(target->path == "/" + text);
    RC_ASSERT(target->query.at("k") == text);
  });
}

}  // namespace
}  // namespace voda
