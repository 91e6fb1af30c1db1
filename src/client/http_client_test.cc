#include "client/http_client.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "client/test_server.h"

namespace voda {
namespace {

using testing::TestServer;
using Request = TestServer::Request;

// A port that nobody listens on: it was ours a moment ago.
std::string DeadUrl() {
  return TestServer([](const TestServer&, const Request&, int) { return false; }).Url();
}

TestServer::Handler Always(const std::string& answer) {
  return [answer](const TestServer&, const Request&, int fd) { return TestServer::Say(fd, answer); };
}

TEST(HttpClient, SendsMethodBodyTokenAndKeepsTheConnection) {
  TestServer server(Always(TestServer::Answer(201, "{\"a\": 1}")));
  HttpClient client({.server = server.Url(), .token = "t0k"});
  const auto posted = client.Send({.method = "POST",
                                   .path = "/api/v1/jobs?x=1",
                                   .body = "kind: Job",
                                   .content_type = "application/yaml",
                                   .headers = {"Idempotency-Key: k1"}});
  ASSERT_TRUE(posted) << posted.error().message;
  EXPECT_EQ(posted->status, 201);
  EXPECT_EQ(posted->body, "{\"a\": 1}");
  EXPECT_EQ(posted->content_type, "application/json");
  ASSERT_TRUE(client.Get("/g"));
  ASSERT_TRUE(client.Put("/p", "[1]"));
  ASSERT_TRUE(client.Patch("/q", "[2]"));
  ASSERT_TRUE(client.Delete("/d"));
  ASSERT_TRUE(client.Post("/empty", ""));
  const auto requests = server.Requests();
  ASSERT_EQ(requests.size(), 6U);
  EXPECT_EQ(requests[0].Line(), "POST /api/v1/jobs?x=1 HTTP/1.1");
  EXPECT_EQ(requests[0].body, "kind: Job");
  EXPECT_TRUE(requests[0].Has("Authorization: Bearer t0k"));
  EXPECT_TRUE(requests[0].Has("Content-Type: application/yaml"));
  EXPECT_TRUE(requests[0].Has("Idempotency-Key: k1"));
  EXPECT_FALSE(requests[0].Has("Expect"));
  EXPECT_EQ(requests[1].Line(), "GET /g HTTP/1.1");
  EXPECT_FALSE(requests[1].Has("Content-Type"));
  EXPECT_EQ(requests[2].Line(), "PUT /p HTTP/1.1");
  EXPECT_EQ(requests[2].body, "[1]");
  EXPECT_EQ(requests[3].Line(), "PATCH /q HTTP/1.1");
  EXPECT_EQ(requests[3].body, "[2]");
  EXPECT_EQ(requests[4].Line(), "DELETE /d HTTP/1.1");
  EXPECT_EQ(requests[5].Line(), "POST /empty HTTP/1.1");
  EXPECT_TRUE(requests[5].Has("Content-Length: 0"));
}

TEST(HttpClient, AnErrorStatusIsAnAnswer) {
  TestServer server(Always(TestServer::Answer(404, "{}")));
  const auto answer = HttpClient({.server = server.Url()}).Get("/");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 404);
}

TEST(HttpClient, ARedirectIsNotFollowed) {
  TestServer other(Always(TestServer::Answer(200, "stolen")));
  TestServer server(
      Always(fmt::format("HTTP/1.1 302 X\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", other.Url())));
  const auto answer = HttpClient({.server = server.Url(), .token = "t"}).Get("/");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 302);
  EXPECT_TRUE(other.Requests().empty());
}

TEST(HttpClient, SaysWhatToDoWhenNobodyListens) {
  const std::string url = DeadUrl();
  const auto answer = HttpClient({.server = url}).Get("/");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "cannot reach " + url +
                ": connection refused; is `voda up` running? start it, or name the server "
                "with --server");
}

TEST(HttpClient, HalfAnAnswerIsAnError) {
  for (const char* half : {"", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
                           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"}) {
    TestServer server([half](const TestServer&, const Request&, int fd) {
      TestServer::Say(fd, half);
      return false;
    });
    const auto answer = HttpClient({.server = server.Url()}).Get("/");
    ASSERT_FALSE(answer) << half;
    EXPECT_NE(answer.error().message.find("closed the connection"), std::string::npos)
        << answer.error().message;
  }
}

TEST(HttpClient, TimeAndSizeAreBounded) {
  TestServer silent([](const TestServer& self, const Request&, int) {
    while (!self.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return false;
  });
  const auto slow = HttpClient({.server = silent.Url(), .timeout_seconds = 0.2}).Get("/");
  ASSERT_FALSE(slow);
  EXPECT_NE(slow.error().message.find("timed out"), std::string::npos) << slow.error().message;

  TestServer large(Always(TestServer::Answer(200, std::string(5000, 'x'))));
  const auto big = HttpClient({.server = large.Url(), .max_answer = 4096}).Get("/");
  ASSERT_FALSE(big);
  EXPECT_NE(big.error().message.find("larger than"), std::string::npos);
  EXPECT_TRUE(HttpClient({.server = large.Url(), .max_answer = 5000}).Get("/"));
}

TEST(HttpClient, SomethingElseThanHttpIsAnError) {
  TestServer server([](const TestServer&, const Request&, int fd) {
    TestServer::Say(fd, "SSH-2.0-OpenSSH\r\n");
    return false;
  });
  EXPECT_FALSE(HttpClient({.server = server.Url()}).Get("/"));
}

TEST(HttpClient, AStreamIsHandedOverAsItComes) {
  std::atomic<bool> got_first = false;
  TestServer server([&](const TestServer& self, const Request&, int fd) {
    TestServer::Say(fd, TestServer::StreamHead() + TestServer::Chunk("one "));
    while (!got_first && !self.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return TestServer::Say(fd, TestServer::Chunk("two") + "0\r\n\r\n");
  });
  HttpClient client({.server = server.Url(), .token = "t"});
  std::string seen;
  bool opened = false;
  StreamOptions options;
  options.on_open = [&] { return opened = true; };
  const auto end = client.Stream("/s", options, [&](std::string_view bytes) {
    EXPECT_TRUE(opened);
    seen += bytes;
    got_first = true;
    return true;
  });
  ASSERT_TRUE(end) << end.error().message;
  EXPECT_EQ(seen, "one two");
  EXPECT_EQ(end->status, 200);
  EXPECT_FALSE(end->by_us);
  EXPECT_TRUE(server.Requests()[0].Has("Bearer t"));
}

// Sends its head and then nothing.
TestServer::Handler Quiet() {
  return [](const TestServer& self, const Request&, int fd) {
    TestServer::Say(fd, TestServer::StreamHead() + TestServer::Chunk("x"));
    while (!self.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return false;
  };
}

TEST(HttpClient, AnotherThreadEndsAStream) {
  TestServer server(Quiet());
  HttpClient client({.server = server.Url()});
  std::thread canceler;
  const auto end = client.Stream("/", {}, [&](std::string_view) {
    canceler = std::thread([&] { client.Cancel(); });
    return true;
  });
  canceler.join();
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->by_us);
  EXPECT_FALSE(client.Get("/"));
  EXPECT_TRUE(client.Stream("/", {}, [](std::string_view) { return true; })->by_us);
}

TEST(HttpClient, StreamsEndByTheCallbackTheClockAndSilence) {
  TestServer server(Quiet());
  HttpClient client({.server = server.Url()});
  const auto stopped = client.Stream("/", {}, [](std::string_view) { return false; });
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(stopped->by_us);
  const auto refused = client.Stream("/", {.on_open = [] { return false; }}, [](std::string_view) {
    ADD_FAILURE() << "data after a stop";
    return true;
  });
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->by_us);
  const auto late = client.Stream("/", {.longest_seconds = 0.3}, [](std::string_view) { return true; });
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_TRUE(late->by_us);
  EXPECT_FALSE(client.Stream("/", {.idle_seconds = 1}, [](std::string_view) { return true; }));
}

TEST(HttpClient, ARefusedStreamHasItsStatusAndBody) {
  TestServer server(Always(TestServer::Answer(429, "{\"error\": 1}")));
  HttpClient client({.server = server.Url()});
  StreamOptions options;
  options.on_open = [] {
    ADD_FAILURE() << "opened";
    return true;
  };
  const auto end = client.Stream("/", options, [](std::string_view) { return true; });
  ASSERT_TRUE(end);
  EXPECT_EQ(end->status, 429);
  EXPECT_EQ(end->body, "{\"error\": 1}");
}

TEST(HttpClient, ALostStreamIsAnError) {
  TestServer server([](const TestServer&, const Request&, int fd) {
    TestServer::Say(fd, TestServer::StreamHead() + TestServer::Chunk("x"));
    return false;  // no end of the chunks
  });
  EXPECT_FALSE(HttpClient({.server = server.Url()}).Stream("/", {}, [](std::string_view) { return true; }));
  EXPECT_FALSE(HttpClient({.server = DeadUrl()}).Stream("/", {}, [](std::string_view) { return true; }));
}

TEST(HttpClient, WhatACallbackThrowsArrives) {
  TestServer server(Quiet());
  HttpClient client({.server = server.Url()});
  EXPECT_THROW(static_cast<void>(client.Stream(
                   "/", {}, [](std::string_view) -> bool { throw std::runtime_error("from the callback"); })),
               std::runtime_error);
  EXPECT_TRUE(client.Stream("/", {}, [](std::string_view) { return false; })) << "still usable";
}

TEST(HttpClient, Urls) {
  EXPECT_EQ(*NormalizeServer("localhost:80"), "http://localhost:80");
  EXPECT_EQ(*NormalizeServer("HTTPS://h:1/"), "https://h:1");
  EXPECT_EQ(*NormalizeServer("h"), "http://h:55587");
  EXPECT_EQ(*NormalizeServer("http://[::1]"), "http://[::1]:55587");
  EXPECT_EQ(*NormalizeServer("http://[::1]:9"), "http://[::1]:9");
  for (const char* bad : {"", "/", "ftp://h", "http://", "http://h:0", "http://h:70000", "http://h:x",
                          "http://h/p", "http://u@h", "http://h h", "http://h:1?x", "http://h\n"}) {
    EXPECT_FALSE(NormalizeServer(bad)) << bad;
  }
  for (const char* local :
       {"http://127.0.0.1:1", "https://localhost:1", "http://[::1]:1", "http://127.8.0.1:1"}) {
    EXPECT_TRUE(IsLoopbackUrl(local)) << local;
  }
  for (const char* remote : {"http://10.0.0.1:1", "http://127.evil.example:1", "http://127.0.0.1.example:1",
                             "http://localhost.example:1", "http://1270.0.1:1"}) {
    EXPECT_FALSE(IsLoopbackUrl(remote)) << remote;
  }
}

}  // namespace
}  // namespace voda
