// Answers without an end: server-sent events, and logs that are followed.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "api/http.h"
#include "api/http_test_client.h"

namespace voda {
namespace {

using testing::Eventually;
using testing::Get;
using testing::RawClient;
using testing::Serve;

std::shared_ptr<const std::string> Shared(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

// Hands every stream to the test.
class Streams {
 public:
  explicit Streams(HttpConfig config = {}) {
    server_ = Serve(std::move(config), [this](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
      HttpResponse head;
      head.content_type = "text/event-stream";
      auto stream = reply->Stream(head);
      const std::lock_guard lock(mutex_);
      streams_.push_back(std::move(stream));
    });
  }
  std::shared_ptr<HttpStream> Take() {
    EXPECT_TRUE(Eventually([&] {
      const std::lock_guard lock(mutex_);
      return !streams_.empty();
    }));
    const std::lock_guard lock(mutex_);
    auto out = streams_.front();
    streams_.erase(streams_.begin());
    return out;
  }
  std::unique_ptr<HttpServer>& server() { return server_; }
  int port() const { return server_->ports().front(); }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<HttpStream>> streams_;
  std::unique_ptr<HttpServer> server_;
};

TEST(HttpStream, SendsWhatComesAndEnds) {
  Streams streams;
  RawClient client(streams.port());
  ASSERT_TRUE(client.Write(Get("/")));
  const auto stream = streams.Take();
  const auto head = client.ReadHead();
  ASSERT_TRUE(head);
  EXPECT_EQ(head->headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(head->headers.at("transfer-encoding"), "chunked");
  EXPECT_FALSE(head->headers.contains("content-length"));
  EXPECT_TRUE(stream->Send(Shared("one")));
  EXPECT_EQ(client.ReadChunk(), "one");
  EXPECT_TRUE(stream->Send(Shared("")));  // an empty chunk would be the end
  EXPECT_TRUE(stream->Send(Shared("two")));
  EXPECT_EQ(client.ReadChunk(), "two");
  EXPECT_TRUE(Eventually([&] { return stream->waiting_bytes() == 0; }));
  EXPECT_TRUE(stream->open());
  stream->Finish("last");
  EXPECT_FALSE(stream->Send(Shared("too late")));
  std::string rest;
  while (const auto chunk = client.ReadChunk()) {
    if (chunk->empty()) break;
    rest += *chunk;
  }
  EXPECT_EQ(rest, "last");
  EXPECT_TRUE(client.AtEnd());
  EXPECT_TRUE(Eventually([&] { return !stream->open(); }));
}

TEST(HttpStream, EndsWhenItIsDropped) {
  Streams streams;
  RawClient client(streams.port());
  ASSERT_TRUE(client.Write(Get("/")));
  auto stream = streams.Take();
  stream->Send(Shared("text"));
  stream.reset();
  const auto response = client.ReadResponse();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "text");
}

TEST(HttpStream, OldClientsGetItPlain) {
  Streams streams;
  RawClient client(streams.port());
  ASSERT_TRUE(client.Write("GET / HTTP/1.0\r\n\r\n"));
  const auto stream = streams.Take();
  stream->Send(Shared("one"));
  stream->Finish("two");
  const auto head = client.ReadHead();
  ASSERT_TRUE(head);
  EXPECT_FALSE(head->headers.contains("transfer-encoding"));
  EXPECT_EQ(client.ReadAll(), "onetwo");
}

TEST(HttpStream, HeadOfAStreamIsAllThereIs) {
  Streams streams;
  RawClient client(streams.port());
  ASSERT_TRUE(client.Write("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"));
  EXPECT_EQ(client.ReadResponse(true)->status, 200);
  const auto stream = streams.Take();
  EXPECT_FALSE(stream->Send(Shared("x")));
  ASSERT_TRUE(client.Write(Get("/")));
  EXPECT_EQ(client.ReadResponse(true)->status, 200);
  EXPECT_TRUE(streams.Take()->open());
}

TEST(HttpStream, ClientsThatGoAreNoticed) {
  Streams streams;
  auto client = std::make_unique<RawClient>(streams.port());
  ASSERT_TRUE(client->Write(Get("/")));
  const auto stream = streams.Take();
  ASSERT_TRUE(client->Write("what a client has no business to send now"));
  ASSERT_TRUE(stream->open());
  client.reset();
  EXPECT_TRUE(Eventually([&] { return !stream->open(); }));
  EXPECT_FALSE(stream->Send(Shared("x")));
  EXPECT_EQ(stream->waiting_bytes(), 0U);
  EXPECT_TRUE(Eventually([&] { return streams.server()->open_connections() == 0; }));
}

TEST(HttpStream, WhoFallsBehindIsToldAndNobodyElseWaits) {
  HttpConfig config;
  config.stream_limit = 100000;
  Streams streams(config);
  RawClient slow(streams.port(), false, 4096);
  ASSERT_TRUE(slow.Write(Get("/slow")));
  const auto slow_stream = streams.Take();
  RawClient fast(streams.port());
  ASSERT_TRUE(fast.Write(Get("/fast")));
  const auto fast_stream = streams.Take();
  ASSERT_TRUE(fast.ReadHead());

  const auto chunk = Shared(std::string(9999, 'x') + "\n");
  std::size_t taken = 0;
  while (slow_stream->Send(chunk)) {
    ASSERT_LE(slow_stream->waiting_bytes(), config.stream_limit);
    ASSERT_LT(++taken, 100000U);  // the system buffers some megabytes
    ASSERT_TRUE(fast_stream->Send(chunk));
    std::string got;
    while (got.size() < chunk->size()) {
      const auto part = fast.ReadChunk();
      ASSERT_TRUE(part);
      got += *part;
    }
  }
  EXPECT_TRUE(slow_stream->open());
  slow_stream->Finish("lagged");
  const auto response = slow.ReadResponse();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body.size(), taken * chunk->size() + 6);
  EXPECT_TRUE(response->body.ends_with("\nlagged"));
}

TEST(HttpStream, ABacklogDoesNotCount) {
  HttpConfig config;
  config.stream_limit = 1000;
  Streams streams(config);
  RawClient client(streams.port());
  ASSERT_TRUE(client.Write(Get("/")));
  const auto stream = streams.Take();
  std::string want;
  std::vector<std::shared_ptr<const std::string>> backlog;
  for (int i = 0; i < 20000; ++i) {
    backlog.push_back(Shared("event " + std::to_string(i) + "\n"));
    want += *backlog.back();
  }
  stream->SendBacklog(backlog);
  EXPECT_TRUE(stream->Send(Shared("live\n")));
  stream->Finish("");
  EXPECT_EQ(client.ReadResponse()->body, want + "live\n");
}

TEST(HttpStream, SlowStreamsTimeOut) {
  HttpConfig config;
  config.write_seconds = 0.3;
  config.stream_limit = std::size_t{64} << 20;
  Streams streams(config);
  RawClient client(streams.port(), false, 4096);
  ASSERT_TRUE(client.Write(Get("/")));
  const auto stream = streams.Take();
  ASSERT_TRUE(stream->Send(Shared(std::string(std::size_t{32} << 20, 'x'))));
  EXPECT_TRUE(Eventually([&] { return !stream->open(); }));
}

TEST(HttpStream, HundredsAtOnceAreCompleteAndInOrder) {
  constexpr int kStreams = 200;
  constexpr int kEvents = 500;
  Streams streams;
  std::vector<RawClient> clients;
  std::vector<std::shared_ptr<HttpStream>> open;
  for (int i = 0; i < kStreams; ++i) {
    clients.emplace_back(streams.port());
    ASSERT_TRUE(clients.back().connected());
    ASSERT_TRUE(clients.back().Write(Get("/")));
  }
  for (int i = 0; i < kStreams; ++i) open.push_back(streams.Take());
  std::string want;
  std::thread publisher([&] {
    for (int e = 0; e < kEvents; ++e) {
      const auto text = Shared("data: " + std::to_string(e) + "\n\n");
      for (const auto& stream : open) stream->Send(text);
    }
    for (const auto& stream : open) stream->Finish("end");
  });
  for (int e = 0; e < kEvents; ++e) want += "data: " + std::to_string(e) + "\n\n";
  want += "end";
  int right = 0;
  for (RawClient& client : clients) {
    const auto response = client.ReadResponse();
    if (response && response->body == want) ++right;
  }
  publisher.join();
  EXPECT_EQ(right, kStreams);
}

TEST(HttpStream, TheServerGoesAtOnceWhateverIsOpen) {
  Streams streams;
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.emplace_back(streams.port());
    const std::string text = i % 3 == 0   ? Get("/")
                             : i % 3 == 1 ? "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50\r\n\r\nx"
                                          : "";
    ASSERT_TRUE(clients.back().Write(text));
  }
  ASSERT_TRUE(Eventually([&] { return streams.server()->open_connections() == 50; }));
  const auto stream = streams.Take();
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop) stream->Send(Shared("x"));
  });
  const auto begin = std::chrono::steady_clock::now();
  streams.server().reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::kPatience);
  stop = true;
  sender.join();
  for (RawClient& client : clients) client.ReadAll();
}

TEST(HttpStream, RepliesAndStreamsOutliveTheServer) {
  std::shared_ptr<HttpReply> reply;
  std::shared_ptr<HttpStream> stream;
  std::atomic<int> asked = 0;
  auto server = Serve({}, [&](const HttpRequest& request, std::shared_ptr<HttpReply> given) {
    if (request.path == "/stream") {
      stream = given->Stream({});
    } else {
      reply = std::move(given);
    }
    ++asked;
  });
  RawClient first(server->ports().front());
  RawClient second(server->ports().front());
  ASSERT_TRUE(first.Write(Get("/")));
  ASSERT_TRUE(second.Write(Get("/stream")));
  ASSERT_TRUE(Eventually([&] { return asked == 2; }));
  ASSERT_TRUE(stream->open());
  server.reset();
  EXPECT_FALSE(stream->open());
  EXPECT_FALSE(stream->Send(Shared("x")));
  stream->Finish("x");
  EXPECT_FALSE(reply->Stream({})->Send(Shared("x")));
  reply.reset();
  stream.reset();
  EXPECT_FALSE(first.ReadResponse());
}

}  // namespace
}  // namespace voda
