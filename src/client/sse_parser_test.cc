#include "client/sse_parser.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

#include "support/check.h"

namespace voda {
namespace {

struct Seen {
  std::vector<std::string> events;
  SseParser parser{
      [this](const SseEvent& event) { events.push_back(event.id + "|" + event.type + "|" + event.data); },
      1000};
};

std::vector<std::string> Events(std::string_view text) {
  Seen seen;
  EXPECT_TRUE(seen.parser.Feed(text));
  return seen.events;
}

using Texts = std::vector<std::string>;

TEST(SseParser, ReadsEventsAsTheStandardSays) {
  EXPECT_EQ(Events("id: 1\nevent: round\ndata: {}\n\n"), Texts{"1|round|{}"});
  EXPECT_EQ(Events("data: a\ndata: b\n\n"), Texts{"|message|a\nb"});
  EXPECT_EQ(Events("data:a\r\rdata: b\r\n\r\n"), (Texts{"|message|a", "|message|b"}));
  EXPECT_EQ(Events(": comment\n\nevent: x\n\ndata\n\n"), Texts{"|message|"});  // no data, no event
  EXPECT_EQ(Events("\xEF\xBB\xBF"
                   "data: a\n\n"),
            Texts{"|message|a"});
  EXPECT_EQ(Events("id: 7\ndata: a\n\ndata: b\n\n"), (Texts{"7|message|a", "7|message|b"}));
  EXPECT_EQ(Events("retry: 5\nfoo: bar\ndata:  two spaces\n\n"), Texts{"|message| two spaces"});
  EXPECT_EQ(Events("data: not finished\n"), Texts{});
}

TEST(SseParser, TheChunkingDoesNotMatter) {
  const std::string text =
      "id: 1\r\nevent: a\r\ndata: x: y\r\n\r\n: c\n\nid: 2\ndata: 1\ndata: 2\n\n\rdata: z\r\r\nevent: "
      "q\ndata:\n\n";
  const Texts whole = Events(text);
  ASSERT_EQ(whole.size(), 4U);
  testing::Check(
      [&] {
        Seen seen;
        std::string_view rest = text;
        while (!rest.empty()) {
          const std::size_t size = *rc::gen::inRange<int>(1, 9);
          RC_ASSERT(seen.parser.Feed(rest.substr(0, size)).has_value());
          rest.remove_prefix(std::min(size, rest.size()));
        }
        RC_ASSERT(seen.events == whole);
      },
      300);
}

TEST(SseParser, AnEventIsBounded) {
  Seen line;
  EXPECT_FALSE(line.parser.Feed("data: " + std::string(2000, 'x')));
  Seen lines;
  Status last = Ok{};
  for (int i = 0; i < 200 && last; ++i) last = lines.parser.Feed("data: 1234567890\n");
  EXPECT_FALSE(last);
  Seen fine;
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(fine.parser.Feed("data: 1234567890\n\n"));
}

}  // namespace
}  // namespace voda
