#include "client/json.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>

#include "codec/json.h"
#include "support/check.h"

namespace voda {
namespace {

JsonValue Parsed(std::string_view text) {
  auto value = ParseJson(text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value ? *value : JsonValue();
}

TEST(ClientJson, ReadsEveryKindOfValue) {
  const JsonValue value = Parsed(
      R"( {"n": null, "t": true, "f": false, "i": -12, "r": 2.5e3, "s": "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00", "a": [1, [2]], "o": {}} )");
  EXPECT_TRUE(value["n"].null());
  EXPECT_TRUE(value["t"].Flag());
  EXPECT_FALSE(value["f"].Flag());
  EXPECT_TRUE(value["f"].boolean());
  EXPECT_EQ(value["i"].Whole(), -12);
  EXPECT_TRUE(value["i"].integer());
  EXPECT_EQ(value["r"].Number(), 2500);
  EXPECT_FALSE(value["r"].integer());
  EXPECT_EQ(value["s"].Text(), "a\"\\/\b\f\n\r\t\u00e9\U0001F600");
  EXPECT_EQ(value["a"].items().size(), 2U);
  EXPECT_EQ(value["a"].items()[1].items()[0].Whole(), 2);
  EXPECT_TRUE(value["o"].object());
  EXPECT_EQ(value.members()[3].first, "i");
}

TEST(ClientJson, WhatIsNotThereIsNullZeroOrNothing) {
  const JsonValue value = Parsed(R"({"a": "x"})");
  EXPECT_TRUE(value["b"]["c"].null());
  EXPECT_EQ(value["a"].Number(7), 7);
  EXPECT_EQ(value["a"].Whole(8), 8);
  EXPECT_EQ(value["b"].Text(), "");
  EXPECT_TRUE(value["a"].items().empty());
  EXPECT_EQ(JsonValue(1e300).Whole(3), 3);
  EXPECT_EQ(JsonValue(2.9).Whole(), 2);
}

TEST(ClientJson, NumbersAtTheEdges) {
  EXPECT_EQ(Parsed("9223372036854775807").Whole(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Parsed("-9223372036854775808").Whole(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Parsed("9223372036854775808").Number(), 9223372036854775808.0);
  EXPECT_EQ(Parsed("1e-999").Number(), 0);
  EXPECT_EQ(Parsed("-0").Whole(), 0);
  EXPECT_FALSE(ParseJson("1e999"));
  EXPECT_FALSE(ParseJson("-1e999"));
}

TEST(ClientJson, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "[1,]",
                           "{\"a\":1,}",
                           "{,}",
                           "[,1]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "nul",
                           "truee",
                           "tru",
                           "\"a",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\n\"",
                           "\"\xFF\"",
                           "\"\xC0\x80\"",
                           "1 2",
                           "[1 2]",
                           "{\"a\":1 \"b\":2}",
                           "NaN",
                           "Infinity",
                           "'a'",
                           "[1}",
                           "{\"a\":1]",
                           "\\",
                           "\"\\",
                           "\"\\u-123\""}) {
    EXPECT_FALSE(ParseJson(text)) << text;
  }
  EXPECT_FALSE(ParseJson(std::string_view("[1]\0", 4)));
}

TEST(ClientJson, DepthIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(ParseJson(nested(kMaxJsonDepth)));
  EXPECT_FALSE(ParseJson(nested(kMaxJsonDepth + 1)));
  EXPECT_FALSE(ParseJson(std::string(10000000, '[')));
}

TEST(ClientJson, PrintsOnOneLineAndIndented) {
  const JsonValue value = Parsed(R"({"a":[1,{"b":"x\ny"}],"c":{},"d":[],"e":0.1})");
  EXPECT_EQ(ToJson(value), R"({"a": [1, {"b": "x\ny"}], "c": {}, "d": [], "e": 0.1})");
  EXPECT_EQ(
      ToPrettyJson(value),
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\ny\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  "
      "\"e\": 0.1\n}\n");
}

// Accepts whatever the library accepts.
class Anything : public JsonEvents {
 public:
  bool OnScalar(const JsonScalar&) override { return true; }
  bool OnKey(std::string&) override { return true; }
  bool OnObject() override { return true; }
  bool OnObjectEnd() override { return true; }
  bool OnArray() override { return true; }
  bool OnArrayEnd() override { return true; }
  std::string Where() const override { return "text"; }
};

TEST(ClientJson, AgreesWithTheLibraryOnWhatIsJson) {
  const std::string seed =
      R"({"a": [1, -2.5e-3, "x\u00e9\n", true, false, null, {"b": {}, "c": []}], "d": "\ud83d\ude00"})";
  testing::Check(
      [&] {
        std::string text = seed;
        const int edits = *rc::gen::inRange(0, 4);
        for (int i = 0; i < edits; ++i) {
          const auto at = static_cast<std::size_t>(*rc::gen::inRange<int>(0, static_cast<int>(text.size())));
          const char byte = *rc::gen::elementOf(std::string("{}[]\",:\\u0189-+.eE tfnaxd\n\x80\xC3\xFF"));
          if (*rc::gen::arbitrary<bool>()) {
            text[at] = byte;
          } else {
            text.erase(at, 1);
          }
        }
        Anything anything;
        RC_ASSERT(ParseJson(text).has_value() == ReadJson(text, anything).has_value());
      },
      3000);
}

JsonValue Random(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0:
      return {};
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<double>();
    case 4:
      return *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
    case 5: {
      JsonValue::Array items;
      const int count = *rc::gen::inRange(0, 4);
      for (int i = 0; i < count; ++i) items.push_back(Random(depth - 1));
      return items;
    }
    default: {
      JsonValue::Object members;
      const int count = *rc::gen::inRange(0, 4);
      for (int i = 0; i < count; ++i) {
        members.emplace_back(*rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)),
                             Random(depth - 1));
      }
      return members;
    }
  }
}

TEST(ClientJson, WhatIsPrintedReadsBackTheSame) {
  testing::Check(
      [] {
        const std::string once = ToJson(Random(3));
        const auto again = ParseJson(once);
        RC_ASSERT(again.has_value());
        RC_ASSERT(ToJson(*again) == once);
        const auto pretty = ParseJson(ToPrettyJson(*again));
        RC_ASSERT(pretty.has_value());
        RC_ASSERT(ToJson(*pretty) == once);
      },
      500);
}

}  // namespace
}  // namespace voda
