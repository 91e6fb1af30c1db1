#include "api/http_parser.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/check.h"

namespace voda {
namespace {

using State = HttpRequestParser::State;

struct Outcome {
  State state = State::kHeader;
  int status = 0;
  std::string method, path, body, left;
  std::map<std::string, std::string, std::less<>> headers;
  bool keep_alive = false;
  bool operator==(const Outcome&) const = default;
};

// Parses as a connection does, with the text in pieces that end at `cuts`.
Outcome Parse(const HttpConfig& config, std::string_view text, std::vector<std::size_t> cuts = {}) {
  HttpRequestParser parser(config, 1);
  std::string buffer;
  cuts.push_back(text.size());
  std::sort(cuts.begin(), cuts.end());
  std::size_t fed = 0;
  const auto ended = [&] { return parser.state() == State::kDone || parser.state() == State::kFailed; };
  for (const std::size_t cut : cuts) {
    if (cut > text.size()) break;
    buffer += text.substr(fed, cut - fed);
    fed = cut;
    while (!ended()) {
      const State before = parser.state();
      const std::vector<char> exact(buffer.begin(),
                                    buffer.end());  // so that the sanitizer sees a read too far
      const std::size_t used = parser.Put(std::string_view(exact.data(), exact.size()));
      buffer.erase(0, used);
      if (parser.state() == before && (used == 0 || buffer.empty())) break;
    }
  }
  Outcome out;
  out.state = parser.state();
  out.status = out.state == State::kFailed ? parser.failure().status : 0;
  if (out.state == State::kDone) {
    out.method = parser.request().method;
    out.path = parser.request().path;
    out.body = parser.request().body;
    out.headers = parser.request().headers;
    out.keep_alive = parser.head().keep_alive;
    out.left = buffer + std::string(text.substr(fed));
  }
  return out;
}

TEST(HttpParser, ReadsARequest) {
  const Outcome out = Parse({},
                            "POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a:  2 \r\nContent-Length: "
                            "3\r\n\r\nabcGET /");
  EXPECT_EQ(out.state, State::kDone);
  EXPECT_EQ(out.method, "POST");
  EXPECT_EQ(out.path, "/a b");
  EXPECT_EQ(out.body, "abc");
  EXPECT_EQ(out.left, "GET /");
  EXPECT_EQ(out.headers.at("x-a"), "1, 2");
  EXPECT_TRUE(out.keep_alive);
}

TEST(HttpParser, TrailersReplaceNothing) {
  const Outcome out = Parse({},
                            "POST /a HTTP/1.1\r\nHost: h\r\nAuthorization: none\r\nTransfer-Encoding: "
                            "chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nAuthorization: "
                            "Bearer t\r\nX-New: 1\r\n\r\nnext");
  EXPECT_EQ(out.state, State::kDone);
  EXPECT_EQ(out.body, "abcde");
  EXPECT_EQ(out.headers.at("authorization"), "none");
  EXPECT_FALSE(out.headers.contains("x-new"));
  EXPECT_EQ(out.left, "next");
}

struct Wrong {
  const char* text;
  int status;
};

TEST(HttpParser, RefusesWhatIsWrong) {
  const Wrong cases[] = {
      {"\x16\x03\x01\x02\x00\x01", 400},
      {"GET\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: h\n\n", 400},
      {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n", 417},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n", 413},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n", 413},
  };
  for (const Wrong& wrong : cases) {
    const Outcome out = Parse({}, wrong.text);
    EXPECT_EQ(out.state, State::kFailed) << wrong.text;
    EXPECT_EQ(out.status, wrong.status) << wrong.text;
  }
}

TEST(HttpParser, LimitsHold) {
  HttpConfig config;
  config.body_limit = 10;
  config.body_limits["/big"] = 20;
  config.header_limit = 512;
  const auto post = [](std::string_view path, std::size_t size) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(size) +
           "\r\n\r\n" + std::string(size, 'x');
  };
  EXPECT_EQ(Parse(config, post("/", 10)).state, State::kDone);
  EXPECT_EQ(Parse(config, post("/", 11)).status, 413);
  EXPECT_EQ(Parse(config, post("/big", 20)).state, State::kDone);
  EXPECT_EQ(Parse(config, post("/big", 21)).status, 413);
  EXPECT_EQ(Parse(config, post("/big/x", 11)).status, 413);

  const auto head = [](std::size_t field) {
    return "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(field, 'x') + "\r\n\r\n";
  };
  const std::size_t fixed = head(0).size();
  EXPECT_EQ(Parse(config, head(512 - fixed)).state, State::kDone);
  EXPECT_EQ(Parse(config, head(513 - fixed)).status, 431);
  EXPECT_EQ(Parse(config, "GET /" + std::string(600, 'x')).status, 431);
  // Many short lines come one by one.
  std::string lines = "GET / HTTP/1.1\r\nHost: h\r\n";
  std::vector<std::size_t> cuts;
  for (int i = 0; i < 100; ++i) {
    cuts.push_back(lines.size());
    lines += "A: b\r\n";
  }
  EXPECT_EQ(Parse(config, lines, cuts).status, 431);
  // The line of a chunk, and a trailer, never end.
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(Parse(config, chunked + "1;" + std::string(2000, 'x')).status, 431);
  EXPECT_EQ(Parse(config, chunked + "0\r\nX: " + std::string(2000, 'x')).status, 431);
}

// A large body that moves to a larger place would need twice its memory.
TEST(HttpParser, ABodyOfKnownLengthDoesNotMove) {
  HttpConfig config;
  config.body_limit = std::size_t{8} << 20;
  const std::string body(config.body_limit, 'x');
  HttpRequestParser parser(config, 1);
  const std::string head =
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  EXPECT_EQ(parser.Put(head), head.size());
  EXPECT_EQ(parser.state(), State::kHead);
  EXPECT_EQ(parser.request().body.capacity(), std::string().capacity());  // nothing before it is accepted
  EXPECT_EQ(parser.Put(std::string_view(body).substr(0, 1)), 1U);
  const char* const place = parser.request().body.data();
  EXPECT_EQ(parser.Put(std::string_view(body).substr(1)), body.size() - 1);
  EXPECT_EQ(parser.state(), State::kDone);
  EXPECT_EQ(parser.request().body.data(), place);
  EXPECT_TRUE(parser.request().body == body);
}

TEST(HttpParser, ConnectionAndVersions) {
  EXPECT_FALSE(Parse({}, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").keep_alive);
  EXPECT_FALSE(Parse({}, "GET / HTTP/1.0\r\n\r\n").keep_alive);
  EXPECT_TRUE(Parse({}, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
  EXPECT_EQ(Parse({}, "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n").method, "GET");
}

// Where a request is cut into packets makes no difference.
TEST(HttpParser, CutsDoNotMatter) {
  const std::string chunked = "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::vector<std::string> requests = {
      "GET /a%20b?x=1&y=2 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\n\r\n",
      "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 12\r\n\r\nhello world!",
      chunked + "5;a=\"b\"\r\nhello\r\n1\r\n!\r\n0\r\nT: v\r\n\r\n",
      chunked + "0\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
  };
  testing::Check([&] {
    const std::string text = *rc::gen::elementOf(requests);
    const auto cuts =
        *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, text.size()));
    RC_ASSERT(Parse({}, text, cuts) == Parse({}, text));
  });
}

// Rubbish, and requests with changed bytes, give an end or a wait for more, never a crash.
TEST(HttpParser, SurvivesRubbish) {
  HttpConfig config;
  config.header_limit = 1024;
  config.body_limit = 64;
  const std::string seed =
      "POST /c?x=%41 HTTP/1.1\r\nHost: h\r\nConnection: close, x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n"
      "1\r\n!\r\n0\r\nT: v\r\n\r\n";
  testing::Check(
      [&] {
        std::string text = seed;
        const int changes = *rc::gen::inRange(0, 8);
        for (int i = 0; i < changes; ++i) {
          const std::size_t at = *rc::gen::inRange<std::size_t>(0, text.size());
          switch (*rc::gen::inRange(0, 3)) {
            case 0:
              text[at] = *rc::gen::arbitrary<char>();
              break;
            case 1:
              text.erase(at, *rc::gen::inRange<std::size_t>(1, 9));
              break;
            default:
              text.insert(
                  at, *rc::gen::element<std::string>("\r\n", "\r\n\r\n", "0", " ", ":", "\t", "\r\n x", "f"));
          }
          if (text.empty()) break;
        }
        const auto cuts =
            *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 200));
        const Outcome out = Parse(config, text, cuts);
        RC_ASSERT(out.body.size() <= 64U);
      },
      5000);
}

}  // namespace
}  // namespace voda
