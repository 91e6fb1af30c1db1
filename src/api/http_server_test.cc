#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <random>

#include "api/error_response.h"
#include "api/http.h"
#include "api/http_test_client.h"
#include "base/fd.h"
#include "base/log.h"

namespace voda {
namespace {

using testing::Eventually;
using testing::Get;
using testing::RawClient;
using testing::Serve;

// Answers with what it was asked.
void Echo(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = request.method + " " + request.path;
  for (const auto& [name, value] : request.query) response.body += fmt::format(" {}={}", name, value);
  response.body += " " + request.body;
  reply->Send(std::move(response));
}

int Port(const std::unique_ptr<HttpServer>& server) {
  return server->ports().front();
}

std::string Post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

// The answer to a broken limit or protocol is JSON, and the connection ends in order.
void ExpectRefused(RawClient& client, int status, const std::string& code) {
  const auto response = client.ReadResponse();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, status);
  EXPECT_EQ(response->headers.at("content-type"), "application/json");
  EXPECT_EQ(response->headers.at("connection"), "close");
  EXPECT_TRUE(response->body.starts_with(R"({"error": {"code": ")" + code + R"(", "message": ")"))
      << response->body;
  EXPECT_TRUE(client.AtEnd());
}

TEST(HttpServer, AnswersWithItsHeaders) {
  const auto server = Serve({}, Echo);
  RawClient client(Port(server));
  const auto response = client.Ask(Get("/a%20b?x=1"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "GET /a b x=1 ");
  EXPECT_EQ(response->headers.at("content-type"), "text/plain");
  EXPECT_EQ(response->headers.at("content-length"), "13");
  EXPECT_EQ(response->headers.at("cache-control"), "no-store");
  EXPECT_EQ(response->headers.at("x-content-type-options"), "nosniff");
  EXPECT_TRUE(response->headers.at("date").ends_with(" GMT"));
  EXPECT_FALSE(response->headers.contains("connection"));
  EXPECT_EQ(server->open_connections(), 1);
  client.Close();
  EXPECT_TRUE(Eventually([&] { return server->open_connections() == 0; }));
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  const auto server = Serve({}, Echo);
  RawClient client(Port(server));
  std::string all;
  for (int i = 0; i < 200; ++i) {
    all += i % 2 == 0 ? Get("/" + std::to_string(i)) : "\r\n" + Post("/" + std::to_string(i), "body");
  }
  ASSERT_TRUE(client.Write(all));
  for (int i = 0; i < 200; ++i) {
    const auto response = client.ReadResponse();
    ASSERT_TRUE(response);
    EXPECT_EQ(response->body,
              (i % 2 == 0 ? "GET /" : "POST /") + std::to_string(i) + (i % 2 == 0 ? " " : " body"));
  }
}

TEST(HttpServer, ClosesWhereItIsAskedTo) {
  const auto server = Serve({}, Echo);
  {
    RawClient client(Port(server));
    const auto response = client.Ask(Get("/", "Connection: close\r\n"));
    ASSERT_TRUE(response);
    EXPECT_EQ(response->headers.at("connection"), "close");
    EXPECT_TRUE(client.AtEnd());
  }
  RawClient old(Port(server));
  const auto response = old.Ask("GET /x HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "GET /x ");
  EXPECT_TRUE(old.AtEnd());
}

TEST(HttpServer, AnswersAClientThatOnlyListens) {
  const auto server = Serve({}, Echo);
  RawClient client(Port(server));
  ASSERT_TRUE(client.Write(Get("/x")));
  client.EndWriting();
  const auto response = client.ReadResponse();
  ASSERT_TRUE(response);
  EXPECT_EQ(response->body, "GET /x ");
}

TEST(HttpServer, HeadHasNoBody) {
  const auto server = Serve({}, Echo);
  RawClient client(Port(server));
  ASSERT_TRUE(client.Write("HEAD /abc HTTP/1.1\r\nHost: h\r\n\r\n" + Get("/next")));
  const auto head = client.ReadResponse(true);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->headers.at("content-length"), "9");
  EXPECT_EQ(client.ReadResponse()->body, "GET /next ");
}

TEST(HttpServer, NoContentHasNeitherTypeNorLength) {
  const auto server = Serve({}, [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    HttpResponse response;
    response.status = 204;
    reply->Send(response);
  });
  RawClient client(Port(server));
  for (int i = 0; i < 2; ++i) {
    const auto response = client.Ask(Get("/"));
    ASSERT_TRUE(response);
    EXPECT_EQ(response->status, 204);
    EXPECT_FALSE(response->headers.contains("content-length"));
    EXPECT_FALSE(response->headers.contains("content-type"));
  }
}

TEST(HttpServer, NoAnswerCanBeSplit) {
  const auto server = Serve({}, [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    HttpResponse response;
    response.headers = {{"X-Echo", request.query.at("x")}, {"cache-control", "max-age=5"}};
    reply->Send(response);
  });
  RawClient client(Port(server));
  const auto response = client.Ask(Get("/?x=a%0d%0aSet-Cookie:%20b"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->headers.at("x-echo"), "a  Set-Cookie: b");
  EXPECT_FALSE(response->headers.contains("set-cookie"));
  EXPECT_EQ(response->headers.at("cache-control"), "max-age=5");
}

TEST(HttpServer, TakesChunkedBodies) {
  const auto server = Serve({}, Echo);
  RawClient client(Port(server));
  ASSERT_TRUE(client.Write("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"));
  ASSERT_TRUE(client.Write("lo\r\n1\r\n!\r\n0\r\n\r\n"));
  EXPECT_EQ(client.ReadResponse()->body, "POST / hello!");
  EXPECT_EQ(client.Ask(Get("/again"))->body, "GET /again ");
}

TEST(HttpServer, LargeBodiesBothWays) {
  HttpConfig config;
  config.body_limits["/big"] = std::size_t{32} << 20;
  const auto server = Serve(config, Echo);
  RawClient client(Port(server));
  std::string body(std::size_t{24} << 20, '\0');
  std::minstd_rand random(7);
  for (char& c : body) c = static_cast<char>('a' + random() % 26);
  const auto response = client.Ask(Post("/big", body));
  ASSERT_TRUE(response);
  EXPECT_TRUE(response->body == "POST /big " + body);
  EXPECT_EQ(client.Ask(Get("/x"))->body, "GET /x ");
}

TEST(HttpServer, SaysContinueBeforeTheBody) {
  const auto server = Serve({}, Echo);
  RawClient client(Port(server));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        client.Write("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
    EXPECT_EQ(client.ReadResponse()->status, 100);
    EXPECT_EQ(client.Ask("ab")->body, "POST / ab");
  }
  ASSERT_TRUE(
      client.Write("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n"));
  ExpectRefused(client, 413, "too_large");
}

TEST(HttpServer, LimitsAndRubbishHaveTheirAnswers) {
  HttpConfig config;
  config.body_limit = 100;
  config.header_limit = 1000;
  const auto server = Serve(config, Echo);
  struct Case {
    std::string text;
    int status;
    std::string code;
  };
  const std::vector<Case> cases = {
      {Post("/", std::string(101, 'x')), 413, "too_large"},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 500000000\r\n\r\n", 413, "too_large"},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + std::string(64, 'x') +
           "\r\n40\r\n" + std::string(64, 'x') + "\r\n0\r\n\r\n",
       413, "too_large"},
      {Get("/", "X: " + std::string(1000, 'x') + "\r\n"), 431, "too_large"},
      {Get("/" + std::string(5000, 'x')), 431, "too_large"},
      {std::string(70000, 'x'), 431, "too_large"},
      {"\x16\x03\x01\x02\x01\x01\xff\xff", 400, "invalid"},
      {"hello\r\n\r\n", 400, "invalid"},
      {"GET / HTTP/3.0\r\n\r\n", 400, "invalid"},
      {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid"},
      {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid"},
      {"GET /a?b=%c3%28 HTTP/1.1\r\nHost: h\r\n\r\n", 400, "invalid"},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400,
       "invalid"},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nnothex\r\n", 400, "invalid"},
      {"GET / HTTP/1.1\r\n\r\n", 400, "invalid"},
      {"POST / HTTP/1.1\r\nHost: h\r\nExpect: x\r\nContent-Length: 5\r\n\r\n", 417, "invalid"},
  };
  for (const Case& wrong : cases) {
    SCOPED_TRACE(wrong.text.substr(0, 100));
    RawClient client(Port(server));
    client.Write(wrong.text);
    client.Write("GET /must-not-be-answered HTTP/1.1\r\nHost: h\r\n\r\n");
    client.EndWriting();
    ExpectRefused(client, wrong.status, wrong.code);
  }
  EXPECT_TRUE(Eventually([&] { return server->open_connections() == 0; }));
}

// A client that goes on sending can read the answer and does not get a reset.
TEST(HttpServer, AnswersWhileTheClientStillSends) {
  const auto server = Serve({}, Echo);
  for (int i = 0; i < 20; ++i) {
    RawClient client(Port(server));
    ASSERT_TRUE(client.Write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n"));
    for (int k = 0; k < 10; ++k) client.Write(std::string(100000, 'x'));
    client.EndWriting();
    ExpectRefused(client, 413, "too_large");
  }
}

TEST(HttpServer, HeadIsJudgedBeforeTheBodyIsRead) {
  HttpConfig config;
  config.on_head = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.Header("authorization") == "yes") return std::nullopt;
    return ErrorResponse(401, "unauthorized", "no");
  };
  std::atomic<int> handled = 0;
  const auto server = Serve(config, [&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    ++handled;
    Echo(request, reply);
  });
  {
    RawClient client(Port(server));  // the body never comes
    ASSERT_TRUE(client.Write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n"));
    ExpectRefused(client, 401, "unauthorized");
  }
  RawClient client(Port(server));
  EXPECT_EQ(client.Ask(Get("/"))->status, 401);
  EXPECT_EQ(client.Ask(Get("/", "Authorization: yes\r\n"))->status, 200);
  EXPECT_EQ(handled, 1);
}

TEST(HttpServer, BodiesTogetherHaveALimit) {
  HttpConfig config;
  config.bodies_limit = 500000;
  const auto server = Serve(config, Echo);
  for (int i = 0; i < 3; ++i) {
    RawClient client(Port(server));
    EXPECT_EQ(client.Ask(Post("/", std::string(400000, 'x')))->status, 200);
    EXPECT_EQ(client.Ask(Post("/", std::string(400000, 'x')))->status, 200);
    client.Write(Post("/", std::string(700000, 'x')));
    client.EndWriting();
    ExpectRefused(client, 503, "unavailable");
    RawClient half(Port(server));  // its bytes are given back
    half.Write("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 400000\r\n\r\n" + std::string(300000, 'x'));
    half.Close();
    RawClient next(Port(server));  // accepted once the other has gone
    ASSERT_TRUE(next.Ask(Get("/")));
    next.Close();
    ASSERT_TRUE(Eventually([&] { return server->open_connections() == 0; }));
  }
}

TEST(HttpServer, SlowRequestsEnd) {
  HttpConfig config;
  config.read_seconds = 0.3;
  config.idle_seconds = 60;
  const auto server = Serve(config, Echo);
  const std::vector<std::string> halves = {
      "G", "GET / HTTP/1.1\r\nHost: h\r\nX: y", Get("/").substr(0, 20),
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"};
  for (const std::string& half : halves) {
    SCOPED_TRACE(half);
    RawClient client(Port(server));
    ASSERT_TRUE(client.Write(half));
    ExpectRefused(client, 408, "timeout");
  }
  // Sending byte by byte does not help: the time is for the whole request.
  RawClient dripping(Port(server));
  ASSERT_TRUE(dripping.Write("GET / HTTP/1.1\r\nX: "));
  EXPECT_TRUE(Eventually([&] {
    dripping.Write("x");
    return server->open_connections() == 0;
  }));
  // The time between requests has its own limit.
  RawClient patient(Port(server));
  ASSERT_TRUE(patient.Ask(Get("/")));
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_TRUE(patient.Ask(Get("/")));
}

TEST(HttpServer, IdleConnectionsEndInSilence) {
  HttpConfig config;
  config.idle_seconds = 0.2;
  const auto server = Serve(config, Echo);
  RawClient silent(Port(server));
  EXPECT_TRUE(silent.AtEnd());
  std::optional<RawClient> client;
  ASSERT_TRUE(Eventually([&] {  // the first may be too late
    client.emplace(Port(server));
    return client->Ask(Get("/")).has_value();
  }));
  EXPECT_TRUE(client->AtEnd());
}

TEST(HttpServer, WhoDoesNotReadIsLetGo) {
  HttpConfig config;
  config.write_seconds = 0.3;
  const auto server = Serve(config, [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    HttpResponse response;
    response.body = std::string(std::size_t{32} << 20, 'x');
    reply->Send(std::move(response));
  });
  RawClient client(Port(server), false, 4096);
  ASSERT_TRUE(client.Write(Get("/")));
  ASSERT_TRUE(client.ReadUntil("\r\n\r\n"));  // the client was let in, and reads no more
  EXPECT_TRUE(Eventually([&] { return server->open_connections() == 0; }));
}

// A client that reads a little now and then still loses its connection.
TEST(HttpServer, WhoReadsTooSlowlyIsLetGo) {
  HttpConfig config;
  config.write_seconds = 0.5;
  config.write_rate = 64e6;  // about a second for the whole
  const auto server = Serve(config, [](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    HttpResponse response;
    response.body = std::string(std::size_t{64} << 20, 'x');
    reply->Send(std::move(response));
  });
  RawClient slow(Port(server));
  ASSERT_TRUE(slow.Write(Get("/")));
  ASSERT_TRUE(slow.ReadUntil("\r\n\r\n"));
  EXPECT_TRUE(Eventually([&] {
    slow.ReadSome();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return server->open_connections() == 0;
  }));
}

TEST(HttpServer, OneTooManyIsToldSo) {
  HttpConfig config;
  config.connections = 3;
  std::mutex mutex;
  std::vector<std::shared_ptr<HttpReply>> waiting;
  const auto server = Serve(config, [&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    if (request.path == "/") return Echo(request, reply);
    const std::lock_guard lock(mutex);
    waiting.push_back(reply);
  });
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(Port(server));
    ASSERT_TRUE(clients.back().Write(Get("/wait")));
  }
  ASSERT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return waiting.size() == 3;
  }));
  RawClient fourth(Port(server));
  fourth.Write(Get("/"));
  fourth.EndWriting();
  ExpectRefused(fourth, 503, "unavailable");
  {
    const std::lock_guard lock(mutex);
    Echo({}, waiting.back());
    waiting.pop_back();
  }
  ASSERT_TRUE(Eventually([&] {
    RawClient again(Port(server));
    const auto response = again.Ask(Get("/"));
    return response && response->status == 200;
  }));
  const std::lock_guard lock(mutex);
  for (const auto& reply : waiting) Echo({}, reply);
}

TEST(HttpServer, IdleConnectionsMakeRoom) {
  HttpConfig config;
  config.connections = 3;
  const auto server = Serve(config, Echo);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(Port(server));
    ASSERT_TRUE(clients.back().Ask(Get("/")));
  }
  RawClient fourth(Port(server));
  const auto response = fourth.Ask(Get("/"));
  ASSERT_TRUE(response);
  EXPECT_EQ(response->status, 200);
  EXPECT_TRUE(clients[0].AtEnd()) << "it was idle for longest";
  EXPECT_TRUE(clients[1].Ask(Get("/")));
}

TEST(HttpServer, UnknownClientsAreFewAndMakeRoomForEachOther) {
  HttpConfig config;
  config.connections = 100;
  config.unknown_connections = 4;
  config.knows = [](const HttpRequest& request) { return request.Header("authorization") == "yes"; };
  const auto server = Serve(config, [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    if (request.path != "/forbidden") return Echo(request, reply);
    reply->Send(ErrorResponse(403, "forbidden", "no"));
  });
  const auto ask = [](RawClient& client, const std::string& text) {
    const auto response = client.Ask(text);
    return response ? response->status : 0;
  };
  std::vector<RawClient> known;
  for (int i = 0; i < 10; ++i) {
    known.emplace_back(Port(server));
    ASSERT_EQ(ask(known.back(), Get("/", "Authorization: yes\r\n")), 200);
  }
  known.emplace_back(Port(server));
  ASSERT_EQ(ask(known.back(), Get("/")), 200) << "its good answer makes it known, too";
  RawClient alive(Port(server));
  RawClient forbidden(Port(server));
  ASSERT_EQ(ask(alive, Get("/livez")), 200);
  ASSERT_EQ(ask(forbidden, Get("/forbidden")), 403);
  std::vector<RawClient> silent;
  for (int i = 0; i < 20; ++i) silent.emplace_back(Port(server));
  EXPECT_TRUE(alive.AtEnd()) << "proves nothing";
  EXPECT_TRUE(forbidden.AtEnd());
  EXPECT_TRUE(silent[15].AtEnd());
  EXPECT_TRUE(Eventually([&] { return server->open_connections() == 15; }));
  for (RawClient& client : known) EXPECT_EQ(ask(client, Get("/")), 200);
  RawClient last(Port(server));
  EXPECT_EQ(ask(last, Get("/", "Authorization: yes\r\n")), 200);
}

TEST(HttpServer, HandlersMayFail) {
  SetLog({LogLevel::kError, false});
  const auto server = Serve({}, [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    if (request.path == "/throw") throw std::runtime_error("x");
    if (request.path == "/odd") throw 7;  // NOLINT: what a library could do
    if (request.path == "/late") {
      reply->Send({});
      throw std::runtime_error("after the answer");
    }
    if (request.path == "/twice") {
      reply->Send({});
      reply->Send({.status = 500});
    }
    // "/drop" gets no answer.
  });
  RawClient client(Port(server));
  EXPECT_EQ(client.Ask(Get("/throw"))->status, 500);
  EXPECT_EQ(client.Ask(Get("/odd"))->status, 500);
  EXPECT_EQ(client.Ask(Get("/drop"))->status, 500);
  EXPECT_EQ(client.Ask(Get("/late"))->status, 200);
  EXPECT_EQ(client.Ask(Get("/twice"))->status, 200);
  const auto response = client.Ask(Get("/drop"));
  EXPECT_TRUE(response->body.starts_with(R"({"error": {"code": "internal")")) << response->body;
}

TEST(HttpServer, AnswersComeFromAnyThread) {
  std::mutex mutex;
  std::vector<std::pair<HttpRequest, std::shared_ptr<HttpReply>>> waiting;
  const auto server = Serve({}, [&](HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const std::lock_guard lock(mutex);
    waiting.emplace_back(std::move(request), std::move(reply));
  });
  std::atomic<bool> stop = false;
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back([&] {
      while (!stop) {
        std::unique_lock lock(mutex);
        if (waiting.empty()) {
          lock.unlock();
          std::this_thread::yield();
          continue;
        }
        auto [request, reply] = std::move(waiting.back());
        waiting.pop_back();
        lock.unlock();
        Echo(request, reply);
      }
    });
  }
  std::vector<std::thread> clients;
  std::atomic<int> right = 0;
  for (int c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      RawClient client(Port(server));
      for (int i = 0; i < 200; ++i) {
        const std::string path = "/" + std::to_string(c) + "/" + std::to_string(i);
        const auto response = client.Ask(Get(path));
        if (response && response->body == "GET " + path + " ") ++right;
      }
    });
  }
  for (auto& client : clients) client.join();
  stop = true;
  for (auto& worker : workers) worker.join();
  EXPECT_EQ(right, 8 * 200);
}

TEST(HttpServer, AnswersOnASocketOfItsOwner) {
  char folder[] = "/tmp/voda-socket-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = folder + std::string("/socket");
  for (int run = 0; run < 2; ++run) {  // the second finds what the first has left
    const auto server = Serve({.listeners = {{"127.0.0.1", 0}, {.socket = path}}}, Echo);
    EXPECT_EQ(server->ports().size(), 1U);
    struct stat found {};
    ASSERT_EQ(::stat(path.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777U, 0600U);
    const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    const std::string request = Get("/over/there", "Connection: close\r\n");
    ASSERT_EQ(::write(socket.get(), request.data(), request.size()), static_cast<ssize_t>(request.size()));
    std::string answer;
    char block[4096];
    for (ssize_t got = 0; (got = ::read(socket.get(), block, sizeof(block))) > 0;)
      answer.append(block, block + got);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("GET /over/there ")) << answer;
  }
  ::unlink(path.c_str());
  ::rmdir(folder);
  EXPECT_FALSE(HttpServer::Listen({.listeners = {{.socket = "/tmp/" + std::string(103, 'x')}}}));
}

TEST(HttpServer, MayGoWithoutHavingRun) {
  auto server = HttpServer::Listen({.listeners = {{"127.0.0.1", 0}, {"127.0.0.1", 0}}});
  ASSERT_TRUE(server);
  EXPECT_EQ((*server)->ports().size(), 2U);
  EXPECT_NE((*server)->ports()[0], (*server)->ports()[1]);
}

TEST(HttpServer, SaysWhyItCannotListen) {
  const auto server = Serve({}, Echo);
  const int taken = Port(server);
  const auto message = [](std::string address, int port) {
    const auto failed = HttpServer::Listen({.listeners = {{std::move(address), port}}});
    return failed ? std::string() : failed.error().message;
  };
  EXPECT_EQ(message("127.0.0.1", taken),
            "listening on 127.0.0.1:" + std::to_string(taken) +
                " failed: address in use; stop the other process or choose another with --listen");
  EXPECT_NE(message("localhost", taken).find("address in use"), std::string::npos);
  EXPECT_NE(message("no.such.name", 1234).find("no IP address"), std::string::npos);
  EXPECT_NE(message("", 1234).find("no IP address"), std::string::npos);
  EXPECT_NE(message("192.0.2.1", 0).find("no such address"), std::string::npos);
  EXPECT_NE(message("127.0.0.1", 70000).find("no such port"), std::string::npos);
  EXPECT_NE(message("127.0.0.1", -1).find("no such port"), std::string::npos);
}

TEST(HttpServer, ListensOnIpv6AndSaysWhichPortWasAsked) {
  auto listening = HttpServer::Listen({.listeners = {{"127.0.0.1", 0}, {"[::1]", 0}}});
  if (!listening)
    GTEST_SKIP() << "LEFT OUT: listening on IPv6; this machine has none: " << listening.error().message;
  (*listening)->Run([](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    HttpResponse response;
    response.body = std::to_string(request.port);
    reply->Send(response);
  });
  const auto ports = (*listening)->ports();
  RawClient four(ports[0]);
  RawClient six(ports[1], true);
  EXPECT_EQ(four.Ask(Get("/"))->body, std::to_string(ports[0]));
  EXPECT_EQ(six.Ask(Get("/"))->body, std::to_string(ports[1]));
  const auto taken = HttpServer::Listen({.listeners = {{"::1", ports[1]}}});
  ASSERT_FALSE(taken);
  EXPECT_TRUE(
      taken.error().message.starts_with("listening on [::1]:" + std::to_string(ports[1]) + " failed: "));
}

// A worker that inherited the listening socket would keep the port after Voda is gone.
TEST(HttpServer, ChildrenInheritNothing) {
  const auto server = Serve({}, Echo);
  RawClient client(Port(server));
  ASSERT_TRUE(client.Ask(Get("/")));
  DIR* folder = ::opendir("/proc/self/fd");
  ASSERT_NE(folder, nullptr);
  int sockets = 0;
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    char target[64] = {};
    if (::readlinkat(::dirfd(folder), entry->d_name, target, sizeof(target) - 1) <= 0) continue;
    if (!std::string_view(target).starts_with("socket:") &&
        !std::string_view(target).starts_with("anon_inode:"))
      continue;
    sockaddr_storage name{};
    socklen_t size = sizeof(name);
    const bool socket = ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0;
    if (socket && name.ss_family != AF_INET) continue;  // a socket that the test was started with
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd << " " << target;
    if (socket) ++sockets;
  }
  ::closedir(folder);
  EXPECT_EQ(sockets, 3);  // listener, its connection, our end
}

TEST(HttpServer, RubbishDoesNotStopIt) {
  HttpConfig config;
  config.read_seconds = 0.2;
  config.body_limit = 1000;
  const auto server = Serve(config, Echo);
  std::minstd_rand random(20240229);
  const std::string seed = Post("/a?b=c", "hello") + Get("/") +
                           "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n" +
                           "\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n";
  std::vector<RawClient> clients;
  for (int i = 0; i < 300; ++i) {
    std::string text = seed;
    const auto changes = random() % 12;
    for (unsigned k = 0; k < changes; ++k) text[random() % text.size()] = static_cast<char>(random() % 256);
    if (random() % 2 == 0) text.resize(random() % text.size());
    RawClient client(Port(server));
    client.Write(text);
    if (random() % 3 == 0) client.EndWriting();
    if (random() % 3 == 0) clients.push_back(std::move(client));
  }
  RawClient client(Port(server));
  EXPECT_EQ(client.Ask(Get("/alive"))->body, "GET /alive ");
  for (RawClient& other : clients) other.EndWriting();
  clients.clear();
  client.Close();
  EXPECT_TRUE(Eventually([&] { return server->open_connections() == 0; }));
}

}  // namespace
}  // namespace voda
