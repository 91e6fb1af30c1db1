#include "service/announcer.h"

#include "service/test_parts.h"

namespace voda {
namespace {

using AnnouncerTest = testing::PartsTest;

TEST_F(AnnouncerTest, AnEventHasItsTypeAndItsFields) {
  announcer_.Publish("job.resized", "a100", "x", R"("from":1,"to":2)");
  EXPECT_TRUE(Told("event: job.resized\n")) << stream_->text;
  EXPECT_TRUE(Told(R"("job":"x")")) << stream_->text;
  EXPECT_TRUE(Told(R"("gpu_type":"a100","from":1,"to":2})")) << stream_->text;
  announcer_.Publish("node.added", "a100", {});
  EXPECT_TRUE(Told(R"("gpu_type":"a100"})")) << stream_->text;
  EXPECT_TRUE(Exports(R"(voda_events_total{type="job.resized"} 1)")) << metrics_.Text(Metrics::Role::kAll);
}

TEST_F(AnnouncerTest, WithNamespacesNobodyIsToldOfOthers) {
  const std::string text = "it gave way to team-b/secret, and so did team-a/mine";
  EXPECT_EQ(announcer_.ToldOf("x", text), text);
  const Announcer told(hub_, metrics_, true);
  const std::string left = told.ToldOf("team-a/x", text);
  EXPECT_EQ(left.find("secret"), std::string::npos) << left;
  EXPECT_NE(left.find("team-a/mine"), std::string::npos) << left;
}

}  // namespace
}  // namespace voda
