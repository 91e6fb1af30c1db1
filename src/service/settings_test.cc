// Algorithm and rate limit, set at run time.
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using SettingsTest = testing::ServiceTest;

TEST_F(SettingsTest, AnUnknownAlgorithmChangesNothing) {
  std::optional<Refusal> refusal;
  service_->settings().Set("", {.algorithm = "Best", .options = {}, .rate_limit = 5},
                           [&](const std::optional<Refusal>& answer) { refusal = answer; });
  Settle();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 400);
  EXPECT_NE(refusal->message.find("ElasticTiresias"), std::string::npos) << refusal->message;
  EXPECT_NE((*service_->views().Settings("cpu")).find("ElasticFIFO"), std::string::npos);
  EXPECT_NE((*service_->views().Settings("cpu")).find("\"rate_limit_seconds\":0"), std::string::npos);
  // A program of the caller's choice is not for requests to name.
  service_->settings().Set("", {.algorithm = "exec:/bin/true", .options = {}, .rate_limit = {}},
                           [&](const std::optional<Refusal>& answer) { refusal = answer; });
  EXPECT_EQ(refusal->status, 400);
}

TEST_F(SettingsTest, SettingsSurviveARestart) {
  service_->settings().Set("", {.algorithm = "Tiresias", .options = {}, .rate_limit = 7}, [](const auto&) {});
  Settle();
  Open({{"a", 4, "cpu", {}}});
  const std::string settings = (*service_->views().Settings("cpu"));
  EXPECT_NE(settings.find("\"algorithm\":\"Tiresias\""), std::string::npos) << settings;
  EXPECT_NE(settings.find("\"rate_limit_seconds\":7"), std::string::npos) << settings;
}

TEST_F(SettingsTest, AnotherAlgorithmDoesNotWaitForTheExternalOne) {
  external_ = true;
  Open({{"a", 4, "cpu", {}}});
  const std::string name = Submit(Yaml("a", 1, 4));
  ASSERT_FALSE(asked_.empty());
  const auto late = std::exchange(asked_, {}).front();
  Settings::Change settings;
  settings.algorithm = "FIFO";
  service_->settings().Set("cpu", settings,
                           [](const std::optional<Refusal>& refusal) { EXPECT_FALSE(refusal); });
  Settle();
  EXPECT_EQ(cluster_.running[name].size(), 1U);
  const int before = cluster_.actions;
  const View& view = late.second->view;
  service_->FinishRound(late.first, *late.second,
                        DecideTimed(view.world(), *late.second->policy, view.config()), now_);
  Settle();
  EXPECT_EQ(cluster_.actions, before);
}

}  // namespace
}  // namespace voda
