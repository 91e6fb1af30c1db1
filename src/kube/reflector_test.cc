#include "kube/reflector.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "kube/fake_io.h"
#include "kube/test_server.h"
#include "kube/transport.h"

namespace voda::kube {
namespace {

using testing::Connection;
using testing::Eventually;
using testing::FakeIo;
using testing::TestRequest;
using testing::TestServer;

const Resource kPods{.version = "v1", .plural = "pods"};

std::string Pod(const std::string& name, int version, const std::string& more = {}) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}","namespace":"ns","uid":"u-{}","resourceVersion":"{}"}}{}}})", name, name,
      version, more);
}
std::string List(const std::string& items, int version, const std::string& token = {}) {
  return fmt::format(R"({{"metadata":{{"resourceVersion":"{}","continue":"{}"}},"items":[{}]}})", version,
                     token, items);
}
std::string Line(const std::string& type, const std::string& object) {
  return fmt::format(R"({{"type":"{}","object":{}}})", type, object) + "\n";
}

// A decoded object: its name, and the size of its JSON to show that it was whole.
struct Thing {
  std::string name;
  std::string version;
};

class Notes : public TypedReflector<Thing>::Handler {
 public:
  void OnAdd(const Thing& thing) override { Write("add " + thing.name); }
  void OnUpdate(const Thing& before, const Thing& thing) override {
    Write(fmt::format("update {} {}->{}", thing.name, before.version, thing.version));
  }
  void OnDelete(const Thing& last) override { Write("delete " + last.name); }
  void OnSynced() override { Write("synced"); }
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(words_, {});
  }
  bool Has(const std::string& word) {
    const std::lock_guard lock(mutex_);
    return std::find(words_.begin(), words_.end(), word) != words_.end();
  }

 private:
  void Write(std::string word) {
    const std::lock_guard lock(mutex_);
    words_.push_back(std::move(word));
  }
  std::mutex mutex_;
  std::vector<std::string> words_;
};

Result<Thing> Decode(const ObjectHead& head, const JsonView& object, const Thing*) {
  if (object.At("/bad").present()) return Error{"it is bad"};
  return Thing{head.name, head.resource_version};
}

using Words = std::vector<std::string>;

class KubeReflector : public ::testing::Test {
 protected:
  FakeIo io;
  Counters counters;
  Notes notes;
};

TEST_F(KubeReflector, ListsWatchesAndTellsInOrder) {
  TypedReflector<Thing> reflector(
      io, counters, {.resource = kPods, .name_space = "ns", .label_selector = "a=b"}, Decode, notes);
  reflector.Start();
  EXPECT_EQ(io.Asked().path, "/api/v1/namespaces/ns/pods?labelSelector=a%3Db&limit=500");
  io.Answer(200, List(Pod("a", 1), 10, "next"));
  EXPECT_EQ(io.Asked().path, "/api/v1/namespaces/ns/pods?labelSelector=a%3Db&limit=500&continue=next");
  EXPECT_FALSE(reflector.synced());
  io.Answer(200, List(Pod("b", 2) + "," + Pod("c", 3, R"(,"bad":1)"), 10));
  EXPECT_TRUE(reflector.synced());
  EXPECT_EQ(notes.Take(), (Words{"add a", "add b", "synced"}));
  EXPECT_EQ(counters.bad_objects, 1U);
  const auto& watch = io.open.front();
  EXPECT_EQ(
      watch.request.path.find(
          "/api/v1/namespaces/ns/"
          "pods?watch=1&labelSelector=a%3Db&resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds="),
      0U)
      << watch.request.path;
  watch.stream.on_open();
  EXPECT_TRUE(
      watch.stream.on_data(Line("MODIFIED", Pod("a", 11)) + Line("DELETED", Pod("b", 12)) + "{\"type\":"));
  EXPECT_EQ(notes.Take(), (Words{"update a 1->11", "delete b"}));
  EXPECT_TRUE(reflector.HasSeen("12"));
  EXPECT_FALSE(reflector.HasSeen("13"));
  EXPECT_TRUE(watch.stream.on_data("\"MODIFIED\",\"object\":" + Pod("c", 13) + "}\n"));
  EXPECT_EQ(notes.Take(), Words{"add c"});  // the bad object is good now
  EXPECT_EQ(reflector.objects().size(), 2U);
  io.Pass(Duration(7000));
  EXPECT_EQ(reflector.Age(), Duration(7000));
}

TEST_F(KubeReflector, AnErrorInsideTheStreamEndsItAndRelists) {
  TypedReflector<Thing> reflector(io, counters, {.resource = kPods}, Decode, notes);
  reflector.Start();
  io.Answer(200, List(Pod("a", 1), 10));
  const StreamCallbacks watch = io.open.front().stream;
  io.open.clear();
  watch.on_open();
  EXPECT_FALSE(
      watch.on_data(Line("ERROR", R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})") +
                    Line("ADDED", Pod("x", 9))));
  watch.on_end(std::nullopt);
  EXPECT_EQ(io.Asked().path, "/api/v1/pods?limit=500");
  io.Answer(200, List(Pod("b", 2), 20));
  EXPECT_EQ(notes.Take(), (Words{"add a", "synced", "add b", "delete a"}));
  EXPECT_EQ(counters.relists, 1U);
  EXPECT_EQ(counters.watch_restarts, 1U);
}

TEST_F(KubeReflector, WhatIsNoListOrNoEventIsAnError) {
  TypedReflector<Thing> reflector(io, counters, {.resource = kPods}, Decode, notes);
  reflector.Start();
  for (const char* body : {"<html>", "{}", R"({"items":[],"metadata":{}})",
                           R"({"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"1"}})"}) {
    io.Answer(200, body);
    EXPECT_TRUE(io.open.empty());
    io.Pass(Duration(60'000));
    EXPECT_EQ(io.Asked().verb, Verb::kList) << body;
  }
  io.Answer(200, List("", 10));
  const StreamCallbacks watch = io.open.front().stream;
  io.open.clear();
  watch.on_open();
  EXPECT_FALSE(watch.on_data("rubbish\n"));
  watch.on_end(std::nullopt);
  io.Pass(Duration(60'000));
  EXPECT_EQ(io.Asked().verb, Verb::kList);
}

TEST_F(KubeReflector, StopsAndLeavesNothing) {
  {
    TypedReflector<Thing> reflector(io, counters, {.resource = kPods}, Decode, notes);
    reflector.Start();
    reflector.Start();
    EXPECT_EQ(io.open.size(), 1U);
  }
  EXPECT_TRUE(io.open.empty());
  EXPECT_EQ(io.timers(), 0U);
}

// Everything together: sockets, chunks cut anywhere, a watch that breaks, a 410.
TEST_F(KubeReflector, OverRealSockets) {
  std::atomic<int> lists = 0;
  std::atomic<int> watches = 0;
  TestServer server([&](const TestRequest& request, Connection& to) {
    if (request.Path().find("watch=1") == std::string::npos) {
      return to.Answer(200,
                       ++lists == 1 ? List(Pod("a", 1) + "," + Pod("b", 2), 10) : List(Pod("c", 30), 30));
    }
    const int watch = ++watches;
    to.StreamHead();
    if (watch == 1) {  // every byte a chunk, then a reset
      for (const char c : Line("MODIFIED", Pod("a", 11)) + Line("DELETED", Pod("b", 12)))
        to.Chunk(std::string_view(&c, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return to.Reset();
    }
    if (watch == 2) {
      EXPECT_NE(request.Path().find("resourceVersion=12&"), std::string::npos) << request.Path();
      to.Chunk(Line("ERROR", R"({"kind":"Status","code":410,"reason":"Expired"})"));
      return to.StreamEnd();
    }
    to.Chunk(Line("ADDED", Pod("d", 31)));
    to.Hold();
    return false;
  });
  auto transport = Transport::Create({.server = server.Url()}, {}, counters);
  ASSERT_TRUE(transport);
  {
    TypedReflector<Thing> reflector(**transport, counters, {.resource = kPods}, Decode, notes);
    reflector.Start();
    ASSERT_TRUE(Eventually([&] { return notes.Has("add d"); }));
    EXPECT_LT(reflector.Age(), Duration(10'000));
  }
  EXPECT_EQ(notes.Take(),
            (Words{"add a", "add b", "synced", "update a 1->11", "delete b", "add c", "delete a", "add d"}));
  EXPECT_EQ(counters.relists, 1U);
}

}  // namespace
}  // namespace voda::kube
