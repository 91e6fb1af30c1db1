// When a job's object is written to: after its operator has had its time, and when the job has its turn.
#include <gtest/gtest.h>

#include "cluster/fake_sink.h"
#include "kube/fake_io.h"
#include "kubeflow/job_driver.h"
#include "kubeflow/test_objects.h"

namespace voda::kubeflow {
namespace {

using std::chrono::milliseconds;

class TurnHost final : public DriverHost {
 public:
  kube::Io& io() override { return fake; }
  bool MayWrite() override { return true; }
  bool MaySend(const std::string&) override { return may_send; }
  bool HasSeen(const kube::Resource&, const std::string&, const std::string&) const override { return true; }
  const JobObject* FindJob(const std::string&) const override { return &job; }
  std::vector<const PodObject*> PodsOf(const std::string&) const override { return {}; }
  std::vector<TypedEvent> Ended(const std::string&) override { return {}; }
  void Stuck(const std::string&, const std::string& why) override { stuck = why; }

  double WallSeconds() const { return std::chrono::duration<double>(fake.Wall().time_since_epoch()).count(); }

  std::string stuck;
  kube::testing::FakeIo fake;
  JobObject job;
  bool may_send = true;
};

class WriteTurn : public ::testing::Test {
 protected:
  WriteTurn() {
    host_.job = testing::Job(R"({"metadata":{"name":"job","labels":{"vodascheduler/queue":"default"}},)"
                             R"("spec":{"mpiReplicaSpecs":{"Worker":{"replicas":1}}}})");
    host_.job.head = {"ns", "job", "job-uid", "1"};
    host_.job.suspended = true;
    host_.job.replicas = 1;
    host_.job.created = host_.WallSeconds();
  }
  void Start() { driver_.Execute({.id = 1, .kind = ActionKind::kStart, .gpu_type = "a100", .seats = {"a"}}); }
  std::size_t written() const { return host_.fake.open.size(); }

  TurnHost host_;
  voda::testing::FakeSink sink_;
  JobDriver driver_{host_, sink_, {.name = "ns/job", .gpu_type = "a100"}};
};

TEST_F(WriteTurn, NewJobWaitsUntilItsOperatorHasHandledItAndIsQuiet) {
  Start();
  host_.fake.Pass(milliseconds(500));
  EXPECT_EQ(written(), 0U);
  host_.job.handled = true;
  driver_.Changed();
  host_.fake.Pass(milliseconds(99));
  EXPECT_EQ(written(), 0U);
  host_.fake.Pass(milliseconds(1));
  EXPECT_EQ(written(), 1U);
}

TEST_F(WriteTurn, JobWithoutOperatorIsWrittenAfterTwoSeconds) {
  Start();
  EXPECT_EQ(host_.fake.timers(), 1U);
  host_.fake.Pass(milliseconds(1999));
  EXPECT_EQ(written(), 0U);
  host_.fake.Pass(milliseconds(1));
  EXPECT_EQ(written(), 1U);
}

TEST_F(WriteTurn, JobThatWaitedBeforeTheOrderIsWrittenAtOnce) {
  host_.fake.Pass(milliseconds(3000));
  Start();
  EXPECT_EQ(written(), 1U);
}

TEST_F(WriteTurn, ClockBehindTheServersOnlyWaitsAsEver) {
  host_.job.created = host_.WallSeconds() + 3600;
  Start();
  host_.fake.Pass(milliseconds(2000));
  EXPECT_EQ(written(), 1U);
}

TEST_F(WriteTurn, JobThatIsNeverQuietIsWrittenAfterASecond) {
  host_.job.handled = true;
  driver_.Changed();
  Start();
  for (int i = 0; i < 19; ++i) {
    host_.fake.Pass(milliseconds(50));
    driver_.Changed();
  }
  EXPECT_EQ(written(), 0U);
  host_.fake.Pass(milliseconds(50));
  EXPECT_EQ(written(), 1U);
}

TEST_F(WriteTurn, WriteIsMadeWhenItsTurnComesFromWhatIsThereThen) {
  host_.fake.Pass(milliseconds(3000));
  host_.may_send = false;
  Start();
  EXPECT_EQ(written(), 0U);
  host_.job.head.resource_version = "7";
  host_.may_send = true;
  driver_.Turn();
  ASSERT_EQ(written(), 1U);
  EXPECT_NE(host_.fake.Asked().body.find(R"("7")"), std::string::npos) << host_.fake.Asked().body;
}

}  // namespace
}  // namespace voda::kubeflow
