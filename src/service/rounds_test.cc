// Rounds, here and on another thread.
#include <nlohmann/json.hpp>

#include "service/test_service.h"

namespace voda {
namespace {

using testing::Yaml;
using RoundsTest = testing::ServiceTest;

TEST_F(RoundsTest, AJobStartsGrowsAndEnds) {
  const std::string name = Submit(Yaml("mnist", 1, 4));
  EXPECT_EQ(name.substr(0, 6), "mnist-");
  EXPECT_EQ(Record(name).status, JobStatus::kRunning);
  EXPECT_EQ(cluster_.running[name], (std::vector<std::string>{"a", "a", "a", "a"}));
  EXPECT_EQ(Record(name).starts, 1);
  service_->Deliver({"cpu", JobCompleted{name}}, now_ + 5);
  Settle();
  EXPECT_EQ(Record(name).status, JobStatus::kCompleted);
  EXPECT_TRUE(Record(name).ended);
  EXPECT_NEAR(Record(name).waited + Record(name).ran, *Record(name).ended - Record(name).submitted, 1e-6);
  EXPECT_EQ(cluster_.forgotten, std::vector<std::string>{name});
  EXPECT_EQ(Wait([&](auto done) { service_->changes().Hold(name, true, done); })->status, 409);
}

// The time of those who ask is not that of the next round.
TEST_F(RoundsTest, QuestionsAreNotCountedAsRounds) {
  slow_ = std::make_shared<std::atomic<bool>>(false);
  Open({{"a", 4, "cpu", {}}});
  const std::string first = Submit(Yaml("a", 4, 4));
  *slow_ = true;
  (*service_->views().AskPlan("cpu", now_))->Json();
  (*service_->views().AskExplain(first, now_))->Json();
  (*service_->views().AskDryRun(*ParseJobs(Yaml("c", 1, 1)), service_->submitter(), now_))->Json();
  *slow_ = false;
  Submit(Yaml("b", 1, 1));
  const std::string text = metrics_->Text(Metrics::Role::kAll);
  for (const std::string series : {"voda_policy_duration_seconds", "voda_round_allocation_duration_seconds",
                                   "voda_round_duration_seconds"}) {
    const std::string sum = series + "_sum{gpu_type=\"cpu\",algorithm=\"ElasticFIFO\"} ";
    const auto at = text.find(sum);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_LT(std::stod(text.substr(at + sum.size())), 0.6) << series;
  }
}

// While a program decides, which may take long, everything else goes on.
TEST_F(RoundsTest, AnExternalPolicyHoldsNothingUp) {
  external_ = true;
  Open({{"a", 4, "cpu", {}}});
  const auto answer = [&] {
    for (const auto& [gpu_type, decider] : std::exchange(asked_, {})) {
      const View& view = decider->view;
      service_->FinishRound(gpu_type, *decider, DecideTimed(view.world(), *decider->policy, view.config()),
                            now_);
    }
    Settle();
  };
  const std::string first = Submit(Yaml("a", 1, 2));
  while (!asked_.empty()) answer();
  EXPECT_EQ(Record(first).status, JobStatus::kRunning);

  const int calls = calls_;
  const std::string second = Submit(Yaml("b", 1, 2));
  EXPECT_EQ(Record(second).status, JobStatus::kWaiting);
  ASSERT_EQ(asked_.size(), 1U) << "one call at a time";
  const std::string third = Submit(Yaml("c", 1, 2));
  service_->Deliver({"cpu", JobCompleted{first}}, now_);
  EXPECT_EQ(Record(first).status, JobStatus::kCompleted);
  EXPECT_FALSE(Wait([&](auto done) { service_->changes().Hold(second, true, done); }));
  const auto explain = service_->views().AskExplain(third, now_);
  ASSERT_TRUE(explain);
  EXPECT_TRUE((*explain)->External());
  EXPECT_TRUE((*service_->views().AskPlan("cpu", now_))->External());
  EXPECT_TRUE(
      (*service_->views().AskDryRun(*ParseJobs(Yaml("d", 1, 1)), service_->submitter(), now_))->External());
  EXPECT_EQ(asked_.size(), 1U);
  EXPECT_EQ(calls_, calls) << "nothing is asked on this thread";

  answer();  // it did not know that the second is held, nor of the third
  EXPECT_EQ(Record(second).status, JobStatus::kWaiting);
  EXPECT_EQ(Record(third).status, JobStatus::kWaiting);
  ASSERT_EQ(asked_.size(), 1U) << "another round follows";
  while (!asked_.empty()) answer();
  EXPECT_EQ(Record(second).status, JobStatus::kWaiting);
  EXPECT_EQ(Record(third).status, JobStatus::kRunning);
  const auto told = nlohmann::json::parse((*service_->views().AskExplain(third, now_))->Json());
  EXPECT_TRUE(told["expected_start"].is_null());
}

TEST_F(RoundsTest, CountsLaunchersThatWereStoppedAndTimesReads) {
  const std::string name = Submit(
      "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: mpi}\nspec:\n  mpiReplicaSpecs:\n"
      "    Launcher: {template: {spec: {containers: [{name: l, command: [horovodrun]}]}}}\n"
      "    Worker: {replicas: 2, template: {spec: {containers: [{name: w}]}}}\n");
  ASSERT_EQ(Record(name).status, JobStatus::kRunning);
  EXPECT_FALSE(Wait([&](JobChanges::Done done) { service_->changes().Hold(name, true, std::move(done)); }));
  ASSERT_TRUE(service_->views().Rounds("", 0, 10));
  const std::string text = metrics_->Text(Metrics::Role::kAll);
  EXPECT_NE(text.find("voda_launchers_deleted_total{gpu_type=\"cpu\"} 1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("voda_store_read_duration_seconds_count 0\n"), std::string::npos);
}

}  // namespace
}  // namespace voda
