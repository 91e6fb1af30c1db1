// The service on a real store, with a cluster that does at once what it is told.
#include "service/service.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/openapi.h"
#include "base/log.h"

namespace voda {
namespace {

// Carries every action out when it is asked for outcomes; remembers what runs, as a machine would.
class ObedientCluster final : public JobCluster {
 public:
  std::vector<std::string> AddJob(const ClusterJob& job, bool known) override {
    return known ? running[job.name] : std::vector<std::string>();
  }
  void ForgetJob(const std::string& name) override {
    running.erase(name);
    forgotten.push_back(name);
  }
  void EraseJob(std::int64_t id) override { erased.push_back(id); }
  Cluster& PortFor(const std::string& gpu_type) override {
    auto& port = ports_[gpu_type];
    if (!port) port = std::make_unique<Port>(*this, gpu_type);
    return *port;
  }
  int Failures(const std::string&) const override { return 0; }

  std::map<std::string, std::vector<std::string>> running;  // job -> node of each worker
  std::vector<std::string> forgotten;
  std::vector<std::int64_t> erased;
  std::vector<std::pair<std::string, ActionId>> done;  // not yet reported
  int actions = 0;

 private:
  class Port final : public Cluster {
   public:
    Port(ObedientCluster& cluster, std::string gpu_type)
        : cluster_(cluster), gpu_type_(std::move(gpu_type)) {}
    void Execute(const Action& action, const std::vector<Node>& nodes) override {
      ++cluster_.actions;
      auto& workers = cluster_.running[action.job];
      workers.clear();
      for (const NodeIndex at : action.workers) {
        workers.push_back(at == kNoNode ? std::string() : nodes[static_cast<std::size_t>(at)].name);
      }
      cluster_.done.emplace_back(gpu_type_, action.id);
    }

   private:
    ObedientCluster& cluster_;
    std::string gpu_type_;
  };
  std::map<std::string, std::unique_ptr<Port>> ports_;
};

std::string Yaml(const std::string& name, int min, int max, const std::string& type = {}) {
  const std::string selector =
      type.empty() ? "" : "          nodeSelector: {vodascheduler/accelerator: " + type + "}\n";
  return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: " + name +
         "}\nspec:\n  elasticPolicy: {minReplicas: " + std::to_string(min) +
         ", maxReplicas: " + std::to_string(max) +
         "}\n  pytorchReplicaSpecs:\n    Worker:\n      replicas: " + std::to_string(min) +
         "\n      template:\n        spec:\n" + selector +
         "          containers: [{name: pytorch, image: none, command: [sleep, \"100\"], env: [{name: "
         "EPOCHS, value: \"10\"}]}]\n";
}

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    SetLog({std::getenv("VODA_TEST_LOG") != nullptr ? LogLevel::kInfo : LogLevel::kError, false});
    std::string pattern = ::testing::TempDir() + "/voda-service-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    Open({{"a", 4, "cpu", {}}});
  }
  ~ServiceTest() override {
    service_.reset();
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  // A new run of Voda on the same folder and machine.
  void Open(std::vector<DeclaredNode> nodes) {
    service_.reset();
    database_.reset();
    auto database = Database::Open(folder_ + "/voda.db");
    ASSERT_TRUE(database) << database.error().message;
    database_ = std::move(*database);
    ServiceConfig config;
    config.nodes = std::move(nodes);
    config.core.rate_limit = 0;
    config.algorithm = "ElasticFIFO";
    config.make_policy = [](const std::string& name, const PolicyOptions& options) {
      return MakePolicy(name, options);
    };
    config.jobs_folder = folder_;
    metrics_ = std::make_unique<Metrics>("test");
    hub_ = std::make_unique<EventHub>(EventHub::Config{});
    service_ = std::make_unique<Service>(config, *database_, cluster_, *hub_, *metrics_);
    const Status restored = service_->Restore(now_);
    ASSERT_TRUE(restored) << restored.error().message;
    Settle();
  }

  void Settle() {
    for (int i = 0; i < 10; ++i) {
      now_ += 1;
      service_->Step(now_);
      auto done = std::exchange(cluster_.done, {});
      for (const auto& [type, id] : done) service_->Deliver(type, ActionDone{id}, now_);
    }
  }

  // The name of the accepted job, or the refusal's message.
  std::string Submit(const std::string& yaml, std::optional<Service::Idempotency> key = {}) {
    auto specs = ParseJobs(yaml);
    if (!specs) return specs.error().message;
    std::string name;
    service_->Submit(std::move(*specs), std::move(key), now_, [&](Answer<std::vector<std::int64_t>> ids) {
      if (const auto* refusal = std::get_if<Refusal>(&ids)) {
        name = refusal->message;
      } else {
        name = service_->Find(std::get<0>(ids).front())->record.name;
      }
    });
    Settle();
    return name;
  }

  std::optional<Refusal> Wait(std::function<void(Service::Done)> command) {
    std::optional<Refusal> refusal;
    bool called = false;
    command([&](Answer<std::vector<std::int64_t>> ids) {
      called = true;
      if (const auto* refused = std::get_if<Refusal>(&ids)) refusal = *refused;
    });
    Settle();
    EXPECT_TRUE(called);
    return refusal;
  }

  // Of the transaction under way.
  void BreakTheCommit() {
    JobRecord nobody;
    nobody.id = 1'000'000;
    database_->UpdateJob(nobody);
  }

  const JobRecord& Record(const std::string& name) { return service_->Find(name)->record; }

  double now_ = 1'700'000'000;
  std::string folder_;
  ObedientCluster cluster_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<EventHub> hub_;
  std::unique_ptr<Service> service_;
};

TEST_F(ServiceTest, NothingIsAnsweredBeforeItIsDurable) {
  bool answered = false;
  service_->Submit(*ParseJobs(Yaml("a", 1, 2)), {}, now_, [&](Answer<std::vector<std::int64_t>> ids) {
    answered = true;
    ASSERT_EQ(ids.index(), 0U);
  });
  EXPECT_FALSE(answered);
  service_->Step(now_);
  EXPECT_TRUE(answered);
  const auto stored = database_->Jobs({});
  ASSERT_TRUE(stored);
  ASSERT_EQ(stored->size(), 1U);
}

TEST_F(ServiceTest, AJobStartsGrowsAndEnds) {
  const std::string name = Submit(Yaml("mnist", 1, 4));
  EXPECT_EQ(name.substr(0, 6), "mnist-");
  EXPECT_EQ(Record(name).status, "Running");
  EXPECT_EQ(cluster_.running[name], (std::vector<std::string>{"a", "a", "a", "a"}));
  EXPECT_EQ(Record(name).starts, 1);
  service_->Deliver("cpu", JobCompleted{name}, now_ + 5);
  Settle();
  EXPECT_EQ(Record(name).status, "Completed");
  EXPECT_TRUE(Record(name).ended);
  EXPECT_NEAR(Record(name).waited + Record(name).ran, *Record(name).ended - Record(name).submitted, 1e-6);
  EXPECT_EQ(cluster_.forgotten, std::vector<std::string>{name});
  EXPECT_EQ(Wait([&](auto done) { service_->Hold(name, true, done); })->status, 409);
}

TEST_F(ServiceTest, AnEndedJobIsErasedWithItsFiles) {
  const std::string name = Submit(Yaml("a", 1, 4));
  const std::int64_t id = Record(name).id;
  EXPECT_EQ(Wait([&](auto then) { service_->Erase(name, then); })->status, 409) << "it runs";
  service_->Deliver("cpu", JobCompleted{name}, now_ + 5);
  Settle();
  EXPECT_EQ(Wait([&](auto then) { service_->Delete(name, then); })->status, 409) << "its checkpoints stay";
  int accepted = 0;
  const auto done = [&](Answer<std::vector<std::int64_t>> ids) { accepted += ids.index() == 0 ? 1 : 0; };
  service_->Erase(name, done);
  BreakTheCommit();
  service_->Step(now_);
  EXPECT_EQ(accepted, 0);
  ASSERT_NE(service_->Find(name), nullptr);
  EXPECT_TRUE(cluster_.erased.empty());
  service_->Erase(name, done);
  service_->Erase(name, done);  // asked again before it was answered
  service_->Notice({name, "cpu", JobNotice::Kind::kWorkerFailed, "late", 1}, now_);
  Settle();
  EXPECT_EQ(accepted, 2);
  EXPECT_EQ(service_->store_error(), "");
  EXPECT_EQ(service_->Find(name), nullptr);
  EXPECT_EQ(cluster_.erased, std::vector<std::int64_t>{id});
  EXPECT_EQ(Wait([&](auto then) { service_->Erase(name, then); })->status, 404);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(service_->Find(name), nullptr);
}

TEST_F(ServiceTest, TheGpuTypeMustBeOneThereIs) {
  EXPECT_NE(Submit(Yaml("x", 1, 1, "v100")).find("there is cpu"), std::string::npos);
  Open({{"a", 4, "cpu", {}}, {"b", 4, "v100", {}}});
  EXPECT_NE(Submit(Yaml("x", 1, 1)).find("there are several (cpu, v100)"), std::string::npos);
  const std::string name = Submit(Yaml("x", 1, 1, "v100"));
  EXPECT_EQ(cluster_.running[name], std::vector<std::string>{"b"});
}

TEST_F(ServiceTest, SeveralDocumentsAreAcceptedTogetherOrNotAtAll) {
  EXPECT_NE(Submit(Yaml("a", 1, 1) + "---\n" + Yaml("b", 1, 1, "v100")).find("v100"), std::string::npos);
  EXPECT_TRUE(database_->Jobs({})->empty());
  Submit(Yaml("a", 1, 1) + "---\n" + Yaml("a", 1, 1));
  const auto jobs = database_->Jobs({});
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_NE((*jobs)[0].name, (*jobs)[1].name);
}

TEST_F(ServiceTest, AKeyGivesTheSameJobOnce) {
  const std::string first = Submit(Yaml("a", 1, 1), Service::Idempotency{"key", "hash"});
  EXPECT_EQ(Submit(Yaml("a", 1, 1), Service::Idempotency{"key", "hash"}), first);
  EXPECT_EQ(database_->Jobs({})->size(), 1U);
  EXPECT_NE(Submit(Yaml("b", 1, 1), Service::Idempotency{"key", "other"}).find("another body"),
            std::string::npos);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Submit(Yaml("a", 1, 1), Service::Idempotency{"key", "hash"}), first);
}

TEST_F(ServiceTest, TwoRequestsWithOneKeyInOneBatchAreOneJob) {
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 2; ++i) {
    service_->Submit(
        *ParseJobs(Yaml("a", 1, 1)), Service::Idempotency{"key", "hash"}, now_,
        [&](Answer<std::vector<std::int64_t>> accepted) { ids.push_back(std::get<0>(accepted).front()); });
  }
  Settle();
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_EQ(database_->Jobs({})->size(), 1U);
}

TEST_F(ServiceTest, ADryRunSaysWhatWouldHappenAndKeepsNothing) {
  const auto answer = service_->DryRun(*ParseJobs(Yaml("a", 1, 3)), now_);
  ASSERT_EQ(answer.index(), 0U);
  EXPECT_NE(std::get<0>(answer).find("\"would_get\":3"), std::string::npos) << std::get<0>(answer);
  EXPECT_EQ(cluster_.actions, 0);
  EXPECT_TRUE(database_->Jobs({})->empty());
}

TEST_F(ServiceTest, HeldJobsGiveTheirGpusBack) {
  const std::string name = Submit(Yaml("a", 1, 2));
  EXPECT_FALSE(Wait([&](auto done) { service_->Hold(name, true, done); }));
  EXPECT_TRUE(cluster_.running[name].empty());
  EXPECT_EQ(Record(name).status, "Waiting");
  Open({{"a", 4, "cpu", {}}});  // held over a restart
  EXPECT_TRUE(cluster_.running[name].empty());
  EXPECT_FALSE(Wait([&](auto done) { service_->Hold(name, false, done); }));
  EXPECT_EQ(cluster_.running[name].size(), 2U);
  EXPECT_EQ(Record(name).starts, 2);
}

TEST_F(ServiceTest, LimitsChangeWhileItRuns) {
  const std::string name = Submit(Yaml("a", 1, 4));
  Changes changes;
  changes.max = 2;
  EXPECT_FALSE(Wait([&](auto done) { service_->Change(name, changes, done); }));
  EXPECT_EQ(cluster_.running[name].size(), 2U);
  changes.max = 0;
  EXPECT_EQ(Wait([&](auto done) { service_->Change(name, changes, done); })->status, 400);
  EXPECT_EQ(Record(name).max, 2);
  EXPECT_EQ(Wait([&](auto done) { service_->Change("nobody", changes, done); })->status, 404);
}

TEST_F(ServiceTest, RequestsOfOneBatchAboutOneJobAllCount) {
  const std::string name = Submit(Yaml("a", 1, 2));
  int accepted = 0;
  const auto done = [&](Answer<std::vector<std::int64_t>> ids) { accepted += ids.index() == 0 ? 1 : 0; };
  Changes priority;
  priority.priority = 5;
  Changes max;
  max.max = 3;
  Changes min;
  min.min = 3;  // holds with the other's max only
  service_->Change(name, priority, done);
  service_->Hold(name, true, done);
  service_->Change(name, max, done);
  service_->Change(name, min, done);
  ProgressReport report;  // writes the job in the same transaction
  EXPECT_FALSE(service_->Progress(name, Record(name).token, report, now_));
  service_->Step(now_);
  EXPECT_EQ(accepted, 4);
  const auto check = [&](const JobRecord& record) {
    EXPECT_EQ(record.priority, 5);
    EXPECT_TRUE(record.held);
    EXPECT_EQ(record.min, 3);
    EXPECT_EQ(record.num, 3);
    EXPECT_EQ(record.max, 3);
    EXPECT_EQ(record.epoch, 1);
  };
  check(Record(name));
  check(database_->Jobs({})->front());
  Open({{"a", 4, "cpu", {}}});
  check(Record(name));
}

TEST_F(ServiceTest, ADeletionIsNotUndoneByWhatComesWithIt) {
  const std::string name = Submit(Yaml("a", 1, 2));
  Changes changes;
  changes.priority = 5;
  std::optional<int> held;
  service_->Delete(name, [](const Answer<std::vector<std::int64_t>>&) {});
  service_->Change(name, changes, [](const Answer<std::vector<std::int64_t>>&) {});
  service_->Hold(name, true, [&](Answer<std::vector<std::int64_t>> ids) { held = std::get<1>(ids).status; });
  EXPECT_EQ(held, 409);  // it is being stopped
  service_->Step(now_);
  EXPECT_TRUE(database_->Jobs({})->front().deleting);
  cluster_.running[name] = {"a"};
  cluster_.done.clear();
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(name).status, "Canceled");
}

TEST_F(ServiceTest, ChangesThatTheStoreRefusesLeaveNothing) {
  const std::string name = Submit(Yaml("a", 1, 2));
  Changes changes;
  changes.priority = 5;
  int refused = 0;
  const auto done = [&](Answer<std::vector<std::int64_t>> ids) { refused += ids.index() == 1 ? 1 : 0; };
  service_->Change(name, changes, done);
  service_->Hold(name, true, done);
  BreakTheCommit();
  service_->Step(now_);
  EXPECT_EQ(refused, 2);
  Changes max;
  max.max = 3;
  EXPECT_FALSE(Wait([&](auto then) { service_->Change(name, max, then); }));
  EXPECT_EQ(Record(name).priority, 0);
  EXPECT_FALSE(Record(name).held);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(name).priority, 0);
  EXPECT_FALSE(Record(name).held);
  EXPECT_EQ(Record(name).max, 3);
}

TEST_F(ServiceTest, ARestartWritesNothingToTheCluster) {
  const std::string a = Submit(Yaml("a", 1, 2));
  const std::string b = Submit(Yaml("b", 2, 2));
  Submit(Yaml("c", 4, 4));
  const int before = cluster_.actions;
  const double waited = Record(b).waited;
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(cluster_.actions, before);
  EXPECT_EQ(Record(a).status, "Running");
  EXPECT_EQ(Record(a).starts, 1);
  EXPECT_GE(Record(b).waited, waited);
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(cluster_.actions, before);
}

TEST_F(ServiceTest, TimesGoOnOverARestart) {
  const std::string name = Submit(Yaml("a", 2, 2));
  now_ += 100;
  Open({{"a", 4, "cpu", {}}});
  Settle();
  service_->Deliver("cpu", JobCompleted{name}, now_);
  Settle();
  const JobRecord& record = Record(name);
  EXPECT_GT(record.ran, 100);
  EXPECT_NEAR(record.waited + record.ran, *record.ended - record.submitted, 1e-6);
  EXPECT_NEAR(record.gpu_seconds, 2 * record.ran, 1e-6);
}

TEST_F(ServiceTest, ADeletionIsNotForgottenOverARestart) {
  const std::string name = Submit(Yaml("a", 1, 1));
  bool answered = false;
  service_->Delete(name, [&](Answer<std::vector<std::int64_t>>) { answered = true; });
  service_->Step(now_);  // committed; the workers have not been reported as stopped
  ASSERT_TRUE(answered);
  cluster_.running[name] = {"a"};
  cluster_.done.clear();
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(Record(name).status, "Canceled");
  EXPECT_TRUE(cluster_.running[name].empty());
}

TEST_F(ServiceTest, AnUnknownAlgorithmChangesNothing) {
  std::optional<Refusal> refusal;
  service_->Set("", {.algorithm = "Best", .options = {}, .rate_limit = 5},
                [&](const std::optional<Refusal>& answer) { refusal = answer; });
  Settle();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 400);
  EXPECT_NE(refusal->message.find("ElasticTiresias"), std::string::npos) << refusal->message;
  EXPECT_NE(std::get<0>(service_->SettingsJson("cpu")).find("ElasticFIFO"), std::string::npos);
  EXPECT_NE(std::get<0>(service_->SettingsJson("cpu")).find("\"rate_limit_seconds\":0"), std::string::npos);
  // A program of the caller's choice is not for requests to name.
  service_->Set("", {.algorithm = "exec:/bin/true", .options = {}, .rate_limit = {}},
                [&](const std::optional<Refusal>& answer) { refusal = answer; });
  EXPECT_EQ(refusal->status, 400);
}

TEST_F(ServiceTest, SettingsSurviveARestart) {
  service_->Set("", {.algorithm = "Tiresias", .options = {}, .rate_limit = 7}, [](const auto&) {});
  Settle();
  Open({{"a", 4, "cpu", {}}});
  const std::string settings = std::get<0>(service_->SettingsJson("cpu"));
  EXPECT_NE(settings.find("\"algorithm\":\"Tiresias\""), std::string::npos) << settings;
  EXPECT_NE(settings.find("\"rate_limit_seconds\":7"), std::string::npos) << settings;
}

TEST_F(ServiceTest, ADrainedNodeStaysDrained) {
  Open({{"a", 2, "cpu", {}}, {"b", 2, "cpu", {}}});
  const std::string name = Submit(Yaml("x", 2, 2));
  const std::string at = cluster_.running[name].front();
  service_->SetNodeState(at, "draining", [](const auto&) {});
  Settle();
  EXPECT_NE(cluster_.running[name].front(), at);
  Open({{"a", 2, "cpu", {}}, {"b", 2, "cpu", {}}});
  EXPECT_NE(std::get<0>(service_->NodeJson(at)).find("draining"), std::string::npos);
}

TEST_F(ServiceTest, NodesComeAndGo) {
  const std::string name = Submit(Yaml("x", 6, 6));
  EXPECT_EQ(Record(name).status, "Waiting");
  EXPECT_NE(Record(name).warnings.find("does not fit"), std::string::npos) << Record(name).warnings;
  service_->AddNode({"n", 2, "cpu", {}}, [](const auto& refusal) { EXPECT_FALSE(refusal); });
  Settle();
  EXPECT_EQ(Record(name).status, "Running");
  Open({{"a", 4, "cpu", {}}});  // the added node is remembered
  EXPECT_EQ(Record(name).status, "Running");
  std::optional<Refusal> refusal;
  service_->AddNode({"n", 2, "cpu", {}}, [&](const auto& answer) { refusal = answer; });
  EXPECT_EQ(refusal->status, 409);
  service_->RemoveNode("n", [](const auto& answer) { EXPECT_FALSE(answer); });
  Settle();
  EXPECT_EQ(Record(name).status, "Waiting");
}

TEST_F(ServiceTest, ANodeIsAddedAndRemovedOnce) {
  std::vector<int> answers;
  const auto done = [&](const std::optional<Refusal>& refusal) {
    answers.push_back(refusal ? refusal->status : 200);
  };
  service_->AddNode({"n", 2, "cpu", {}}, done);
  service_->AddNode({"n", 3, "cpu", {}}, done);
  EXPECT_TRUE(answers.empty());  // the first may still fail
  Settle();
  EXPECT_EQ(answers, (std::vector<int>{200, 409}));
  EXPECT_NE(std::get<0>(service_->NodeJson("n")).find("\"gpus\":2"), std::string::npos);
  answers.clear();
  service_->RemoveNode("n", done);
  service_->SetNodeState("n", "cordoned", done);
  service_->RemoveNode("n", done);
  Settle();
  EXPECT_EQ(answers, (std::vector<int>{200, 404, 404}));
  Open({{"a", 4, "cpu", {}}});
  EXPECT_EQ(service_->NodeJson("n").index(), 1U);
}

TEST_F(ServiceTest, ANodeThatTheStoreRefusesMayBeAddedAgain) {
  std::vector<int> answers;
  const auto done = [&](const std::optional<Refusal>& refusal) {
    answers.push_back(refusal ? refusal->status : 200);
  };
  service_->AddNode({"n", 2, "cpu", {}}, done);
  service_->AddNode({"n", 3, "cpu", {}}, done);
  BreakTheCommit();
  Settle();
  EXPECT_EQ(answers, (std::vector<int>{503, 503}));
  service_->AddNode({"n", 2, "cpu", {}}, done);
  Settle();
  EXPECT_EQ(answers.back(), 200);
}

TEST_F(ServiceTest, ARestartReadsAllJobsThereAre) {
  constexpr int kJobs = 100'002;
  ASSERT_TRUE(database_->Begin());
  JobRecord job;
  job.gpu_type = "cpu";
  job.status = "Completed";
  job.ended = now_;
  for (int i = 0; i < kJobs; ++i) {
    job.name = "job-" + std::to_string(i);
    ASSERT_GT(database_->InsertJob(job), 0);
  }
  ASSERT_TRUE(database_->Commit());
  Open({{"a", 4, "cpu", {}}});
  EXPECT_NE(service_->Find(job.name), nullptr);
}

TEST_F(ServiceTest, ProgressNeedsTheJobsOwnToken) {
  const std::string a = Submit(Yaml("a", 1, 1));
  const std::string b = Submit(Yaml("b", 1, 1));
  ProgressReport report;
  report.epoch = 0;
  EXPECT_EQ(service_->Progress(a, Record(b).token, report, now_)->status, 403);
  EXPECT_EQ(service_->Progress("nobody", Record(a).token, report, now_)->status, 404);
  EXPECT_FALSE(service_->Progress(a, Record(a).token, report, now_));
  EXPECT_EQ(Record(a).epoch, 1);
  EXPECT_EQ(Record(a).total_epochs, 10);
}

TEST_F(ServiceTest, WhatWasLearnedServesTheNextJobOfTheCategory) {
  const std::string name = Submit(Yaml("mnist", 2, 2));
  ProgressReport report;
  report.begin = true;
  ASSERT_FALSE(service_->Progress(name, Record(name).token, report, now_ + 3));
  report.begin = false;
  report.epoch_seconds = 8;
  ASSERT_FALSE(service_->Progress(name, Record(name).token, report, now_ + 11));
  now_ += 11;
  Settle();
  service_->Deliver("cpu", JobCompleted{name}, now_);
  Settle();
  Open({{"a", 4, "cpu", {}}});
  const std::string next = Submit(Yaml("mnist", 1, 4));
  const auto copy = service_->CopyFor("cpu");
  ASSERT_TRUE(copy);
  const Job& job = copy->state.world.job(FindJob(copy->state, next));
  EXPECT_DOUBLE_EQ(job.remaining_seconds, 10 * 16);  // ten epochs of 16 s on one worker
  EXPECT_EQ(*job.measured, std::vector<int>{2});
}

TEST_F(ServiceTest, ExplainsWhyAJobWaits) {
  const std::string first = Submit(Yaml("a", 4, 4));
  const std::string second = Submit(Yaml("b", 2, 4));
  const auto answer = service_->ExplainJson(second, 1234.5, now_);
  ASSERT_EQ(answer.index(), 0U);
  const std::string& text = std::get<0>(answer);
  EXPECT_NE(text.find("\"status\":\"Waiting\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"position\":2"), std::string::npos) << text;
  EXPECT_NE(text.find("\"name\":\"" + first + "\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"expected_start\":1234.5"), std::string::npos) << text;
  EXPECT_EQ(service_->ExplainJson("nobody", {}, now_).index(), 1U);
}

TEST_F(ServiceTest, CountsLaunchersThatWereStoppedAndTimesReads) {
  const std::string name = Submit(
      "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: mpi}\nspec:\n  mpiReplicaSpecs:\n"
      "    Launcher: {template: {spec: {containers: [{name: l, command: [horovodrun]}]}}}\n"
      "    Worker: {replicas: 2, template: {spec: {containers: [{name: w}]}}}\n");
  ASSERT_EQ(Record(name).status, "Running");
  EXPECT_FALSE(Wait([&](Service::Done done) { service_->Hold(name, true, std::move(done)); }));
  ASSERT_EQ(service_->RoundsJson("", 0, 10).index(), 0U);
  const std::string text = metrics_->Text(Metrics::Role::kAll);
  EXPECT_NE(text.find("voda_launchers_deleted_total{gpu_type=\"cpu\"} 1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("voda_store_read_duration_seconds_count 0\n"), std::string::npos);
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
