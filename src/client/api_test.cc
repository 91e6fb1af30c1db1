#include "client/api.h"

#include <gtest/gtest.h>

#include <thread>

#include "client/test_server.h"
#include "document/documents.h"

namespace voda {
namespace {

using testing::TestServer;
using Request = TestServer::Request;

TEST(Api, JudgesAnswers) {
  const auto read = [](int status, const char* body) {
    return ReadAnswer(HttpAnswer{.status = status, .body = body});
  };
  EXPECT_TRUE(read(204, "").ok());
  EXPECT_EQ(read(200, "{\"a\": 1}").value["a"].Whole(), 1);
  EXPECT_EQ(ReadAnswer(Error{"gone"}).trouble, Trouble::kUnreachable);
  EXPECT_EQ(read(404, R"({"error": {"code": "not_found", "message": "no job"}})").message, "no job");
  EXPECT_EQ(read(404, "{}").trouble, Trouble::kNotFound);
  EXPECT_EQ(read(401, "{}").trouble, Trouble::kUnauthorized);
  EXPECT_EQ(read(403, "{}").trouble, Trouble::kUnauthorized);
  EXPECT_EQ(read(400, "{}").trouble, Trouble::kInvalid);
  EXPECT_EQ(read(409, "{}").trouble, Trouble::kOther);
  EXPECT_EQ(read(503, "{}").trouble, Trouble::kOther);
  EXPECT_EQ(read(302, "").trouble, Trouble::kOther);
  EXPECT_NE(read(500, "<html>").message.find("HTTP status 500"), std::string::npos);
  EXPECT_NE(read(200, "<html>").message.find("is it a Voda server?"), std::string::npos);
  EXPECT_EQ(read(400, R"({"error": {"message": "a\nb\u001b[2J"}})").message, "a\nb?[2J");
}

TEST(Api, FiltersAndPaths) {
  const JobQuery filter{
      .statuses = {JobStatus::kRunning, JobStatus::kWaiting}, .gpu_type = "a b", .category = "c"};
  EXPECT_EQ(filter.Query(), "status=Running,Waiting&gpu_type=a%20b&category=c");
  EXPECT_EQ(JobQuery().Query(), "");
  EXPECT_TRUE(filter.Matches(*ParseJson(R"({"status": "Running", "gpu_type": "a b", "category": "c"})")));
  EXPECT_FALSE(filter.Matches(*ParseJson(R"({"status": "Failed", "gpu_type": "a b", "category": "c"})")));
  EXPECT_FALSE(filter.Matches(*ParseJson(R"({"status": "Running", "gpu_type": "a", "category": "c"})")));
  EXPECT_EQ(JobPath("../x", "/logs"), "/api/v1/jobs/..%2Fx/logs");
}

TEST(Api, ReadsAllPages) {
  TestServer server([](const TestServer&, const Request& request, int fd) {
    const std::string line = request.Line();
    if (line.find("after=5") != line.npos) {
      return TestServer::Say(fd, TestServer::Answer(200, R"({"jobs": [{"id": 6}], "next": null})"));
    }
    return TestServer::Say(fd, TestServer::Answer(200, R"({"jobs": [{"id": 1}, {"id": 5}], "next": 5})"));
  });
  HttpClient http({.server = server.Url()});
  const ApiAnswer jobs = ListJobs(http, {.statuses = {JobStatus::kRunning}});
  ASSERT_TRUE(jobs.ok()) << jobs.message;
  ASSERT_EQ(jobs.value.items().size(), 3U);
  EXPECT_EQ(jobs.value.items()[2]["id"].Whole(), 6);
  EXPECT_EQ(server.Requests()[1].Line(), "GET /api/v1/jobs?limit=10000&status=Running&after=5 HTTP/1.1");
}

std::string EventText(int seq, const std::string& type) {
  return TestServer::Chunk(
      fmt::format("id: {}\nevent: {}\ndata: {{\"seq\": {}, \"type\": \"{}\", \"job\": \"j\"}}\n\n", seq, type,
                  seq, type));
}

// The streams of a server, one after the other.
struct Script {
  std::vector<std::string> streams;
  std::atomic<std::size_t> next = 0;

  TestServer::Handler Handler() {
    return [this](const TestServer&, const Request&, int fd) {
      const std::size_t turn = next++;
      if (turn < streams.size()) TestServer::Say(fd, streams[turn]);
      return false;
    };
  }
};

TEST(Api, FollowsThroughLostConnectionsAndLag) {
  const std::string head = TestServer::StreamHead();
  Script script;
  script.streams = {head + EventText(1, "a"),  // breaks off
                    head + EventText(2, "b") + EventText(2, "lagged") + "0\r\n\r\n",
                    TestServer::Answer(503, "{}"),  // is tried again
                    head + "0\r\n\r\n",             // ended by the server
                    head + EventText(3, "c") + EventText(4, "d")};
  TestServer server(script.Handler());
  HttpClient http({.server = server.Url()});
  int subscribed = 0;
  int lost = 0;
  std::string seen;
  FollowEvents follow;
  follow.job = "j 1";
  follow.on_subscribed = [&] {
    ++subscribed;
    return true;
  };
  follow.on_events = [&](const std::vector<Value>& events) {
    for (const Value& event : events) seen += event["type"].Text();
    return seen.find('c') == seen.npos;
  };
  follow.on_lost = [&](const std::string&) { ++lost; };
  const ApiAnswer end = Follow(http, follow);
  EXPECT_TRUE(end.ok()) << end.message;
  EXPECT_EQ(subscribed, 4);
  EXPECT_GE(lost, 2);
  // `b` came together with `lagged` or before it; both are right, because the new list contains it.
  EXPECT_EQ(seen.front(), 'a');
  EXPECT_NE(seen.find('c'), seen.npos);
  EXPECT_EQ(server.Requests()[0].Line(), "GET /api/v1/events?job=j%201 HTTP/1.1");
}

TEST(Api, TheFirstConnectionIsNotTriedAgain) {
  FollowEvents follow;
  follow.on_subscribed = [] { return true; };
  follow.on_events = [](const std::vector<Value>&) { return true; };
  follow.on_lost = [](const std::string&) { ADD_FAILURE() << "tried again"; };
  std::string url;
  {
    TestServer server([](const TestServer&, const Request&, int fd) {
      return TestServer::Say(fd, TestServer::Answer(404, "{}"));
    });
    url = server.Url();
    HttpClient http({.server = url});
    EXPECT_EQ(Follow(http, follow).trouble, Trouble::kNotFound);
  }
  HttpClient http({.server = url});
  EXPECT_EQ(Follow(http, follow).trouble, Trouble::kUnreachable);
}

TEST(Api, FollowingEndsAtTheDeadline) {
  TestServer server([](const TestServer& self, const Request&, int fd) {
    TestServer::Say(fd, TestServer::StreamHead());
    while (!self.stopping()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return false;
  });
  HttpClient http({.server = server.Url()});
  FollowEvents follow;
  follow.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  int subscribed = 0;
  follow.on_subscribed = [&] {
    ++subscribed;
    return true;
  };
  follow.on_events = [](const std::vector<Value>&) { return true; };
  follow.on_lost = [](const std::string&) {};
  EXPECT_TRUE(Follow(http, follow).ok());
  EXPECT_EQ(subscribed, 1);
  EXPECT_GE(std::chrono::steady_clock::now(), *follow.deadline - std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace voda
