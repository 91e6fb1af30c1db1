#include "kube/transport.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "kube/test_server.h"

namespace voda::kube {
namespace {

using testing::Connection;
using testing::Eventually;
using testing::TestRequest;
using testing::TestServer;

constexpr std::string_view kConflict =
    R"({"kind":"Status","code":409,"reason":"Conflict","message":"the object has been modified"})";

std::unique_ptr<Transport> Connect(const std::string& url, Counters& counters, Login login = {},
                                   const TransportOptions& options = {.version = "1.2"}) {
  auto made = Transport::Create({.server = url, .login = std::move(login)}, options, counters);
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

// A port that nobody listens on: it was in use a moment ago.
std::string DeadUrl() {
  return TestServer([](const TestRequest&, Connection&) { return false; }).Url();
}

class KubeTransport : public ::testing::Test {
 protected:
  Counters counters;
};

TEST_F(KubeTransport, SendsWhatIsAskedAndKeepsTheConnection) {
  TestServer server([](const TestRequest&, Connection& to) { return to.Answer(201, R"({"a":1})"); });
  Login login{.token = {"t0k"},
              .as = {.user = "jane", .uid = "7", .groups = {"dev", "ops"}, .extra = {{"a/b", {"c"}}}}};
  const auto transport = Connect(server.Url(), counters, login);
  const Reply made =
      transport->Call({.verb = Verb::kCreate, .path = "/api/v1/pods", .body = "{}", .lane = Lane::kWrite});
  ASSERT_TRUE(made.ok()) << made.error->Text();
  EXPECT_EQ(made.code, 201);
  EXPECT_EQ(made.body, R"({"a":1})");
  EXPECT_GE(made.body.capacity(), made.body.size() + 64);
  ASSERT_TRUE(transport->Call({.path = "/g?x=1"}).ok());
  ASSERT_TRUE(transport
                  ->Call({.verb = Verb::kPatch,
                          .path = "/p",
                          .body = "[]",
                          .content_type = "application/json-patch+json"})
                  .ok());
  ASSERT_TRUE(transport->Call({.verb = Verb::kUpdate, .path = "/u", .body = "{}"}).ok());
  ASSERT_TRUE(
      transport->Call({.verb = Verb::kDelete, .path = "/d", .body = R"({"kind":"DeleteOptions"})"}).ok());
  const auto requests = server.Requests();
  ASSERT_EQ(requests.size(), 5U);
  EXPECT_EQ(requests[0].Line(), "POST /api/v1/pods HTTP/1.1");
  for (const char* header :
       {"Authorization: Bearer t0k\r\n", "User-Agent: voda/1.2\r\n", "Accept: application/json\r\n",
        "Content-Type: application/json\r\n", "Impersonate-User: jane\r\n", "Impersonate-Uid: 7\r\n",
        "Impersonate-Group: dev\r\n", "Impersonate-Group: ops\r\n", "Impersonate-Extra-a%2Fb: c\r\n"}) {
    EXPECT_TRUE(requests[0].Has(header)) << header;
  }
  EXPECT_EQ(requests[1].Line(), "GET /g?x=1 HTTP/1.1");
  EXPECT_FALSE(requests[1].Has("Content-Type"));
  EXPECT_EQ(requests[2].Line(), "PATCH /p HTTP/1.1");
  EXPECT_TRUE(requests[2].Has("Content-Type: application/json-patch+json\r\n"));
  EXPECT_EQ(requests[3].Line(), "PUT /u HTTP/1.1");
  EXPECT_EQ(requests[4].body, R"({"kind":"DeleteOptions"})");
  EXPECT_EQ(server.connections(), 1);
  std::set<std::string> counted;
  counters.ForEachRequest(
      [&](Verb verb, int code, std::uint64_t) { counted.insert(fmt::format("{} {}", Name(verb), code)); });
  EXPECT_EQ(counted,
            (std::set<std::string>{"create 201", "get 201", "patch 201", "update 201", "delete 201"}));
}

TEST_F(KubeTransport, BasicAuthentication) {
  TestServer server([](const TestRequest&, Connection& to) { return to.Answer(200, "{}"); });
  Connect(server.Url(), counters, {.username = "u", .password = {"p w"}})->Call({.path = "/"});
  EXPECT_TRUE(server.Requests()[0].Has("Authorization: Basic dTpwIHc=\r\n"));
}

TEST_F(KubeTransport, ErrorsAreTyped) {
  TestServer server([](const TestRequest& request, Connection& to) {
    if (request.Path() == "/conflict") return to.Answer(409, kConflict);
    if (request.Path() == "/html") return to.Answer(502, "<html>bad gateway</html>");
    return to.Write("HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
  });
  const auto transport = Connect(server.Url(), counters);
  Reply reply = transport->Call({.verb = Verb::kUpdate, .path = "/conflict", .body = "{}"});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error->reason, Reason::kConflict);
  EXPECT_EQ(reply.error->message, "the object has been modified");
  EXPECT_EQ(counters.conflicts, 1U);
  reply = transport->Call({.path = "/html"});
  EXPECT_EQ(reply.error->code, 502);
  EXPECT_NE(reply.error->message.find("bad gateway"), std::string::npos);
  reply = transport->Call({.path = "/redirect"});
  EXPECT_EQ(reply.error->code, 302);  // not followed: it could carry the token elsewhere
  EXPECT_EQ(server.Count(), 3U);
}

TEST_F(KubeTransport, ComesBackWhenToldTo) {
  std::atomic<int> left = 2;
  TestServer server([&](const TestRequest&, Connection& to) {
    if (left-- > 0)
      return to.Answer(429, R"({"kind":"Status","reason":"TooManyRequests"})", "Retry-After: 0\r\n");
    return to.Answer(200, "{}");
  });
  const auto transport = Connect(server.Url(), counters);
  EXPECT_TRUE(transport->Call({.verb = Verb::kCreate, .path = "/", .body = "{}"}).ok());
  EXPECT_EQ(server.Count(), 3U);
  EXPECT_EQ(counters.throttled, 2U);
  EXPECT_EQ(counters.retries, 2U);
}

TEST_F(KubeTransport, DoesNotWaitLongerThanItsTime) {
  TestServer server(
      [&](const TestRequest&, Connection& to) { return to.Answer(503, "{}", "Retry-After: 20\r\n"); });
  const Reply reply = Connect(server.Url(), counters)->Call({.path = "/", .timeout = Duration(2000)});
  EXPECT_EQ(reply.error->code, 503);
  EXPECT_EQ(server.Count(), 1U);
}

TEST_F(KubeTransport, ALostConnectionIsTriedAgainForReadsAlone) {
  std::atomic<int> left = 2;
  TestServer server([&](const TestRequest&, Connection& to) {
    if (left-- > 0) return to.Reset();
    return to.Answer(200, "{}");
  });
  const auto transport = Connect(server.Url(), counters);
  EXPECT_TRUE(transport->Call({.path = "/"}).ok());
  EXPECT_EQ(server.Count(), 3U);
  left = 100;
  for (const Verb verb : {Verb::kCreate, Verb::kPatch, Verb::kUpdate, Verb::kDelete}) {
    const std::size_t before = server.Count();
    const Reply reply = transport->Call({.verb = verb, .path = "/", .body = "{}"});
    EXPECT_EQ(reply.error->reason, Reason::kConnection);
    EXPECT_EQ(server.Count(), before + 1) << Name(verb);
  }
}

TEST_F(KubeTransport, AWriteOnAKeptConnectionIsNotSentTwiceBehindOurBack) {
  TestServer server([&](const TestRequest& request, Connection& to) {
    if (request.Path() == "/first") return to.Answer(200, "{}");
    return false;  // closes without a byte: libcurl would try again on a new connection
  });
  const auto transport = Connect(server.Url(), counters);
  ASSERT_TRUE(transport->Call({.path = "/first"}).ok());
  const Reply reply = transport->Call({.verb = Verb::kCreate, .path = "/second", .body = "{}"});
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error->reason, Reason::kConnection);
  EXPECT_NE(reply.error->message.find("may have been carried out"), std::string::npos)
      << reply.error->message;
  EXPECT_EQ(server.Count(), 2U);
}

TEST_F(KubeTransport, AQuestionOnAConnectionThatWasClosedMeanwhileIsAskedAgain) {
  std::atomic<int> lost = 2;
  TestServer server([&](const TestRequest& request, Connection& to) {
    if (request.Path() == "/first") return to.Answer(200, "{}");
    return lost-- > 0 ? false : to.Answer(201, "{}");
  });
  const auto transport = Connect(server.Url(), counters);
  ASSERT_TRUE(transport->Call({.path = "/first"}).ok());
  const Reply reply =
      transport->Call({.verb = Verb::kCreate, .path = "/second", .body = "{}", .question = true});
  EXPECT_TRUE(reply.ok()) << reply.error->message;
}

TEST_F(KubeTransport, HalfAnAnswerIsNone) {
  TestServer server([&](const TestRequest&, Connection& to) {
    to.Write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
    return false;
  });
  const Reply reply =
      Connect(server.Url(), counters)->Call({.verb = Verb::kUpdate, .path = "/", .body = "{}"});
  EXPECT_EQ(reply.error->reason, Reason::kConnection);
  EXPECT_TRUE(reply.body.empty());
}

TEST_F(KubeTransport, ASlowServerRunsIntoTheLimit) {
  TestServer server([&](const TestRequest&, Connection& to) {
    to.Hold();
    return false;
  });
  const auto start = std::chrono::steady_clock::now();
  const Reply reply = Connect(server.Url(), counters)->Call({.path = "/", .timeout = Duration(200)});
  EXPECT_EQ(reply.error->reason, Reason::kNoAnswer);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(KubeTransport, NobodyListens) {
  const auto transport = Connect(DeadUrl(), counters);
  const Reply reply = transport->Call({.verb = Verb::kCreate, .path = "/", .body = "{}"});
  EXPECT_EQ(reply.error->reason, Reason::kConnection);
  EXPECT_TRUE(reply.error->refused);
  EXPECT_NE(reply.error->message.find("is the API server running"), std::string::npos);
}

TEST_F(KubeTransport, BodiesHaveALimit) {
  TestServer server(
      [&](const TestRequest&, Connection& to) { return to.Answer(200, std::string(100'000, 'x')); });
  const auto transport = Connect(server.Url(), counters);
  EXPECT_EQ(transport->Call({.path = "/", .max_body = 99'999}).error->reason, Reason::kAnswerTooLarge);
  EXPECT_TRUE(transport->Call({.path = "/", .max_body = 100'000}).ok());
}

TEST_F(KubeTransport, StreamsAsItComesAndEndsInOrder) {
  std::promise<void> opened;
  TestServer server([&](const TestRequest&, Connection& to) {
    to.StreamHead();
    to.Chunk("one\n");
    opened.get_future().wait();
    to.Chunk("two\n");
    return to.StreamEnd();
  });
  const auto transport = Connect(server.Url(), counters);
  std::promise<std::optional<ApiError>> ended;
  std::string all;
  int opens = 0;
  transport->Stream({.verb = Verb::kWatch, .path = "/w"},
                    {.on_open = [&] { ++opens; },
                     .on_data =
                         [&](std::string_view data) {
                           if (all.empty()) opened.set_value();
                           all += data;
                           return true;
                         },
                     .on_end = [&](std::optional<ApiError> error) { ended.set_value(std::move(error)); }});
  EXPECT_FALSE(ended.get_future().get());
  EXPECT_EQ(all, "one\ntwo\n");
  EXPECT_EQ(opens, 1);
}

std::optional<ApiError> EndOf(Transport& transport, Request request, bool enough = false) {
  std::promise<std::optional<ApiError>> ended;
  transport.Stream(std::move(request),
                   {.on_data = [&](std::string_view) { return !enough; },
                    .on_end = [&](std::optional<ApiError> error) { ended.set_value(std::move(error)); }});
  return ended.get_future().get();
}

TEST_F(KubeTransport, AStreamEndsInManyWays) {
  TestServer server([&](const TestRequest& request, Connection& to) {
    if (request.Path() == "/gone")
      return to.Answer(410, R"({"kind":"Status","code":410,"reason":"Expired"})");
    to.StreamHead();
    to.Chunk("a\n");
    if (request.Path() == "/reset") return to.Reset();
    if (request.Path() == "/cut") return false;
    to.Hold();
    return false;
  });
  const auto transport = Connect(server.Url(), counters);
  EXPECT_EQ(EndOf(*transport, {.verb = Verb::kWatch, .path = "/gone"})->reason, Reason::kExpired);
  EXPECT_EQ(EndOf(*transport, {.verb = Verb::kWatch, .path = "/reset"})->reason, Reason::kConnection);
  EXPECT_EQ(EndOf(*transport, {.verb = Verb::kWatch, .path = "/cut"})->reason, Reason::kConnection);
  EXPECT_EQ(EndOf(*transport, {.verb = Verb::kWatch, .path = "/idle", .idle = Duration(1000)})->reason,
            Reason::kNoAnswer);
  EXPECT_FALSE(EndOf(*transport, {.verb = Verb::kWatch, .path = "/enough"}, true));
}

TEST_F(KubeTransport, CanceledMeansSilentAlsoFromWithinACallback) {
  TestServer server([&](const TestRequest&, Connection& to) {
    to.StreamHead();
    to.Chunk("a\n");
    to.Hold();
    return false;
  });
  const auto transport = Connect(server.Url(), counters);
  std::promise<void> canceled;
  std::atomic<Io::Ticket> ticket = Io::Ticket::kNone;
  std::atomic<int> calls = 0;
  transport->RunAndWait([&] {
    ticket =
        transport->Stream({.verb = Verb::kWatch, .path = "/"}, {.on_data =
                                                                    [&](std::string_view) {
                                                                      transport->Cancel(ticket);
                                                                      canceled.set_value();
                                                                      return true;
                                                                    },
                                                                .on_end = [&](const auto&) { ++calls; }});
  });
  canceled.get_future().wait();
  std::atomic<Io::Ticket> plain = transport->Send({.path = "/"}, [&](const Reply&) { ++calls; });
  ASSERT_TRUE(Eventually([&] { return server.Count() == 2; }));
  transport->Cancel(plain);
  const Io::Ticket timer = transport->After(Duration(1), [] {});
  transport->Cancel(timer);
  transport->Cancel(timer);
  transport->RunAndWait([] {});
  EXPECT_EQ(calls, 0);
}

TEST_F(KubeTransport, TheEndOfTheTransportIsTheEndOfEverything) {
  TestServer server([&](const TestRequest&, Connection& to) {
    to.Hold();
    return false;
  });
  auto transport = Connect(server.Url(), counters);
  std::atomic<int> canceled = 0;
  for (int i = 0; i < 50; ++i) {  // some on the wire, some waiting
    transport->Send({.path = "/"},
                    [&](const Reply& reply) { canceled += reply.error->reason == Reason::kCanceled; });
  }
  transport->Stream({.verb = Verb::kWatch, .path = "/"},
                    {.on_end = [&](const auto& error) { canceled += error->reason == Reason::kCanceled; }});
  ASSERT_TRUE(Eventually([&] { return server.Count() >= 8; }));
  transport.reset();
  EXPECT_EQ(canceled, 51);
}

TEST_F(KubeTransport, LeasesDoNotWaitBehindWritesAndQueuesAreBounded) {
  TestServer server([&](const TestRequest& request, Connection& to) {
    if (request.Path() == "/lease") return to.Answer(200, "{}");
    to.Hold();
    return false;
  });
  TransportOptions options;
  options.lanes[Lane::kWrite] = {.per_second = 1, .burst = 2, .in_flight = 2, .waiting = 10};
  std::atomic<int> full = 0;  // outlives the transport, whose end answers the requests that wait
  const auto transport = Connect(server.Url(), counters, {}, options);
  for (int i = 0; i < 20; ++i) {
    transport->Send({.verb = Verb::kCreate, .path = "/", .body = "{}", .lane = Lane::kWrite},
                    [&](const Reply& reply) { full += reply.error->reason == Reason::kQueueFull; });
  }
  EXPECT_TRUE(transport
                  ->Call({.verb = Verb::kUpdate,
                          .path = "/lease",
                          .body = "{}",
                          .lane = Lane::kLease,
                          .timeout = Duration(5000)})
                  .ok());
  ASSERT_TRUE(Eventually([&] { return full >= 8; }));
  EXPECT_EQ(counters.refused_by_us, static_cast<std::uint64_t>(full));
}

TEST_F(KubeTransport, APatientRequestIsTimedFromWhenItIsSent) {
  std::atomic<bool> open = false;
  std::atomic<int> refused = 0;
  TestServer server([&](const TestRequest& request, Connection& to) {
    if (request.Path() == "/first") Eventually([&] { return open.load(); });
    if (request.Path() == "/never") {
      to.Hold();
      return false;
    }
    if (request.Path() == "/later" && refused++ == 0)
      return to.Answer(429, R"({"kind":"Status","reason":"TooManyRequests"})", "Retry-After: 1\r\n");
    return to.Answer(201, "{}");
  });
  TransportOptions options;
  options.lanes[Lane::kEvent] = {.per_second = 0, .in_flight = 1, .waiting = 10};
  const auto transport = Connect(server.Url(), counters, {}, options);
  std::mutex mutex;
  std::map<std::string, std::string> said;
  const auto send = [&](const std::string& path, bool patient, Duration timeout) {
    transport->Send({.verb = Verb::kCreate,
                     .path = path,
                     .body = "{}",
                     .lane = Lane::kEvent,
                     .timeout = timeout,
                     .patient = patient},
                    [&, path](const Reply& reply) {
                      const std::lock_guard lock(mutex);
                      said[path] = reply.ok() ? "ok" : reply.error->message;
                    });
  };
  const auto told = [&](const std::string& path) {
    const std::lock_guard lock(mutex);
    return said.contains(path) ? said[path] : std::string();
  };
  const Duration short_time(1000);
  send("/first", false, Duration(30'000));
  send("/patient", true, short_time);
  send("/later", true, short_time);
  send("/never", true, short_time);
  send("/last", true, short_time);
  send("/other", false, short_time);
  ASSERT_TRUE(Eventually([&] { return !told("/other").empty(); }));
  EXPECT_NE(told("/other").find("not sent within"), std::string::npos);
  EXPECT_EQ(told("/patient"), "");
  open = true;
  ASSERT_TRUE(Eventually([&] { return !told("/later").empty() && !told("/last").empty(); }));
  EXPECT_EQ(told("/first"), "ok");
  EXPECT_EQ(told("/patient"), "ok");
  EXPECT_EQ(told("/later"), "ok");  // the second time, after a second of waiting
  EXPECT_NE(told("/never").find("no answer within"), std::string::npos) << told("/never");
  EXPECT_EQ(told("/last"), "ok");
}

TEST_F(KubeTransport, ManyRequestsFromManyThreads) {
  TestServer server([&](const TestRequest& request, Connection& to) { return to.Answer(200, request.body); });
  TransportOptions options;
  for (LaneLimits& lane : options.lanes) lane.per_second = 0;
  const auto transport = Connect(server.Url(), counters, {}, options);
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string body = fmt::format("{}-{}", t, i);
        good +=
            transport->Call({.verb = Verb::kUpdate, .path = "/", .body = body, .lane = Lane::kWrite}).body ==
            body;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 200);
  EXPECT_LE(server.connections(), 16);
}

TEST_F(KubeTransport, KeepsAsManyConnectionsAsRequestsMayBeOut) {
  TestServer server([&](const TestRequest&, Connection& to) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // so that all of them are in use
    return to.Answer(200, "{}");
  });
  TransportOptions options;
  options.lanes[Lane::kWrite] = {.per_second = 0, .in_flight = 64};
  const auto transport = Connect(server.Url(), counters, {}, options);
  std::atomic<int> answered = 0;
  for (int i = 0; i < 1000; ++i) {
    transport->Send({.verb = Verb::kPatch, .path = "/", .body = "{}", .lane = Lane::kWrite},
                    [&](const Reply& reply) { answered += reply.ok() ? 1 : 0; });
  }
  ASSERT_TRUE(Eventually([&] { return answered == 1000; }));
  EXPECT_LE(server.connections(), 64);
}

TEST_F(KubeTransport, TimersRunInOrder) {
  const auto transport = Connect(DeadUrl(), counters);
  std::promise<void> done;
  std::vector<int> order;
  transport->RunAndWait([&] {
    transport->After(Duration(30), [&] {
      order.push_back(3);
      done.set_value();
    });
    transport->After(Duration(10), [&] { order.push_back(1); });
    transport->After(Duration(10), [&] { order.push_back(2); });
  });
  done.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(KubeTransport, GoesThroughTheProxyThatIsNamed) {
  TestServer proxy([](const TestRequest& request, Connection& to) {
    if (request.Line().substr(0, 7) == "CONNECT") {
      to.Write("HTTP/1.1 200 Connection established\r\n\r\n");
      return false;
    }
    return to.Answer(200, "{}");
  });
  auto plain = Transport::Create({.server = "http://api.invalid:1", .proxy_url = proxy.Url()}, {}, counters);
  ASSERT_TRUE(plain);
  EXPECT_TRUE((*plain)->Call({.path = "/x"}).ok());
  EXPECT_EQ(proxy.Requests().back().Line(), "GET http://api.invalid:1/x HTTP/1.1");

  auto tunnel =
      Transport::Create({.server = "https://api.invalid:1", .proxy_url = proxy.Url()}, {}, counters);
  ASSERT_TRUE(tunnel);
  std::promise<std::optional<ApiError>> ended;
  std::atomic<int> opens = 0;
  (*tunnel)->Stream({.verb = Verb::kWatch, .path = "/x"},
                    {.on_open = [&] { ++opens; },
                     .on_end = [&](std::optional<ApiError> error) { ended.set_value(std::move(error)); }});
  EXPECT_EQ(ended.get_future().get()->reason, Reason::kConnection);
  EXPECT_EQ(opens, 0);  // the tunnel was open, the watch was not
  EXPECT_EQ(proxy.Requests().back().Line(), "CONNECT api.invalid:1 HTTP/1.1");
}

TEST_F(KubeTransport, RefusesAServerThatIsNone) {
  for (const char* url : {"", "https://", "http://[::1", "https://a b"}) {
    const auto made = Transport::Create({.server = url}, {}, counters);
    ASSERT_FALSE(made) << url;
    EXPECT_NE(made.error().message.find("https://HOST:PORT"), std::string::npos);
  }
}

}  // namespace
}  // namespace voda::kube
