// What the API shows, and questions about decisions.
#include <nlohmann/json.hpp>

#include "api/openapi.h"
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using ViewsTest = testing::ServiceTest;

TEST_F(ViewsTest, ADryRunSaysWhatWouldHappenAndKeepsNothing) {
  const auto asked = service_->views().AskDryRun(*ParseJobs(Yaml("a", 1, 3)), service_->submitter(), now_);
  ASSERT_TRUE(asked);
  const auto answer = nlohmann::json::parse((*asked)->Json());
  EXPECT_EQ(answer["jobs"][0]["would_get"], 3) << answer;
  EXPECT_EQ(answer["jobs"][0]["max"], 3) << answer;
  EXPECT_EQ(answer["dry_run"], true) << answer;
  EXPECT_EQ(cluster_.actions, 0);
  EXPECT_TRUE(history_->Jobs()->empty());
}

TEST_F(ViewsTest, ExplainsWhyAJobWaits) {
  const std::string first = Submit(Yaml("a", 4, 4));
  const std::string second = Submit(Yaml("b", 2, 4));
  const auto asked = service_->views().AskExplain(second, now_);
  ASSERT_TRUE(asked);
  const auto answer = nlohmann::json::parse((*asked)->Json());
  EXPECT_EQ(answer["status"], "Waiting") << answer;
  EXPECT_EQ(answer["position"], 2) << answer;
  EXPECT_EQ(answer["waiting"], 1) << answer;
  EXPECT_EQ(answer["needs_gpus"], 2) << answer;
  EXPECT_EQ(answer["free_gpus"], 0) << answer;
  EXPECT_EQ(answer["ahead"][0]["name"], first) << answer;
  EXPECT_GT(answer["expected_start"], now_) << answer;
  EXPECT_EQ(answer["now"], now_) << answer;
  EXPECT_EQ(answer["expected_start_guessed"], true) << "the other has reported nothing";
  EXPECT_FALSE(service_->views().AskExplain("nobody", now_));

  service_->Deliver({"cpu", JobCompleted{first}}, now_);
  Settle();
  const auto ended = nlohmann::json::parse((*service_->views().AskExplain(first, now_))->Json());
  EXPECT_EQ(ended["code"], "ended") << ended;
  EXPECT_EQ(ended["last_change"]["to"], 4) << ended;
  EXPECT_EQ(nlohmann::json::parse((*asked)->Json())["position"], 2) << "the view stays what it was";
}

TEST_F(ViewsTest, ExplainsWhatAStuckJobWaitsFor) {
  Submit(Yaml("a", 4, 4));
  const std::string name = Submit(Yaml("b", 2, 4));
  service_->Notice(
      {name, "cpu", JobNotice::Kind::kStuck, "b-worker-0 is not scheduled: Insufficient cpu", 0});
  const auto answer = nlohmann::json::parse((*service_->views().AskExplain(name, now_))->Json());
  EXPECT_NE(answer["text"].get<std::string>().find("Insufficient cpu"), std::string::npos) << answer;
  EXPECT_TRUE(answer["expected_start"].is_null()) << answer;
}

TEST_F(ViewsTest, ThePlanIsTold) {
  const std::string name = Submit(Yaml("a", 1, 2));
  const auto plan = nlohmann::json::parse((*service_->views().AskPlan("", now_))->Json());
  EXPECT_EQ(plan["gpu_type"], "cpu");
  EXPECT_EQ(plan["jobs"][0]["name"], name);
  EXPECT_EQ(plan["jobs"][0]["nodes"], (std::vector<std::string>{"a", "a"}));
  EXPECT_FALSE(service_->views().AskPlan("v100", now_));
}

TEST(ApiDocument, NamesTheAlgorithmsThereAre) {
  const auto document = nlohmann::json::parse(OpenApiDocument());
  std::vector<std::string> known;
  for (const PolicyInfo& info : Policies()) known.emplace_back(info.name);
  EXPECT_EQ(
      document.at("components").at("schemas").at("Algorithm").at("enum").get<std::vector<std::string>>(),
      known);
}

}  // namespace
}  // namespace voda
