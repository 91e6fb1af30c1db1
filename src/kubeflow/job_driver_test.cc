#include "kubeflow/job_driver.h"

#include <gtest/gtest.h>

#include <variant>

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
    job.document = R"({"metadata":{},"spec":{}})";
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

  kube::Io& io() override { return fake; }
  bool MayWrite() override { return true; }
  bool HasSeen(const kube::Resource&, const std::string&, const std::string&) const override { return true; }
  const JobObject* FindJob(const std::string&) const override { return &job; }
  std::vector<const PodObject*> PodsOf(const std::string&) const override {
    std::vector<const PodObject*> all;
    for (const PodObject& pod : pods) all.push_back(&pod);
    return all;
  }
  void Post(const std::string&, Event event) override { posted.push_back(std::move(event)); }
  void Ended(const std::string& ended_job, const std::string&, Event event) override {
    ended.push_back(ended_job);
    posted.push_back(std::move(event));
  }
  void Failed(const std::string&, const std::string&, const std::string&, int) override {}
  void Stuck(const std::string&, const std::string& why) override { stuck = why; }

  std::string stuck;
  kube::testing::FakeIo fake;
  JobObject job;
  std::vector<PodObject> pods;
  std::vector<Event> posted;
  std::vector<std::string> ended;
};

Order Grow(ActionId id, std::vector<std::string> seats) {
  return {.id = id, .kind = ActionKind::kGrow, .seats = std::move(seats)};
}

TEST(JobDriver, ANewOrderTakesThePlaceOfOneThatIsNotReached) {
  Host host;
  host.job.replicas = 2;
  host.AddPod("a", true);
  host.AddPod("b", false);  // b is full: it is never scheduled
  JobDriver driver(host, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute(Grow(1, {"a", "b"}), "x");
  EXPECT_TRUE(host.posted.empty());
  EXPECT_NE(driver.Waits(), "");

  host.pods[1].pinned = host.pods[1].node = "c";  // made anew there
  driver.Execute(Grow(2, {"a", "c"}), "x");
  ASSERT_EQ(host.posted.size(), 1U);
  EXPECT_EQ(std::get<ActionDone>(host.posted[0]).id, 2U);
}

TEST(JobDriver, AnOrderThatIsNeverReachedIsGivenUpAndWhatCameOfItIsTold) {
  Host host;
  host.job.replicas = 2;
  host.AddPod("a", true);
  host.AddPod("b", false);
  JobDriver driver(host, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute(Grow(1, {"a", "b"}), "x");
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

TEST(JobDriver, TheEndOfAJobGoesWithWhatItsPodsStillHold) {
  Host host;
  host.AddPod("a", true);
  JobDriver driver(host, {.name = "ns/job", .gpu_type = "x", .believed = {"a"}});
  driver.Execute(Grow(1, {"a", "b"}), "x");
  host.job.end = JobObject::End::kSucceeded;
  while (!host.fake.open.empty())
    host.fake.Answer(200, R"({"metadata":{"name":"job","resourceVersion":"2"}})");
  driver.Changed();
  driver.Changed();
  EXPECT_EQ(host.ended, (std::vector<std::string>{"ns/job"}));
  ASSERT_EQ(host.posted.size(), 1U);
  EXPECT_EQ(std::get<JobCompleted>(host.posted[0]).job, "ns/job");
}

}  // namespace
}  // namespace voda::kubeflow
