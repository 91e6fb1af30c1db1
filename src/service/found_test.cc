// The service on a cluster that keeps the record of jobs itself, as Kubernetes does: objects come, go and
// stay.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "service/kept_state.h"
#include "service/service.h"

namespace voda {
namespace {

// Objects with a token and a state, which outlive any service. Orders are carried out when asked for.
class ObjectCluster final : public JobCluster {
 public:
  struct Object {
    double created = 0;
    std::string token, state;
    std::vector<std::string> workers;
    std::string submission;
  };

  bool KeepsJobs() const override { return true; }
  void Accept(const std::vector<ClusterJob>& jobs, const Done& done) override {
    if (!refuse.empty()) return done(Conflict(refuse));
    for (const ClusterJob& job : jobs) objects[job.name] = {now, job.token, job.state, {}, job.submission};
    done(std::nullopt);
  }
  void Remember(const std::string& job, const std::string& state, const Done& done) override {
    if (slow) {
      return writes.push_back([this, job, state, done](const std::optional<Refusal>& why) {
        if (!why) objects[job].state = state;
        done(why);
      });
    }
    objects[job].state = state;
    done(std::nullopt);
  }
  void Note(const std::string& job, const std::string& state) override { noted[job] = state; }
  void Remove(const std::string& job, const Done& done) override {
    objects.erase(job);
    done(std::nullopt);
  }
  void KeepSettings(const std::map<std::string, std::string>& kept, const Done& done) override {
    for (const auto& [key, value] : kept) settings[key] = value;
    done(std::nullopt);
  }
  void Refuse(const std::string& job, const std::string& why) override { refused[job] = why; }
  void LookAgain() override { ++looked_again; }
  void Say(const std::string& job, const JobWord& word) override { said[job].push_back(word.reason); }
  std::vector<std::string> AddJob(const ClusterJob& job, bool known) override {
    Object& object = objects[job.name];
    object.token = job.token;
    return known ? object.workers : std::vector<std::string>();
  }
  void ForgetJob(const std::string&) override {}
  void EraseJob(std::int64_t) override {}
  int Failures(const std::string&) const override { return 0; }
  Cluster& PortFor(const std::string&) override { return port_; }

  double now = 0;
  std::map<std::string, Object> objects;
  std::map<std::string, std::string> settings, refused, noted;
  std::map<std::string, std::vector<std::string>> said;
  std::string refuse;
  bool slow = false;  // what is to be remembered waits here for its outcome
  std::vector<Done> writes;
  int looked_again = 0;
  std::vector<ActionId> carried_out;

 private:
  class Port final : public Cluster {
   public:
    explicit Port(ObjectCluster& cluster) : cluster_(cluster) {}
    void Execute(const Action& action, const std::vector<Node>& nodes) override {
      Object& object = cluster_.objects[action.job];
      object.state = cluster_.noted[action.job];
      object.workers.clear();
      for (const NodeIndex at : action.workers)
        object.workers.push_back(nodes[static_cast<std::size_t>(at)].name);
      cluster_.carried_out.push_back(action.id);
    }

   private:
    ObjectCluster& cluster_;
  };
  Port port_{*this};
};

std::string Yaml(const std::string& name, int min, int max) {
  return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: " + name +
         ", namespace: team}\nspec:\n" + "  elasticPolicy: {minReplicas: " + std::to_string(min) +
         ", maxReplicas: " + std::to_string(max) +
         "}\n  pytorchReplicaSpecs:\n    Worker:\n      template: {spec: {containers: [{name: pytorch, "
         "image: x}]}}\n";
}

class FoundTest : public ::testing::Test {
 protected:
  FoundTest() {
    SetLog({LogLevel::kError, false});
    std::string pattern = ::testing::TempDir() + "/voda-found-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    Open();
  }
  ~FoundTest() override {
    service_.reset();
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Another replica takes over: with this one's store, or without.
  void Open(bool with_store = true) {
    service_.reset();
    database_.reset();
    if (!with_store) std::filesystem::remove(folder_ + "/voda.db");
    auto database = Database::Open(folder_ + "/voda.db");
    ASSERT_TRUE(database) << database.error().message;
    database_ = std::move(*database);
    ServiceConfig config;
    config.core.rate_limit = 0;
    config.algorithm = "ElasticFIFO";
    config.make_policy = [](const std::string& name, const PolicyOptions& options) {
      return MakePolicy(name, options);
    };
    metrics_ = std::make_unique<Metrics>("test");
    hub_ = std::make_unique<EventHub>(EventHub::Config{});
    service_ = std::make_unique<Service>(config, *database_, cluster_, *hub_, *metrics_);
    Service::World world;
    world.settings = cluster_.settings;
    world.nodes.emplace_back(type_, NodeAdded{{"n", 4, NodeState::kReady}});
    for (const auto& [name, object] : cluster_.objects) {
      FoundJob found = Found(name, object.created);
      found.token = object.state.empty() ? "" : object.token;
      found.state = object.state;
      found.submission = object.submission;
      found.workers_on = object.workers;
      found.refusal = refusal_;
      world.jobs.push_back(found);
    }
    ASSERT_TRUE(service_->Restore(now_, world));
    Settle();
  }

  static FoundJob Found(const std::string& name, double created) {
    FoundJob found;
    found.name = name;
    found.created = created;
    found.spec = ParseJobs(Yaml(name.substr(name.find('/') + 1), 1, 4), {}, RunAs::kContainers)->front();
    return found;
  }

  void Apply(const std::string& name) {
    cluster_.objects[name].created = now_;
    service_->Found(Found(name, now_), now_);
    Settle();
  }

  void Settle() {
    for (int i = 0; i < 10; ++i) {
      cluster_.now = now_ += 1;
      service_->Step(now_);
      for (const ActionId id : std::exchange(cluster_.carried_out, {}))
        service_->Deliver(type_, ActionDone{id}, now_);
    }
  }

  std::string Submit(const std::string& yaml, std::optional<Service::Idempotency> key = {}) {
    std::string name;
    service_->Submit(*ParseJobs(yaml, {}, RunAs::kContainers), std::move(key), now_,
                     [&](Answer<std::vector<std::int64_t>> ids) {
                       const auto* refusal = std::get_if<Refusal>(&ids);
                       name = refusal != nullptr ? refusal->message
                                                 : service_->Find(std::get<0>(ids).front())->record.name;
                     });
    Settle();
    return name;
  }

  const JobRecord& Record(const std::string& name) { return service_->Find(name)->record; }

  double now_ = 1'700'000'000;
  std::string type_ = "a100";  // of the node
  std::string refusal_;        // of what is there at the start
  std::string folder_;
  ObjectCluster cluster_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<EventHub> hub_;
  std::unique_ptr<Service> service_;
};

TEST_F(FoundTest, ASubmittedJobIsAnObjectBeforeItIsAnswered) {
  const std::string name = Submit(Yaml("mnist", 1, 4));
  EXPECT_EQ(name.substr(0, 11), "team/mnist-");
  EXPECT_EQ(cluster_.objects.at(name).workers.size(), 4U);
  EXPECT_EQ(Record(name).status, "Running");
  EXPECT_EQ(KeptName(cluster_.objects.at(name).state), name);
  EXPECT_EQ(cluster_.said.at(name), (std::vector<std::string>{"Queued", "Started"}));

  cluster_.refuse = "quota";
  EXPECT_EQ(Submit(Yaml("other", 1, 1)), "quota");
  cluster_.refuse.clear();
  EXPECT_EQ(service_->JobsJson({}, now_).find("team/other"), std::string::npos);
  EXPECT_EQ(Submit(Yaml("other", 1, 1)).substr(0, 11), "team/other-");
}

TEST_F(FoundTest, TheSameKeyMakesOneObject) {
  const Service::Idempotency key{"k", "hash"};
  const std::string first = Submit(Yaml("once", 1, 1), key);
  EXPECT_EQ(Submit(Yaml("once", 1, 1), key), first);
  EXPECT_EQ(cluster_.objects.size(), 1U);
}

TEST_F(FoundTest, ARequestThatIsSentAgainAfterATakeoverMakesWhatIsMissing) {
  const std::string both = Yaml("one", 1, 1) + "---\n" + Yaml("two", 1, 1);
  const Service::Idempotency key{"k", "hash"};
  const std::string one = Submit(both, key);
  ASSERT_EQ(cluster_.objects.size(), 2U);
  Open(false);
  EXPECT_EQ(Submit(both, key), one);
  EXPECT_EQ(cluster_.objects.size(), 2U);

  // The leader died between the two.
  std::erase_if(cluster_.objects, [](const auto& object) { return object.first.starts_with("team/two"); });
  Open(false);
  EXPECT_EQ(Submit(both, key), one);
  ASSERT_EQ(cluster_.objects.size(), 2U);
  EXPECT_TRUE(std::next(cluster_.objects.begin())->first.starts_with("team/two-"));
  EXPECT_EQ(Submit(both, Service::Idempotency{"k", "other"}),
            "Idempotency-Key: the key was used with another body; use a new key for a new job");
}

TEST_F(FoundTest, AnAppliedJobRunsAndItsNameMayComeAgain) {
  Apply("team/resnet");
  EXPECT_EQ(Record("team/resnet").status, "Running");
  EXPECT_EQ(Record("team/resnet").starts, 1);
  cluster_.objects.erase("team/resnet");
  service_->Gone("team/resnet", now_);
  Settle();
  EXPECT_EQ(Record("team/resnet").status, "Canceled");
  EXPECT_GT(Record("team/resnet").ran, 5);
  const std::int64_t old = Record("team/resnet").id;
  Apply("team/resnet");
  EXPECT_EQ(Record("team/resnet").status, "Running");
  EXPECT_NE(Record("team/resnet").id, old);
  EXPECT_EQ(service_->Find(old)->record.name, "team/resnet@" + std::to_string(old));
}

TEST_F(FoundTest, WhatIsRefusedIsTold) {
  FoundJob found = Found("team/bad", now_);
  found.refusal = "it was created running";
  service_->Found(found, now_);
  EXPECT_EQ(cluster_.refused.at("team/bad"), "it was created running");
  EXPECT_EQ(service_->Find("team/bad"), nullptr);
}

TEST_F(FoundTest, AnotherReplicaKnowsAsMuchWithoutAStore) {
  Apply("team/a");
  Apply("team/b");
  Changes changes;
  changes.max = 2;
  service_->Change("team/a", changes,
                   [](const Answer<std::vector<std::int64_t>>& ids) { EXPECT_EQ(ids.index(), 0U); });
  service_->Hold("team/b", true,
                 [](const Answer<std::vector<std::int64_t>>& ids) { EXPECT_EQ(ids.index(), 0U); });
  Settle();
  const auto workers = cluster_.objects.at("team/a").workers;
  EXPECT_EQ(workers.size(), 2U);
  const double gpu_seconds = Record("team/a").gpu_seconds;
  for (const bool with_store : {true, false}) {
    Open(with_store);
    EXPECT_EQ(Record("team/a").status, "Running");
    EXPECT_EQ(Record("team/a").max, 2);
    EXPECT_EQ(Record("team/a").starts, 1);
    EXPECT_GE(Record("team/a").gpu_seconds, 0.9 * gpu_seconds);
    EXPECT_EQ(cluster_.objects.at("team/a").workers, workers) << "nothing was restarted";
    EXPECT_TRUE(Record("team/b").held);
    EXPECT_EQ(cluster_.objects.at("team/b").workers.size(), 0U);
  }
}

TEST_F(FoundTest, AnObjectThatIsGoneMeanwhileIsCanceled) {
  Apply("team/a");
  cluster_.objects.clear();
  Open();
  EXPECT_EQ(Record("team/a").status, "Canceled");
  EXPECT_NE(Record("team/a").message.find("while Voda was away"), std::string::npos);
}

TEST_F(FoundTest, ACopyOfAnObjectIsAJobOfItsOwn) {
  Apply("team/a");
  FoundJob copy = Found("team/copy", now_);
  copy.token = cluster_.objects.at("team/a").token;
  copy.state = cluster_.objects.at("team/a").state;
  cluster_.objects["team/copy"].created = now_;
  service_->Found(copy, now_);
  Settle();
  EXPECT_NE(Record("team/copy").token, Record("team/a").token);
  EXPECT_EQ(Record("team/copy").submitted, copy.created);
}

TEST_F(FoundTest, AnObjectMadeAnewFromItsExportRuns) {
  Apply("team/a");
  FoundJob again = Found("team/a", now_ + 60);
  again.token = cluster_.objects.at("team/a").token;
  again.state = cluster_.objects.at("team/a").state;
  const std::int64_t old = Record("team/a").id;
  cluster_.objects.erase("team/a");
  service_->Gone("team/a", now_);
  Settle();
  cluster_.objects["team/a"].created = now_;
  service_->Found(again, now_);
  Settle();
  EXPECT_EQ(Record("team/a").status, "Running");
  EXPECT_NE(Record("team/a").id, old);
}

TEST_F(FoundTest, NodesMayHaveAnotherTypeAfterwards) {
  Apply("team/a");
  cluster_.objects.at("team/a").workers.clear();
  type_ = "v100";
  Open();
  EXPECT_EQ(Record("team/a").gpu_type, "v100");
  EXPECT_EQ(Record("team/a").status, "Running");
}

TEST_F(FoundTest, ATypeThatNoNodeHasIsNobodysDefault) {
  FoundJob typo = Found("team/typo", now_);
  typo.spec.gpu_type = "a1000";
  service_->Found(typo, now_);
  Settle();
  EXPECT_EQ(Record("team/typo").status, "Waiting");
  Apply("team/a");
  EXPECT_EQ(Record("team/a").gpu_type, "a100");
  EXPECT_EQ(Record("team/a").status, "Running");
}

TEST_F(FoundTest, ANewTypeOfNodesGivesRefusedJobsAnotherChance) {
  EXPECT_EQ(cluster_.looked_again, 0) << "what is there at the start is found anyway";
  service_->Deliver("a100", NodeAdded{{"n2", 4, NodeState::kReady}}, now_);
  EXPECT_EQ(cluster_.looked_again, 0);
  service_->Deliver("h100", NodeAdded{{"h1", 4, NodeState::kReady}}, now_);
  EXPECT_EQ(cluster_.looked_again, 1);
}

TEST_F(FoundTest, AJobThatIsRefusedAfterwardsSaysSo) {
  Apply("team/a");
  refusal_ = "spec: unknown";
  Open();
  EXPECT_EQ(Record("team/a").status, "Canceled");
  EXPECT_EQ(Record("team/a").message, "Voda cannot schedule it any more: spec: unknown");
}

TEST_F(FoundTest, JobsOfOtherNamespacesAreNotNamed) {
  Apply("other/secret");
  Apply("team/a");
  Apply("team/b");
  Apply("team/c");
  Apply("team/d");
  const std::string text = std::get<0>(service_->ExplainJson("team/d", {}, now_));
  EXPECT_NE(text.find("a job of another namespace"), std::string::npos) << text;
  EXPECT_NE(text.find("team/c"), std::string::npos) << text;
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
}

TEST_F(FoundTest, ChangesOfOneJobFollowEachOther) {
  Apply("team/a");
  cluster_.slow = true;
  std::string answers;
  const auto done = [&](Answer<std::vector<std::int64_t>> ids) { answers += ids.index() == 0 ? "y" : "n"; };
  Changes priority;
  priority.priority = 5;
  Changes max;
  max.max = 3;
  service_->Hold("team/a", true, done);
  service_->Change("team/a", priority, done);
  service_->Change("team/a", max, done);
  ASSERT_EQ(cluster_.writes.size(), 1U);
  // An order meanwhile does not take back what is being written.
  service_->Deliver(type_, NodeAdded{{"m", 4, NodeState::kReady}}, now_);
  service_->Deliver(type_, WorkersObserved{"team/a", {}}, now_);
  Settle();
  EXPECT_NE(cluster_.noted["team/a"].find("\"held\":true"), std::string::npos) << cluster_.noted["team/a"];
  cluster_.writes[0](Unavailable("try again"));
  EXPECT_EQ(cluster_.noted["team/a"].find("held"), std::string::npos) << cluster_.noted["team/a"];
  ASSERT_EQ(cluster_.writes.size(), 2U);
  cluster_.writes[1](std::nullopt);
  ASSERT_EQ(cluster_.writes.size(), 3U);
  cluster_.writes[2](std::nullopt);
  EXPECT_EQ(answers, "nyy");
  JobRecord kept;
  ASSERT_TRUE(ReadKeptState(cluster_.objects["team/a"].state, kept));
  EXPECT_EQ(kept.priority, 5);
  EXPECT_EQ(kept.max, 3);
  EXPECT_FALSE(kept.held);
  EXPECT_EQ(Record("team/a").priority, 5);
  EXPECT_EQ(Record("team/a").max, 3);
  EXPECT_FALSE(Record("team/a").held);
}

TEST_F(FoundTest, SettingsAreTheClusters) {
  Service::Settings settings;
  settings.algorithm = "Tiresias";
  service_->Set("", settings, [](const std::optional<Refusal>& refused) { EXPECT_FALSE(refused); });
  Settle();
  EXPECT_EQ(cluster_.settings.at("algorithm/a100"), "Tiresias");
  Open(false);
  EXPECT_NE(std::get<0>(service_->SettingsJson("a100")).find("Tiresias"), std::string::npos);
}

TEST_F(FoundTest, NodesAreNotVodasToChange) {
  std::optional<Refusal> refused;
  service_->AddNode({"x", 1, "a100", {}}, [&](const std::optional<Refusal>& why) { refused = why; });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 409);
  service_->Deliver("a100", NodeChanged{"n", 2, NodeState::kCordoned}, now_);
  EXPECT_NE(service_->NodesJson().find("cordoned"), std::string::npos);
  service_->Deliver("a100", NodeRemoved{"n"}, now_);
  EXPECT_EQ(service_->NodesJson().find("\"n\""), std::string::npos);
}

}  // namespace
}  // namespace voda
