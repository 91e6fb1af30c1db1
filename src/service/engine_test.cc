#include "service/engine.h"

#include <future>

#include "base/clock.h"
#include "service/health.h"
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using EngineTest = testing::ServiceTest;

TEST_F(EngineTest, TasksAreCarriedOutInOrderAndAllBeforeItStops) {
  Engine engine(*service_);
  std::string order;
  EXPECT_TRUE(engine.Post([&](Service&) { order += 'a'; }));
  engine.PostAlways([&](Service&) { order += 'b'; });
  EXPECT_EQ(engine.depth(), 2U);
  engine.Run();
  engine.PostAlways([&](Service& service) {
    EXPECT_EQ(&service, service_.get());
    order += 'c';
  });
  engine.Stop();
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(engine.depth(), 0U);
  EXPECT_FALSE(engine.Post([](Service&) {})) << "nobody would carry it out";
}

TEST_F(EngineTest, WhatWasAskedForIsAnsweredBeforeItStops) {
  Engine engine(*service_);
  bool accepted = false;
  ASSERT_TRUE(engine.Post([&](Service& service) {
    service.submitter().Submit(
        ParseJobs(Yaml("x", 1, 1)).value(), {}, now_,
        [&](const Answer<std::vector<std::int64_t>>& ids) { accepted = ids && ids->size() == 1; });
    EXPECT_FALSE(accepted) << "not before it is durable";
  }));
  engine.Run();
  engine.Stop();
  EXPECT_TRUE(accepted);
}

TEST_F(EngineTest, RequestsAreRefusedWhenTooMuchWaitsAndReportsAreNot) {
  Engine engine(*service_);
  std::size_t posted = 0;
  while (engine.Post([](Service&) {})) ++posted;
  EXPECT_EQ(engine.depth(), posted);
  engine.PostAlways([](Service&) {});
  EXPECT_EQ(engine.depth(), posted + 1);
  engine.Run();
  engine.Stop();
  EXPECT_EQ(engine.depth(), 0U);
}

TEST_F(EngineTest, ATaskThatDoesNotEndIsNoticed) {
  Engine engine(*service_);
  Health health;
  health.Watch("engine", engine.pulse());
  std::promise<void> begun;
  std::promise<void> release;
  engine.PostAlways([&](Service&) {
    begun.set_value();
    release.get_future().wait();
  });
  engine.Run();
  begun.get_future().wait();
  const double later = UptimeNow() + Health::kStuckSeconds;
  EXPECT_NE(health.Stuck(later), "");
  release.set_value();
  engine.Stop();
}

}  // namespace
}  // namespace voda
