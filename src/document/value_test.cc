#include "document/value.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "document/documents.h"
#include "document/json_reader.h"
#include "support/check.h"

namespace voda {
namespace {

Value Parsed(std::string_view text) {
  auto value = ParseJson(text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().message);
  return value ? *value : Value();
}

TEST(Value, ReadsEveryKindOfValue) {
  const Value value = Parsed(
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
  EXPECT_TRUE(value["o"].map());
  EXPECT_EQ(value.members()[3].first, "i");
}

TEST(Value, WhatIsNotThereIsNullZeroOrNothing) {
  const Value value = Parsed(R"({"a": "x"})");
  EXPECT_TRUE(value["b"]["c"].null());
  EXPECT_EQ(value["a"].Number(7), 7);
  EXPECT_EQ(value["a"].Whole(8), 8);
  EXPECT_EQ(value["b"].Text(), "");
  EXPECT_TRUE(value["a"].items().empty());
  EXPECT_EQ(Value(1e300).Whole(3), 3);
  EXPECT_EQ(Value(2.9).Whole(), 2);
}

TEST(Value, NumbersAtTheEdges) {
  EXPECT_EQ(Parsed("9223372036854775807").Whole(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(Parsed("-9223372036854775808").Whole(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(Parsed("9223372036854775808").Number(), 9223372036854775808.0);
  EXPECT_EQ(Parsed("1e-999").Number(), 0);
  EXPECT_EQ(Parsed("-0").Whole(), 0);
  EXPECT_FALSE(ParseJson("1e999"));
  EXPECT_FALSE(ParseJson("-1e999"));
}

TEST(Value, RefusesWhatIsNotJson) {
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

TEST(Value, DepthIsBounded) {
  constexpr int kDepth = 64;
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(ParseJson(nested(kDepth)));
  EXPECT_FALSE(ParseJson(nested(kDepth + 1)));
  EXPECT_FALSE(ParseJson(std::string(10'000'000, '[')));  // NOLINT: it is meant to be this long
}

TEST(Value, IsFoundByAPointer) {
  const Value value = Parsed(R"({"a": [1, {"b/c~d": "x"}], "": 2})");
  EXPECT_EQ(value.At("/a/1/b~1c~0d").Text(), "x");
  EXPECT_EQ(value.At("").members().size(), 2U);
  EXPECT_EQ(value.At("/").Whole(), 2);
  for (const char* pointer : {"/a/2", "/a/-", "/a/x", "/a/1/b", "/b", "/a/0/b"}) {
    EXPECT_TRUE(value.At(pointer).null()) << pointer;
  }
}

TEST(Value, IsChangedInPlace) {
  Value value = Parsed(R"({"a": null, "b": 1, "c": [1]})");
  value.Member("a").Member("x") = "y";
  value.Erase("b");
  value.Erase("nothing");
  value.Member("c").Items().push_back(2);
  value.Member("d").Items();
  EXPECT_EQ(ToJson(value), R"({"a":{"x":"y"},"c":[1,2],"d":[]})");
  value.Reach("/c/-") = 3;
  value.Reach("/c/0") = 0;
  value.Reach("/e/f~1g/h") = true;
  EXPECT_EQ(ToJson(value), R"({"a":{"x":"y"},"c":[0,2,3],"d":[],"e":{"f/g":{"h":true}}})");
  EXPECT_EQ(ToJson(std::move(value).Take("c")), "[0,2,3]");
}

TEST(Value, ErrorsSayWhere) {
  const auto message = [](std::string_view text) { return ParseJson(text, "body").error().message; };
  EXPECT_EQ(message("Price"),
            "body: not JSON at line 1, column 1: no value; give JSON in UTF-8 (it has no NaN, "
            "Infinity, comments or trailing commas)");
  EXPECT_EQ(message("{\"a\": [1,\n 2,\n x]}").substr(0, 44), "a[2]: not JSON at line 3, column 2: no value");
  EXPECT_EQ(message("[1e999]"), "[0]: out of range: number overflow parsing '1e999'; give a finite number");
}

TEST(Value, PrintsOnOneLineAndIndented) {
  const Value value = Parsed(R"({"a":[1,{"b":"x\ny"}],"c":{},"d":[],"e":0.1})");
  EXPECT_EQ(ToJson(value), R"({"a":[1,{"b":"x\ny"}],"c":{},"d":[],"e":0.1})");
  EXPECT_EQ(ToJsonLine(value), R"({"a": [1, {"b": "x\ny"}], "c": {}, "d": [], "e": 0.1})");
  EXPECT_EQ(
      ToPrettyJson(value),
      "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\ny\"\n    }\n  ],\n  \"c\": {},\n  \"d\": [],\n  "
      "\"e\": 0.1\n}\n");
}

// Accepts whatever is JSON.
class Anything : public JsonEvents {
 public:
  bool OnScalar(Value&) override { return true; }
  bool OnKey(std::string&) override { return true; }
  bool OnObject() override { return true; }
  bool OnObjectEnd() override { return true; }
  bool OnArray() override { return true; }
  bool OnArrayEnd() override { return true; }
  std::string Where() const override { return "text"; }
};

TEST(Value, AgreesWithTheLibraryOnWhatIsJson) {
  const std::string seed =
      R"({"a": [1, -2.5e-3, "x\u00e9\n", true, false, null, {"b": {}, "c": []}], "d": "\ud83d\ude00"})";
  testing::Check(
      [&] {
        std::string text = seed;
        const int edits = *rc::gen::inRange(0, 4);
        for (int i = 0; i < edits; ++i) {
          const std::size_t at = *rc::gen::inRange<int>(0, static_cast<int>(text.size()));
          const char byte = *rc::gen::elementOf(std::string("{}[]\",:\\u0189-+.eE tfnaxd\n\x80\xC3\xFF"));
          if (*rc::gen::arbitrary<bool>()) {
            text[at] = byte;
          } else {
            text.erase(at, 1);
          }
        }
        Anything anything;
        const bool accepted = nlohmann::json::accept(text);
        RC_ASSERT(ParseJson(text).has_value() == accepted);
        RC_ASSERT(ReadJson(text, anything).has_value() == accepted);
      },
      3000);
}

Value Random(int depth) {
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
      Value::List items;
      const int count = *rc::gen::inRange(0, 4);
      for (int i = 0; i < count; ++i) items.push_back(Random(depth - 1));
      return items;
    }
    default: {
      Value::Map members;
      const int count = *rc::gen::inRange(0, 4);
      for (int i = 0; i < count; ++i) {
        members.emplace_back(*rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)),
                             Random(depth - 1));
      }
      return members;
    }
  }
}

TEST(Value, WhatIsPrintedReadsBackTheSame) {
  testing::Check(
      [] {
        const Value value = Random(3);
        const auto same = ParseJson(ToJson(value));
        RC_ASSERT(same.has_value());
        RC_ASSERT(*same == value);
        const std::string once = ToJsonLine(value);
        const auto again = ParseJson(once);
        RC_ASSERT(again.has_value());
        RC_ASSERT(ToJsonLine(*again) == once);
        const auto pretty = ParseJson(ToPrettyJson(*again));
        RC_ASSERT(pretty.has_value());
        RC_ASSERT(ToJsonLine(*pretty) == once);
      },
      500);
}

}  // namespace
}  // namespace voda
