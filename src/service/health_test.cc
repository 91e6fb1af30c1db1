#include "service/health.h"

#include <gtest/gtest.h>

namespace voda {
namespace {

TEST(Health, NamesTheThreadsThatDoNotMove) {
  Pulse engine;
  Pulse cluster;
  Health health;
  health.Watch("engine", engine);
  health.Watch("cluster", cluster);
  EXPECT_EQ(health.Stuck(1000), "") << "nothing to do";
  engine.Beat(1000);
  cluster.Beat(1005);
  EXPECT_EQ(health.Stuck(1009), "");
  EXPECT_EQ(health.Stuck(1012), "the engine thread has not moved for 12 s");
  EXPECT_EQ(health.Stuck(1015),
            "the engine thread has not moved for 15 s; the cluster thread has not moved for 10 s");
  engine.Beat(1015);
  EXPECT_EQ(health.Stuck(1016), "the cluster thread has not moved for 11 s");
  cluster.Rest();
  EXPECT_EQ(health.Stuck(1016), "");
}

}  // namespace
}  // namespace voda
