#include "kube/watch_parser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "support/check.h"

namespace voda::kube {
namespace {

struct Seen {
  std::vector<std::string> events;
  std::string error;
  friend bool operator==(const Seen&, const Seen&) = default;
};

std::string Line(std::string_view type, int version, std::string_view more = {}) {
  return fmt::format(
      R"({{"type":"{}","object":{{"kind":"Pod","metadata":{{"name":"p{}","namespace":"ns","uid":"u","resourceVersion":"{}"}}{}}}}})"
      "\n",
      type, version, version, more);
}

Seen Parse(const std::vector<std::string>& pieces, std::size_t limit = 1 << 20) {
  Seen seen;
  WatchParser parser(
      [&](const WatchEvent& event) {
        seen.events.push_back(fmt::format("{} {}/{} {} {} {}", static_cast<int>(event.type),
                                          event.head.name_space, event.head.name, event.head.uid,
                                          event.head.resource_version, event.object.Compact()));
        return true;
      },
      limit);
  for (const std::string& piece : pieces) {
    if (const Status fed = parser.Feed(piece); !fed) {
      seen.error = fed.error().message;
      break;
    }
  }
  return seen;
}

TEST(WatchParser, ReadsEventsOfEveryType) {
  const Seen seen = Parse({Line("ADDED", 1) + Line("MODIFIED", 2) + "\n\r\n" + Line("DELETED", 3) +
                           R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})"
                           "\n"
                           R"({"type":"ERROR","object":{"kind":"Status","code":410}})"
                           "\n"});
  ASSERT_EQ(seen.events.size(), 5U) << seen.error;
  EXPECT_EQ(seen.events[0].substr(0, 12), "0 ns/p1 u 1 ");
  EXPECT_EQ(seen.events[3].substr(0, 7), "3 /  9 ");
  EXPECT_EQ(seen.events[4], R"(4 /   {"kind":"Status","code":410})");
}

TEST(WatchParser, TakesFieldsInAnyOrderAndEscapes) {
  const Seen seen =
      Parse({R"( { "object" : {"spec":{"metadata":{"name":"no"}}, "metadata":{"labels":{"name":"no"},)"
             R"("resourceVersion":"5","uid":"u","name":"a\u0062\"c"} } , "type" : "ADDED" } )"
             "\r\n"});
  ASSERT_EQ(seen.events.size(), 1U) << seen.error;
  EXPECT_EQ(seen.events[0].substr(0, 13), "0 /ab\"c u 5 {");
  EXPECT_EQ(seen.events[0].back(), '}');
}

TEST(WatchParser, RefusesWhatIsNoEvent) {
  for (const char* line :
       {"x", "{", "[]", "{}", "null", "\"a\"", R"({"type":"ADDED"})", R"({"type":"ADDED","object":1})",
        R"({"type":"OTHER","object":{"metadata":{}}})", R"({"type":"ADDED","object":{}})",
        R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})", "\xff\xfe",
        R"({"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"1"})",
        R"({"type":5,"object":{}})", R"({"type":"ADDED","object":{"metadata":[]}})"}) {
    const Seen seen = Parse({std::string(line) + "\n"});
    EXPECT_TRUE(seen.events.empty()) << line;
    EXPECT_NE(seen.error, "") << line;
  }
}

TEST(WatchParser, ALineHasALimit) {
  const std::string line = Line("ADDED", 1, R"(,"x":")" + std::string(1000, 'y') + '"');
  EXPECT_EQ(Parse({line}, line.size()).events.size(), 1U);
  EXPECT_NE(Parse({line}, line.size() - 2).error, "");
  // This also holds without a line break, and before the line is complete.
  EXPECT_NE(Parse({std::string(600, 'x'), std::string(600, 'x')}, 1000).error, "");
}

TEST(WatchParser, StopsWhereItIsTold) {
  int events = 0;
  WatchParser parser([&](const WatchEvent&) { return ++events < 2; });
  EXPECT_TRUE(parser.Feed(Line("ADDED", 1) + Line("ADDED", 2) + Line("ADDED", 3)));
  EXPECT_EQ(events, 2);
  EXPECT_TRUE(parser.stopped());
}

TEST(WatchParser, AnyChunkingGivesTheSameEvents) {
  voda::testing::Check(
      [] {
        std::string stream;
        const int lines = *rc::gen::inRange(0, 12);
        for (int i = 0; i < lines; ++i) {
          switch (*rc::gen::inRange(0, 8)) {
            case 0:
              stream += "\n";
              break;
            case 1:
              stream += R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}})"
                        "\r\n";
              break;
            case 2:
              if (*rc::gen::inRange(0, 4) == 0) stream += "rubbish\n";
              break;
            default:
              stream += Line("MODIFIED", i, R"(,"text":"\n é \" }{ ")");
          }
        }
        if (*rc::gen::arbitrary<bool>()) stream += "{\"type\":";
        std::vector<std::string> pieces;
        for (std::size_t at = 0; at < stream.size();) {
          const auto size = *rc::gen::element<std::size_t>(1, 2, 3, 17, 64, 200, 5000);
          pieces.push_back(stream.substr(at, size));
          at += size;
        }
        RC_ASSERT(Parse(pieces) == Parse({stream}));
      },
      500);
}

Result<ListHead> List(std::string text, const std::function<Status(const JsonView&)>& on_item) {
  AddPadding(text);
  return ReadList(text, on_item);
}

TEST(ReadList, ReadsListsWithTheirItems) {
  std::vector<std::string> names;
  std::string text = R"({"kind":"PodList","metadata":{"resourceVersion":"8","continue":"c+/="},"items":[)"
                     R"({"metadata":{"name":"a"}} , {"metadata":{"name":"b","uid":"u"},"spec":[{}]}]})";
  const auto list = List(text, [&](const JsonView& item) -> Status {
    const auto head = ReadHead(item);
    if (!head) return head.error();
    names.push_back(head->name);
    return Ok{};
  });
  ASSERT_TRUE(list) << list.error().message;
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(list->resource_version, "8");
  EXPECT_EQ(list->continue_token, "c+/=");
  EXPECT_EQ(list->items, 2U);
}

TEST(ReadList, AListMayBeEmptyOrNull) {
  for (const char* text : {R"({"items":[],"metadata":{"resourceVersion":"1"}})",
                           R"({"items":null,"metadata":{"resourceVersion":"1"}})"}) {
    const auto list = List(text, [](const JsonView&) -> Status { return Ok{}; });
    ASSERT_TRUE(list) << list.error().message;
    EXPECT_EQ(list->resource_version, "1");
  }
}

TEST(ReadList, RefusesWhatIsNoList) {
  for (const char* text : {"", "{", "[]", "{}", R"({"items":5})", R"({"items":nd})", R"({"items":nul})",
                           R"({"items":[1]})", R"({"items":[{}],"metadata":3})", R"({"items":[{"a":1})",
                           R"({"items":[{x":{"a":1}},{"m}]})", "<html>"}) {
    const auto list = List(text, [](const JsonView&) -> Status { return Ok{}; });
    EXPECT_FALSE(list) << text;
  }
  int items = 0;
  const auto refused = List(R"({"items":[{"a":1},{"b":2}]})", [&](const JsonView&) -> Status {
    ++items;
    return Error{"no thanks"};
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no thanks");
  EXPECT_EQ(items, 1);
}

}  // namespace
}  // namespace voda::kube
