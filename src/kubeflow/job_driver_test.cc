#include "kubeflow/job_driver.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "cluster/fake_sink.h"
#include "kube/fake_io.h"

namespace voda::kubeflow {
namespace {

// A job whose object and pods the test changes itself.
class Host final : public DriverHost {
 public:
  Host() {
    job.kind = JobKind::kPyTorchJob;
    job.resource = JobResource(job.kind, "v1");
    job.head = {"ns", "job", "job-uid", "1"};
    job.handled = true;
    job.replicas = 1;
  }

  void AddPod(const std::string& node, bool scheduled) {
    PodObject pod;
    pod.head = {"ns", "job-worker-" + std::to_string(pods.size()), std::to_string(pods.size()), "1"};
    pod.job = "job";
    pod.index = static_cast<int>(pods.size());
    pod.pinned = node;
    if (scheduled) {
      pod.node = node;
      pod.phase = PodObject::Phase::kRunning;
    }
    pods.push_back(pod);
  }

  bool Silent(const std::string& node) const override { return silent == node; }
  kube::Io& io() override { return fake; }
  bool MayWrite() override { return true; }
  bool HasSeen(const kube::Resource&, const std::string&, const std::string&) const override { return seen; }
  const JobObject* FindJob(const std::string&) const override { return &job; }
  std::vector<const PodObject*> PodsOf(const std::string&) const override {
    std::vector<const PodObject*> all;
    for (const PodObject& pod : pods) all.push_back(&pod);
    return all;
  }
  std::vector<TypedEvent> Ended(const std::string& ended_job) override {
    ended.push_back(ended_job);
    return still_held;
  }
  void Stuck(const std::string&, const std::string& why) override { stuck = why; }

  void TellUser(const std::string&, const JobWord& word) override { said.push_back(word); }

  std::string stuck;
  std::vector<JobWord> said;
  std::string silent;
  bool seen = true;
  kube::testing::FakeIo fake;
  JobObject job;
  std::vector<PodObject> pods;
  voda::testing::FakeSink sink;
  std::vector<Event>& posted = sink.posted;
  std::vector<std::string> ended;
  std::vector<TypedEvent> still_held;  // held by the pods of a job that has ended
};

Order Grow(ActionId id, std::vector<std::string> seats) {
  return {.id = id, .kind = ActionKind::kGrow, .gpu_type = "x", .seats = std::move(seats)};
}

TEST(JobDriver, ANewOrderTakesThePlaceOfOneThatIsNotReached) {
  Host host;
  host.job.replicas = 2;
  host.AddPod("a", true);
  host.AddPod("b", false);  // b is full, so the pod is never scheduled
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute(Grow(1, {"a", "b"}));
  EXPECT_TRUE(host.posted.empty());
  EXPECT_NE(driver.Waits(), "");

  host.pods[1].pinned = host.pods[1].node = "c";  // the new pod is there
  driver.Execute(Grow(2, {"a", "c"}));
  ASSERT_EQ(host.posted.size(), 1U);
  EXPECT_EQ(std::get<ActionDone>(host.posted[0]).id, 2U);
}

TEST(JobDriver, AnOrderThatIsNeverReachedIsGivenUpAndWhatCameOfItIsTold) {
  Host host;
  host.job.replicas = 2;
  host.AddPod("a", true);
  host.AddPod("b", true);
  host.pods[1].deleting = true;  // it does not end
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute(Grow(1, {"a", "b"}));
  host.fake.Pass(kube::Duration(29'000));
  EXPECT_EQ(host.stuck, "");
  host.fake.Pass(kube::Duration(270'000));
  EXPECT_NE(host.stuck, "") << "its user is told why";
  EXPECT_TRUE(host.posted.empty());
  host.fake.Pass(kube::Duration(2'000));
  ASSERT_EQ(host.posted.size(), 2U);
  EXPECT_EQ(std::get<ActionFailed>(host.posted[0]).id, 1U);
  EXPECT_EQ(std::get<WorkersObserved>(host.posted[1]).nodes, (std::vector<std::string>{"a", "b"}));
}

// Its pod is pinned and never scheduled: the node lacks something that Voda does not count.
TEST(JobDriver, AStartThatFindsNoRoomGivesItsGpusBackAndSaysWhatItWaitsFor) {
  Host host;
  host.AddPod("a", false);
  host.pods[0].reason = "0/2 nodes are available: 1 Insufficient cpu";
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x"});
  driver.Execute({.id = 1, .kind = ActionKind::kStart, .gpu_type = "x", .seats = {"a"}});
  host.fake.Pass(kube::Duration(31'000));
  ASSERT_EQ(host.sink.notices.size(), 1U);
  EXPECT_EQ(host.sink.notices[0].kind, JobNotice::Kind::kStuck);
  EXPECT_NE(host.sink.notices[0].message.find("Insufficient cpu"), std::string::npos);
  EXPECT_TRUE(host.fake.open.empty());
  host.fake.Pass(kube::Duration(90'000));
  ASSERT_EQ(host.fake.open.size(), 1U);
  EXPECT_NE(host.fake.open[0].request.body.find("/spec/runPolicy/suspend"), std::string::npos);
  host.job.suspended = true;
  host.fake.Answer(200, R"({"metadata":{"name":"job","resourceVersion":"2"}})");
  EXPECT_TRUE(host.posted.empty()) << "its pod is still there";
  host.pods.clear();
  driver.Changed();
  ASSERT_EQ(host.posted.size(), 2U);
  const auto& failed = std::get<ActionFailed>(host.posted[1]);
  EXPECT_EQ(failed.id, 1U);
  EXPECT_TRUE(failed.no_room);
  EXPECT_NE(failed.message.find("Insufficient cpu"), std::string::npos) << failed.message;
}

// Drives a start of these pods, of which some are not scheduled, until its GPUs are given back.
class NoRoomTest : public ::testing::Test {
 protected:
  void Start(int size, bool whole, int min) {
    host.job.replicas = size;
    driver.emplace(host, host.sink,
                   ManagedJob{.name = "ns/job", .gpu_type = "x", .whole = whole, .min = min});
    driver->Execute({.id = 1,
                     .kind = ActionKind::kStart,
                     .gpu_type = "x",
                     .seats = std::vector<std::string>(static_cast<std::size_t>(size), "a")});
    host.fake.Pass(kube::Duration(119'000));
    EXPECT_TRUE(host.fake.open.empty()) << "it has its time";
    EXPECT_TRUE(host.posted.empty());
    host.fake.Pass(kube::Duration(2'000));
  }
  bool Asked(const std::string& what) {
    return host.fake.open.size() == 1 &&
           (host.fake.open[0].request.path + host.fake.open[0].request.body).find(what) != std::string::npos;
  }
  // The suspension that was asked for comes about.
  void Suspend() {
    ASSERT_TRUE(Asked("/spec/runPolicy/suspend"));
    host.job.suspended = true;
    host.pods.clear();
    host.fake.Answer(200, R"({"metadata":{"name":"job","resourceVersion":"2"}})");
  }
  void ExpectGivenBack(const std::vector<std::string>& left, const std::string& why) {
    ASSERT_EQ(host.posted.size(), 2U);
    EXPECT_EQ(std::get<WorkersObserved>(host.posted[0]).nodes, left) << "first what it still holds";
    const auto& failed = std::get<ActionFailed>(host.posted[1]);
    EXPECT_TRUE(failed.no_room);
    EXPECT_NE(failed.message.find(why), std::string::npos) << failed.message;
    EXPECT_EQ(host.sink.posts, 1) << "nothing is decided between the two";
    EXPECT_EQ(driver->Waits(), "");
  }
  Host host;
  std::optional<JobDriver> driver;
};

// A ResourceQuota or a webhook refuses what the operator makes.
TEST_F(NoRoomTest, AJobOfWhichNoPodIsMadeIsHalted) {
  Start(2, false, 1);
  Suspend();
  ExpectGivenBack({}, "worker 0 has no pod yet");
}

TEST_F(NoRoomTest, AnElasticJobBelowItsMinimumIsHalted) {
  host.AddPod("a", true);
  host.AddPod("a", false);
  host.AddPod("a", false);
  Start(3, false, 2);
  Suspend();
  ExpectGivenBack({}, "is not scheduled on a");
}

TEST_F(NoRoomTest, AnElasticJobShrinksToTheWorkersThatFoundRoom) {
  host.AddPod("a", true);
  host.AddPod("a", true);
  host.AddPod("a", false);
  Start(4, false, 2);
  ASSERT_TRUE(Asked("/scale"));
  EXPECT_EQ(nlohmann::json::parse(host.fake.open[0].request.body)["spec"]["replicas"], 2);
  host.job.replicas = 2;
  host.fake.Answer(200, R"({"metadata":{"name":"job","resourceVersion":"2"}})");
  EXPECT_TRUE(host.posted.empty()) << "a pod is still there";
  host.pods.pop_back();
  driver->Changed();
  ExpectGivenBack({"a", "a"}, "is not scheduled on a");
}

TEST_F(NoRoomTest, AWholeJobOfWhichAPodIsMissingIsHalted) {
  host.AddPod("a", true);
  Start(2, true, 1);
  Suspend();
  ExpectGivenBack({}, "worker 1 has no pod yet");
}

TEST_F(NoRoomTest, AJobWhoseLauncherIsNotScheduledIsHalted) {
  host.job.kind = JobKind::kMpiJob;
  host.job.resource = JobResource(host.job.kind, "v2beta1");
  host.AddPod("a", true);
  host.AddPod("", false);
  host.pods[1].index = -1;
  host.pods[1].launcher = true;
  host.pods[1].head.name = "job-launcher";
  host.pods[1].reason = "0/2 nodes are available: 2 Insufficient memory";
  Start(1, false, 1);
  Suspend();
  ExpectGivenBack({}, "job-launcher is not scheduled: 0/2 nodes are available: 2 Insufficient memory");
}

// What opens a cycle of moves takes all workers of a small job. Its launcher runs on, so the job was not
// stopped, and what follows is no second start.
TEST(JobDriver, AVacatedJobIsNotToldToBeStopped) {
  Host host;
  host.job.kind = JobKind::kMpiJob;
  host.job.resource = JobResource(host.job.kind, "v2beta1");
  host.AddPod("a", true);
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute({.id = 1, .kind = ActionKind::kVacate, .gpu_type = "x", .seats = {""}});
  ASSERT_EQ(host.fake.open.size(), 1U) << "the pod is deleted";
  host.pods[0] = {};
  host.pods[0].head.uid = "new";
  host.pods[0].index = 0;
  host.pods[0].gated = true;
  host.fake.Answer(200, "{}");
  driver.Changed();
  driver.Changed();
  ASSERT_EQ(host.posted.size(), 1U) << "nothing was observed that was not ordered";
  EXPECT_EQ(std::get<ActionDone>(host.posted[0]).id, 1U);
  EXPECT_EQ(driver.Held(), (std::vector<std::string>{""}));

  host.job.suspended = true;  // by somebody else
  driver.Changed();
  ASSERT_EQ(host.posted.size(), 2U);
  EXPECT_TRUE(std::get<WorkersObserved>(host.posted[1]).nodes.empty());
}

TEST(JobDriver, WhoeverSuspendsAJobIsToldThatVodaStartsItAgain) {
  Host host;
  host.AddPod("a", true);
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Changed();
  EXPECT_TRUE(host.said.empty());
  host.job.suspended = true;
  driver.Changed();
  driver.Changed();
  ASSERT_EQ(host.said.size(), 1U);
  EXPECT_NE(host.said[0].message.find("voda hold ns/job"), std::string::npos) << host.said[0].message;
  host.job.suspended = false;
  driver.Changed();
  driver.Execute({.id = 1, .kind = ActionKind::kHalt, .gpu_type = "x", .seats = {}});
  host.job.suspended = true;
  driver.Changed();
  EXPECT_EQ(host.said.size(), 1U) << "this time it was Voda";
}

TEST(JobDriver, TheEndOfAJobGoesWithWhatItsPodsStillHold) {
  Host host;
  host.AddPod("a", true);
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute(Grow(1, {"a", "b"}));
  host.job.end = JobObject::End::kSucceeded;
  host.still_held = {{"x", NodeChanged{"a", 7, std::nullopt}}};
  while (!host.fake.open.empty())
    host.fake.Answer(200, R"({"metadata":{"name":"job","resourceVersion":"2"}})");
  driver.Changed();
  driver.Changed();
  EXPECT_EQ(host.ended, (std::vector<std::string>{"ns/job"}));
  ASSERT_EQ(host.posted.size(), 2U);
  EXPECT_EQ(std::get<JobCompleted>(host.posted[0]).job, "ns/job");
  EXPECT_EQ(std::get<NodeChanged>(host.posted[1]).gpus, 7);
  EXPECT_EQ(host.sink.posts, 1) << "nothing is decided between the two";
}

// The node of a worker has died: its pod is deleted, and nobody confirms its end.
TEST(JobDriver, APodThatNobodyStopsIsTakenAwayWhenItsTimeIsOver) {
  Host host;
  host.AddPod("a", true);
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute({.id = 1, .kind = ActionKind::kMove, .gpu_type = "x", .seats = {"b"}});
  ASSERT_EQ(host.fake.open.size(), 1U);
  EXPECT_EQ(host.fake.open[0].request.body.find("gracePeriodSeconds"), std::string::npos);
  const double now = std::chrono::duration<double>(host.fake.Wall().time_since_epoch()).count();
  host.pods[0].deleting = true;
  host.pods[0].gone_by = now + 30;
  host.fake.Answer(200, "{}");
  driver.Changed();
  host.silent = "a";
  host.fake.Pass(kube::Duration(29'000));
  EXPECT_TRUE(host.fake.open.empty()) << "it has its time";
  host.fake.Pass(kube::Duration(2'000));
  ASSERT_EQ(host.fake.open.size(), 1U);
  const auto body = nlohmann::json::parse(host.fake.open[0].request.body);
  EXPECT_EQ(body["gracePeriodSeconds"], 0);
  EXPECT_EQ(body["preconditions"]["uid"], "0");
  host.fake.Answer(200, "{}");
  host.fake.Pass(kube::Duration(20'000));
  EXPECT_TRUE(host.fake.open.empty()) << "once; the watch will show it";
  host.pods[0] = {};
  host.pods[0].head.uid = "new";
  host.pods[0].index = 0;
  host.pods[0].gated = true;
  driver.Changed();
  ASSERT_EQ(host.fake.open.size(), 1U);
  EXPECT_NE(host.fake.open[0].request.body.find("schedulingGates"), std::string::npos);
}

TEST(JobDriver, OneOnANodeThatAnswersIsWaitedFor) {
  Host host;
  host.AddPod("a", true);
  host.pods[0].deleting = true;
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute({.id = 1, .kind = ActionKind::kMove, .gpu_type = "x", .seats = {"b"}});
  host.fake.Pass(kube::Duration(250'000));
  EXPECT_TRUE(host.fake.open.empty());
}

// A rule of the cluster refuses Voda's write, with the same code as for a patch that came too late.
TEST(JobDriver, ARefusedWriteIsTriedAgainAfterATimeAndItsReasonIsTold) {
  Host host;
  host.AddPod("", false);
  host.pods[0].gated = true;
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x"});
  driver.Execute({.id = 1, .kind = ActionKind::kStart, .gpu_type = "x", .seats = {"a"}});
  int sent = 0;
  for (int second = 0; second < 60; ++second) {
    for (; !host.fake.open.empty(); ++sent)
      host.fake.Answer(422,
                       R"({"kind":"Status","code":422,"reason":"Invalid","message":"no pins on Monday"})");
    host.fake.Pass(kube::Duration(1'000));
  }
  EXPECT_GE(sent, 5);
  EXPECT_LE(sent, 8) << "after 1, 2, 4, 8, 16 and 30 s";
  EXPECT_NE(host.stuck.find("no pins on Monday"), std::string::npos) << host.stuck;
}

TEST(JobDriver, WritesThatFailTogetherAreTriedAgainTogetherAndSoon) {
  Host host;
  host.job.replicas = 8;
  for (int i = 0; i < 8; ++i) {
    host.AddPod("", false);
    host.pods.back().gated = true;
  }
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x"});
  driver.Execute(
      {.id = 1, .kind = ActionKind::kStart, .gpu_type = "x", .seats = std::vector<std::string>(8, "a")});
  for (const kube::Duration wait : {kube::Duration(1'000), kube::Duration(2'000), kube::Duration(4'000)}) {
    ASSERT_EQ(host.fake.open.size(), 8U);
    while (!host.fake.open.empty()) host.fake.Answer(500, "boom");
    host.fake.Pass(wait - kube::Duration(1));
    ASSERT_TRUE(host.fake.open.empty());
    host.fake.Pass(kube::Duration(1));
  }
  EXPECT_EQ(host.fake.open.size(), 8U);
}

TEST(JobDriver, AWriteThatCameTooLateIsMadeAnewWhenTheChangeIsSeen) {
  Host host;
  host.AddPod("", false);
  host.pods[0].gated = true;
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x"});
  driver.Execute({.id = 1, .kind = ActionKind::kStart, .gpu_type = "x", .seats = {"a"}});
  host.fake.Answer(409, R"({"kind":"Status","code":409,"reason":"Conflict","message":"modified"})");
  EXPECT_TRUE(host.fake.open.empty());
  driver.Changed();
  EXPECT_EQ(host.fake.open.size(), 1U);
  driver.Changed();  // it comes before the answer
  host.fake.Answer(409, R"({"kind":"Status","code":409,"reason":"Conflict","message":"modified"})");
  EXPECT_EQ(host.fake.open.size(), 1U);
}

TEST(JobDriver, WhatIsForbiddenIsToldToTheUserAtOnce) {
  Host host;
  host.AddPod("", false);
  host.pods[0].gated = true;
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x"});
  driver.Execute({.id = 1, .kind = ActionKind::kStart, .gpu_type = "x", .seats = {"a"}});
  host.fake.Answer(403, R"({"kind":"Status","code":403,"reason":"Forbidden","message":"denied by policy"})");
  EXPECT_NE(host.stuck.find("denied by policy"), std::string::npos) << host.stuck;
  ASSERT_FALSE(host.posted.empty());
  EXPECT_EQ(std::get<ActionFailed>(host.posted[0]).id, 1U);
}

// The size is changed through /scale, which has no room for the state.
TEST(JobDriver, AResizedPyTorchJobHasItsStateOnTheObjectWhenTheResizeIsDone) {
  Host host;
  host.AddPod("a", true);
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Note(R"({"job":"ns/job"})");
  driver.Execute(Grow(1, {"a", "b"}));
  host.fake.Pass(kube::Duration(1'000));
  ASSERT_EQ(host.fake.open.size(), 1U);
  EXPECT_NE(host.fake.open[0].request.path.find("/scale"), std::string::npos);
  host.job.replicas = 2;
  host.AddPod("b", true);
  host.fake.Answer(200, R"({"metadata":{"name":"job","resourceVersion":"2"}})");
  ASSERT_FALSE(host.posted.empty());
  EXPECT_EQ(std::get<ActionDone>(host.posted[0]).id, 1U);
  ASSERT_EQ(host.fake.open.size(), 1U);
  const auto body = nlohmann::json::parse(host.fake.open[0].request.body);
  EXPECT_EQ(body["metadata"]["uid"], "job-uid");
  EXPECT_EQ(body["metadata"]["annotations"]["vodascheduler/state"], R"({"job":"ns/job"})");
  host.fake.Answer(200, R"({"metadata":{"name":"job","resourceVersion":"3"}})");
  driver.Changed();
  EXPECT_TRUE(host.fake.open.empty());
}

// kubectl scale: the size is told as it is seen, and the order of the size that was decided writes it back.
TEST(JobDriver, ASizeThatOthersWroteIsToldAndWrittenBack) {
  Host host;
  host.AddPod("a", true);
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  host.job.replicas = 8;
  for (int i = 1; i < 8; ++i) {
    host.AddPod("", false);
    host.pods.back().gated = true;
  }
  driver.Changed();
  ASSERT_EQ(host.posted.size(), 1U);
  std::vector<std::string> seen(8);
  seen[0] = "a";
  EXPECT_EQ(std::get<WorkersObserved>(host.posted[0]).nodes, seen);
  driver.Execute({.id = 1, .kind = ActionKind::kShrink, .gpu_type = "x", .seats = {"a"}});
  host.fake.Pass(kube::Duration(1'000));
  ASSERT_EQ(host.fake.open.size(), 1U);
  EXPECT_NE(host.fake.open[0].request.path.find("/scale"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(host.fake.open[0].request.body)["spec"]["replicas"], 1);
}

TEST(JobDriver, AVersionThatIsNeverSeenDoesNotHoldTheJobForEver) {
  Host host;
  host.seen = false;  // the server was set back to an old backup
  host.AddPod("", false);
  host.pods[0].gated = true;
  JobDriver driver(host, host.sink, {.name = "ns/job", .gpu_type = "x"});
  driver.Execute({.id = 1, .kind = ActionKind::kStart, .gpu_type = "x", .seats = {"a"}});
  host.fake.Answer(200, R"({"metadata":{"name":"p","resourceVersion":"999"}})");
  host.fake.Pass(kube::Duration(50'000));
  EXPECT_TRUE(host.fake.open.empty());
  host.fake.Pass(kube::Duration(11'000));
  EXPECT_EQ(host.fake.open.size(), 1U);
}

}  // namespace
}  // namespace voda::kubeflow
