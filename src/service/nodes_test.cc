// Nodes that users declare.
#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using NodesTest = testing::ServiceTest;

TEST_F(NodesTest, ADrainedNodeStaysDrained) {
  Open({{"a", 2, "cpu", {}}, {"b", 2, "cpu", {}}});
  const std::string name = Submit(Yaml("x", 2, 2));
  const std::string at = cluster_.running[name].front();
  service_->nodes().SetState(at, NodeState::kLost, [](const auto&) {});
  Settle();
  EXPECT_NE(cluster_.running[name].front(), at);
  Open({{"a", 2, "cpu", {}}, {"b", 2, "cpu", {}}});
  EXPECT_NE((*service_->views().Node(at)).find("draining"), std::string::npos);
}

TEST_F(NodesTest, NodesComeAndGo) {
  const std::string name = Submit(Yaml("x", 6, 6));
  EXPECT_EQ(Record(name).status, JobStatus::kWaiting);
  EXPECT_NE(Record(name).warnings.find("does not fit"), std::string::npos) << Record(name).warnings;
  service_->nodes().Add({"n", 2, "cpu", {}}, [](const auto& refusal) { EXPECT_FALSE(refusal); });
  Settle();
  EXPECT_EQ(Record(name).status, JobStatus::kRunning);
  Open({{"a", 4, "cpu", {}}});  // the added node is remembered
  EXPECT_EQ(Record(name).status, JobStatus::kRunning);
  std::optional<Refusal> refusal;
  service_->nodes().Add({"n", 2, "cpu", {}}, [&](const auto& answer) { refusal = answer; });
  EXPECT_EQ(refusal->status, 409);
  service_->nodes().Remove("n", [](const auto& answer) { EXPECT_FALSE(answer); });
  Settle();
  EXPECT_EQ(Record(name).status, JobStatus::kWaiting);
}

TEST_F(NodesTest, ANodeIsAddedAndRemovedOnce) {
  std::vector<int> answers;
  const auto done = [&](const std::optional<Refusal>& refusal) {
    answers.push_back(refusal ? refusal->status : 200);
  };
  service_->nodes().Add({"n", 2, "cpu", {}}, done);
  service_->nodes().Add({"n", 3, "cpu", {}}, done);
  EXPECT_TRUE(answers.empty());  // the first may still fail
  Settle();
  EXPECT_EQ(answers, (std::vector<int>{200, 409}));
  EXPECT_NE((*service_->views().Node("n")).find("\"gpus\":2"), std::string::npos);
  answers.clear();
  service_->nodes().Remove("n", done);
  service_->nodes().SetState("n", NodeState::kCordoned, done);
  service_->nodes().Remove("n", done);
  Settle();
  EXPECT_EQ(answers, (std::vector<int>{200, 404, 404}));
  Open({{"a", 4, "cpu", {}}});
  EXPECT_FALSE(service_->views().Node("n"));
}

TEST_F(NodesTest, ANodeThatTheStoreRefusesMayBeAddedAgain) {
  std::vector<int> answers;
  const auto done = [&](const std::optional<Refusal>& refusal) {
    answers.push_back(refusal ? refusal->status : 200);
  };
  service_->nodes().Add({"n", 2, "cpu", {}}, done);
  service_->nodes().Add({"n", 3, "cpu", {}}, done);
  BreakTheCommit();
  Settle();
  EXPECT_EQ(answers, (std::vector<int>{503, 200})) << "the second is tried after the first";
  EXPECT_NE(service_->views().Node("n")->find("\"gpus\":3"), std::string::npos);
}

}  // namespace
}  // namespace voda
