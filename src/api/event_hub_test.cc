#include "api/event_hub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "api/http_test_client.h"
#include "support/check.h"

namespace voda {
namespace {

// A client in memory, with the limit of a real one.
class MemoryStream : public HttpStream {
 public:
  explicit MemoryStream(std::size_t limit = std::numeric_limits<std::size_t>::max()) : limit_(limit) {}

  bool Send(std::shared_ptr<const std::string> chunk) override {
    const std::lock_guard lock(mutex_);
    if (!open_ || finished_ || waiting_ + chunk->size() > limit_) return false;
    waiting_ += chunk->size();
    text_ += *chunk;
    return true;
  }
  void SendBacklog(std::vector<std::shared_ptr<const std::string>> chunks) override {
    const std::lock_guard lock(mutex_);
    for (const auto& chunk : chunks) text_ += *chunk;
  }
  void Finish(std::string last) override {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(finished_, true)) text_ += last;
  }
  bool open() const override { return open_; }
  std::size_t waiting_bytes() const override { return waiting_; }

  void Hang() { open_ = false; }
  bool finished() const {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }
  // The numbers of the events; 0 for `lagged`.
  std::vector<std::uint64_t> seqs() const {
    std::vector<std::uint64_t> out;
    const std::string all = text();
    for (std::size_t at = 0; (at = all.find("event: ", at)) != std::string::npos; ++at) {
      const std::size_t line = all.rfind("\n\n", at) == std::string::npos ? 0 : all.rfind("\n\n", at) + 2;
      const bool numbered = all.compare(line, 4, "id: ") == 0;
      out.push_back(numbered ? std::strtoull(all.c_str() + line + 4, nullptr, 10) : 0);
    }
    return out;
  }

 private:
  const std::size_t limit_;
  mutable std::mutex mutex_;
  std::atomic<bool> open_ = true;
  std::atomic<std::size_t> waiting_ = 0;
  bool finished_ = false;
  std::string text_;
};

using Seqs = std::vector<std::uint64_t>;

TEST(EventHub, WritesEventsAsTheStandardWants) {
  EventHub hub({.first_seq = 7});
  const auto stream = std::make_shared<MemoryStream>();
  ASSERT_TRUE(hub.Subscribe(stream, "", std::nullopt));
  EXPECT_EQ(hub.Publish("job.resized", "a\"b", "\"from\": 1,\n\"to\": 2"), 7U);
  EXPECT_EQ(hub.Publish("round", "", ""), 8U);
  EXPECT_EQ(stream->text(),
            ": now 6\n\n"
            "id: 7\nevent: job.resized\ndata: {\"seq\":7,\"type\":\"job.resized\",\"job\":\"a\\\"b\","
            "\"from\": 1, \"to\": 2}\n\n"
            "id: 8\nevent: round\ndata: {\"seq\":8,\"type\":\"round\"}\n\n");
  EXPECT_EQ(hub.last_seq(), 8U);
}

TEST(EventHub, FiltersByJob) {
  EventHub hub({});
  const auto all = std::make_shared<MemoryStream>();
  const auto of_a = std::make_shared<MemoryStream>();
  const auto of_b = std::make_shared<MemoryStream>();
  hub.Subscribe(all, "", std::nullopt);
  hub.Subscribe(of_a, "a", std::nullopt);
  hub.Subscribe(of_b, "b", std::nullopt);
  for (const char* job : {"a", "b", "", "a", "c"}) hub.Publish("x", job, "");
  EXPECT_EQ(all->seqs(), (Seqs{1, 2, 3, 4, 5}));
  EXPECT_EQ(of_a->seqs(), (Seqs{1, 4}));
  EXPECT_EQ(of_b->seqs(), (Seqs{2}));
}

TEST(EventHub, GoesOnAfterAnEvent) {
  EventHub hub({.first_seq = 101, .keep_events = 5});
  for (int i = 0; i < 8; ++i) hub.Publish("x", i % 2 == 0 ? "a" : "b", "");  // 101 to 108, 104 to 108 kept
  const auto ask = [&](std::string_view job, std::optional<std::uint64_t> after) {
    auto stream = std::make_shared<MemoryStream>();
    EXPECT_TRUE(hub.Subscribe(stream, job, after));
    return stream;
  };
  EXPECT_EQ(ask("", 103)->seqs(), (Seqs{104, 105, 106, 107, 108}));
  EXPECT_EQ(ask("", 106)->seqs(), (Seqs{107, 108}));
  EXPECT_EQ(ask("a", 104)->seqs(), (Seqs{105, 107}));
  EXPECT_EQ(ask("", 108)->seqs(), Seqs{});
  EXPECT_FALSE(ask("", 108)->finished());
  for (const std::uint64_t gone :
       {std::uint64_t{102}, std::uint64_t{0}, std::uint64_t{109}, ~std::uint64_t{0}}) {
    const auto stream = ask("", gone);
    EXPECT_TRUE(stream->finished());
    EXPECT_EQ(stream->text(), "event: lagged\ndata: {\"last\":" + std::to_string(gone) + ",\"now\":108}\n\n");
  }
  EXPECT_EQ(hub.counters().lagged, 4U);
  EXPECT_EQ(hub.counters().open, 5U);
}

TEST(EventHub, AfterARestartOnlyTheLastNumberGoesOn) {
  EventHub hub({.first_seq = 50});
  const auto exact = std::make_shared<MemoryStream>();
  const auto older = std::make_shared<MemoryStream>();
  hub.Subscribe(exact, "", 49);
  hub.Subscribe(older, "", 48);
  hub.Publish("x", "", "");
  EXPECT_EQ(exact->seqs(), (Seqs{50}));
  EXPECT_EQ(older->seqs(), (Seqs{0}));
}

TEST(EventHub, BytesAreBoundedToo) {
  EventHub hub({.keep_events = 1000, .keep_bytes = 10000});
  for (int i = 0; i < 100; ++i) hub.Publish("x", "", "\"pad\": \"" + std::string(1000, 'x') + "\"");
  const auto kept = std::make_shared<MemoryStream>();
  const auto gone = std::make_shared<MemoryStream>();
  hub.Subscribe(kept, "", 95);
  hub.Subscribe(gone, "", 80);
  EXPECT_EQ(kept->seqs(), (Seqs{96, 97, 98, 99, 100}));
  EXPECT_EQ(gone->seqs(), (Seqs{0}));
}

TEST(EventHub, WhoFallsBehindIsToldWhatItHad) {
  EventHub hub({});
  const auto slow = std::make_shared<MemoryStream>(200);
  const auto fast = std::make_shared<MemoryStream>();
  hub.Subscribe(slow, "", std::nullopt);
  hub.Subscribe(fast, "", std::nullopt);
  for (int i = 0; i < 20; ++i) hub.Publish("x", "", "");
  EXPECT_TRUE(slow->finished());
  const Seqs seqs = slow->seqs();
  ASSERT_GE(seqs.size(), 2U);
  EXPECT_EQ(seqs.back(), 0U);
  const std::uint64_t had = seqs[seqs.size() - 2];
  EXPECT_NE(slow->text().find("event: lagged\ndata: {\"last\":" + std::to_string(had) + ","),
            std::string::npos);
  EXPECT_EQ(fast->seqs().size(), 20U);
  EXPECT_EQ(hub.counters().open, 1U);
  EXPECT_EQ(hub.counters().lagged, 1U);
  EXPECT_EQ(hub.counters().published, 20U);
}

TEST(EventHub, BeatsAndForgets) {
  EventHub hub({.streams = 3});
  std::vector<std::shared_ptr<MemoryStream>> streams;
  for (const char* job : {"", "a", "b"}) {
    streams.push_back(std::make_shared<MemoryStream>());
    EXPECT_FALSE(hub.Full());
    ASSERT_TRUE(hub.Subscribe(streams.back(), job, std::nullopt));
  }
  EXPECT_TRUE(hub.Full());
  const auto fourth = std::make_shared<MemoryStream>();
  EXPECT_FALSE(hub.Subscribe(fourth, "a", std::nullopt));
  EXPECT_EQ(fourth->text(), "");
  EXPECT_FALSE(fourth->finished());
  hub.Beat();
  for (const auto& stream : streams)
    EXPECT_TRUE(stream->text().ends_with("\n\n: alive\n\n")) << stream->text();
  EXPECT_EQ(hub.counters().open, 3U);

  streams[1]->Hang();
  EXPECT_TRUE(hub.Subscribe(fourth, "a", std::nullopt));  // room was made
  streams[0]->Hang();
  EXPECT_EQ(hub.counters().open, 3U);
  hub.Beat();
  EXPECT_EQ(hub.counters().open, 2U);
  streams[2]->Hang();
  hub.Publish("x", "b", "");
  EXPECT_EQ(hub.counters().open, 1U);
  EXPECT_EQ(hub.counters().lagged, 0U);
}

TEST(EventHub, AStreamOfANamespaceHasItsJobsAlone) {
  EventHub hub({.first_seq = 1});
  hub.Publish("x", "team-a/old", "");
  hub.Publish("x", "team-ab/old", "");
  const auto stream = std::make_shared<MemoryStream>();
  ASSERT_TRUE(hub.Subscribe(stream, "team-a/", 0));
  for (const char* job : {"team-a/new", "team-b/new", "team-ab/new", "", "team-a"}) hub.Publish("x", job, "");
  EXPECT_EQ(stream->seqs(), (Seqs{1, 3})) << stream->text();
}

// From wherever a client begins, it gets every later event of its job once and in order.
TEST(EventHub, NoGapAndNothingTwiceWhileOthersPublish) {
  testing::Check(
      [] {
        const auto events = *rc::gen::inRange<std::uint64_t>(50, 400);
        const auto keep = *rc::gen::inRange<std::size_t>(1, 300);
        const auto first = *rc::gen::inRange<std::uint64_t>(1, 1000);
        EventHub hub({.first_seq = first, .keep_events = keep});
        const auto job_of = [](std::uint64_t seq) { return seq % 3 == 0 ? "a" : seq % 3 == 1 ? "b" : ""; };
        std::thread publisher([&] {
          for (std::uint64_t seq = first; seq < first + events; ++seq) hub.Publish("x", job_of(seq), "");
        });
        struct Client {
          std::string job;
          std::optional<std::uint64_t> after;
          std::shared_ptr<MemoryStream> stream = std::make_shared<MemoryStream>();
        };
        std::vector<Client> clients;
        for (int i = 0; i < 30; ++i) {
          Client client;
          client.job = i % 3 == 0 ? "" : i % 3 == 1 ? "a" : "b";
          const std::uint64_t last = hub.last_seq();
          if (i % 2 == 0) client.after = last - std::min<std::uint64_t>(static_cast<std::uint64_t>(i), last);
          RC_ASSERT(hub.Subscribe(client.stream, client.job, client.after));
          clients.push_back(client);
        }
        publisher.join();
        for (const Client& client : clients) {
          const Seqs got = client.stream->seqs();
          if (client.stream->finished()) {
            RC_ASSERT(got == Seqs{0});
            RC_ASSERT(client.after.has_value());
            continue;
          }
          std::uint64_t from = first + events;
          if (client.after.has_value()) {
            from = *client.after + 1;
          } else {
            from = std::strtoull(client.stream->text().c_str() + 6, nullptr, 10) + 1;  // ": now N"
          }
          Seqs want;
          for (std::uint64_t seq = from; seq < first + events; ++seq) {
            if (client.job.empty() || client.job == job_of(seq)) want.push_back(seq);
          }
          RC_ASSERT(got == want);
        }
      },
      60);
}

// The hub on the real server: clients that come, stay, go and come back.
TEST(EventHub, OverRealConnections) {
  EventHub hub({});
  auto server = HttpServer::Listen({.listeners = {{"127.0.0.1", 0}}});
  ASSERT_TRUE(server);
  (*server)->Run([&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    const auto job = request.query.find("job");
    const auto after = request.query.find("after");
    std::optional<std::uint64_t> from;
    if (after != request.query.end()) from = std::strtoull(after->second.c_str(), nullptr, 10);
    hub.Subscribe(reply->Stream({}), job == request.query.end() ? "" : job->second, from);
  });
  const int port = (*server)->ports().front();
  constexpr int kEvents = 3000;
  std::thread publisher([&] {
    for (int i = 0; i < kEvents; ++i) {
      hub.Publish("x", "j" + std::to_string(i % 50), "\"i\": " + std::to_string(i));
      if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    hub.Publish("end", "", "");
    for (int i = 0; i < 50; ++i) hub.Publish("end", "j" + std::to_string(i), "");
  });
  std::vector<testing::RawClient> clients;
  for (int i = 0; i < 60; ++i) {
    clients.emplace_back(port);
    const std::string query = i < 10 ? "?after=0" : "?after=0&job=j" + std::to_string(i - 10);
    ASSERT_TRUE(clients.back().Write(testing::Get("/" + query)));
  }
  for (testing::RawClient& client : clients) {
    ASSERT_TRUE(client.ReadHead());
    std::string text;
    while (text.find("event: end\n") == std::string::npos) {
      const auto chunk = client.ReadChunk();
      ASSERT_TRUE(chunk && !chunk->empty());
      text += *chunk;
    }
    std::uint64_t last = 0;
    int count = 0;
    for (std::size_t at = 0; (at = text.find("id: ", at)) != std::string::npos; ++at) {
      const std::uint64_t seq = std::strtoull(text.c_str() + at + 4, nullptr, 10);
      EXPECT_GT(seq, last);
      last = seq;
      if (seq <= kEvents) ++count;
    }
    EXPECT_EQ(count, &client < &clients[10] ? kEvents : kEvents / 50);
  }
  publisher.join();
  clients.clear();
  EXPECT_TRUE(testing::Eventually([&] {
    hub.Beat();
    return hub.counters().open == 0;
  }));
}

}  // namespace
}  // namespace voda
