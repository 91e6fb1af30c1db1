#include <gtest/gtest.h>

#include <future>

#include "base/clock.h"
#include "cluster/fake_sink.h"
#include "local/local_cluster.h"
#include "local/test_cluster.h"

namespace voda {

namespace {

// Keeps whoever reports.
class HoldingSink : public testing::FakeSink {
 public:
  void Post(std::vector<TypedEvent>) override {
    reported.set_value();
    go_on.get_future().wait();
  }
  std::promise<void> reported, go_on;
};

TEST(ClusterPulse, TellsThatTheThreadDoesNotMove) {
  const testing::Folder folder;
  HoldingSink sink;
  LocalConfig config;
  config.folder = folder.path() + "/jobs";
  auto cluster = LocalCluster::Open(config, sink);
  ASSERT_TRUE(cluster);
  const auto busy = [&] { return (*cluster)->pulse().BusySeconds(UptimeNow() + 100); };
  (*cluster)->Run();
  EXPECT_TRUE(testing::WaitFor([&] { return busy() == 0; })) << "it waits for something to do";
  (*cluster)->PortFor("cpu").Execute({.id = 1, .kind = ActionKind::kHalt, .job = "unknown"}, {});
  sink.reported.get_future().wait();
  EXPECT_GE(busy(), 99);
  sink.go_on.set_value();
  EXPECT_TRUE(testing::WaitFor([&] { return busy() == 0; }));
}

}  // namespace

}  // namespace voda
