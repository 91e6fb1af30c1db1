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
#include "history/sqlite_history.h"
#include "service/service.h"

namespace voda {
namespace {

// A cluster and its objects, which outlive any service. Orders are carried out when asked for.
struct Objects {
  struct Object {
    double created = 0;
    std::string token;
    std::optional<JobState> state;
    std::vector<std::string> workers;
  };
  double now = 0;
  std::map<std::string, Object> all;
  std::map<std::string, JobState> noted;
  std::vector<ActionId> carried_out;
};

class ObjectLedger final : public Ledger {
 public:
  explicit ObjectLedger(Objects& objects) : objects_(objects) {}

  void Accept(std::vector<LedgerJob> jobs, const std::optional<SubmissionKey>& key, Done done) override {
    if (!refuse.empty()) return done(Conflict(refuse));
    for (const LedgerJob& job : jobs) {
      objects_.all[job.name] = {objects_.now, job.token, job.state, {}};
      if (key) submissions[key->key].jobs.push_back(job.name);
    }
    if (key) submissions[key->key].body_hash = key->body_hash;
    done(std::nullopt);
  }
  Result<std::optional<Submission>> Find(const std::string& key) override {
    const auto at = submissions.find(key);
    return at == submissions.end() ? std::nullopt : std::optional(at->second);
  }
  void ForgetBefore(double) override {}
  void Change(const std::string& job, const JobState& state, Done done) override {
    if (slow) {
      return writes.push_back([this, job, state, done](const std::optional<Refusal>& why) {
        if (!why) objects_.all[job].state = state;
        done(why);
      });
    }
    objects_.all[job].state = state;
    done(std::nullopt);
  }
  void Note(const std::string& job, const JobState& state) override { objects_.noted[job] = state; }
  void Remove(const std::string& job, std::function<void(Answer<Removal>)> done) override {
    objects_.all.erase(job);
    done(Removal::kLeaves);
  }
  void End(const std::string&, std::function<void()> then) override { then(); }
  bool KeepsEnded() const override { return true; }
  void Refuse(const std::string& job, const std::string& why) override { refused[job] = why; }
  void LookAgain() override { ++looked_again; }
  void Tell(const std::string& job, const JobWord& word) override { said[job].push_back(word.reason); }
  void Set(const std::map<std::string, std::string>& kept, Done done) override {
    for (const auto& [key, value] : kept) settings[key] = value;
    done(std::nullopt);
  }
  void PutNode(const NodeRecord&, Done) override { ADD_FAILURE(); }
  void RemoveNode(const std::string&, Done) override { ADD_FAILURE(); }
  void Flush() override {}
  bool Waiting() const override { return false; }

  std::map<std::string, Submission> submissions;
  std::map<std::string, std::string> settings, refused;
  std::map<std::string, std::vector<std::string>> said;
  std::string refuse;
  bool slow = false;  // changes wait here for their outcome
  std::vector<Done> writes;
  int looked_again = 0;

 private:
  Objects& objects_;
};

class ObjectCluster final : public JobCluster {
 public:
  explicit ObjectCluster(Objects& objects) : port_(objects), objects_(objects) {}

  Result<int> GpusPerWorker(const JobSpec& spec, const std::string&) const override {
    return spec.gpus_per_worker;
  }
  void AddNode(const std::string&, const std::vector<int>&) override {}
  std::vector<std::string> LogFiles(std::int64_t, const std::string&, int) const override { return {}; }
  bool ReadLogs(const LogRequest&) override { return false; }
  std::vector<std::string> AddJob(const AcceptedJob& job, bool known) override {
    Objects::Object& object = objects_.all[job.name];
    object.token = job.token;
    return known ? object.workers : std::vector<std::string>();
  }
  void ForgetJob(const std::string&) override {}
  void EraseJob(std::int64_t, const std::string&) override {}
  int Failures(const std::string&) const override { return 0; }
  Cluster& PortFor(const std::string&) override { return port_; }

 private:
  class Port final : public Cluster {
   public:
    explicit Port(Objects& objects) : objects_(objects) {}
    void Execute(const Action& action, const PerNode<Node>& nodes) override {
      Objects::Object& object = objects_.all[action.job];
      object.state = objects_.noted.at(action.job);
      object.workers.clear();
      for (const NodeIndex at : action.workers) object.workers.push_back(nodes[at].name);
      objects_.carried_out.push_back(action.id);
    }

   private:
    Objects& objects_;
  };
  Port port_;
  Objects& objects_;
};

std::string TeamYaml(const std::string& name, int min, int max) {
  return "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: " + name +
         ", namespace: team}\nspec:\n" + "  elasticPolicy: {minReplicas: " + std::to_string(min) +
         ", maxReplicas: " + std::to_string(max) +
         "}\n  pytorchReplicaSpecs:\n    Worker:\n      template: {spec: {containers: [{name: pytorch, "
         "image: x}]}}\n";
}

class TakeoverTest : public ::testing::Test {
 protected:
  TakeoverTest() {
    SetLog({LogLevel::kError, false});
    std::string pattern = ::testing::TempDir() + "/voda-found-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    Open();
  }
  ~TakeoverTest() override {
    Close();
    std::filesystem::remove_all(folder_);
  }

  void Close() {
    service_.reset();
    history_.reset();
    store_.reset();
  }

  // Another replica takes over: with this one's store, or without.
  void Open(bool with_store = true) {
    Close();
    if (!with_store) std::filesystem::remove(folder_ + "/voda.db");
    auto store = Store::Open(folder_ + "/voda.db");
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    history_ = std::make_unique<SqliteHistory>(*store_);
    ServiceConfig config;
    config.core.rate_limit = 0;
    config.algorithm = "ElasticFIFO";
    config.namespaces = config.reports_nodes = true;
    config.make_policy = [](const std::string& name, const PolicyOptions& options) {
      return MakePolicy(name, options);
    };
    metrics_ = std::make_unique<Metrics>("test");
    hub_ = std::make_unique<EventHub>(EventHub::Config{});
    service_ = std::make_unique<Service>(config, ledger_, *history_, cluster_, *hub_, *metrics_);
    LedgerContents contents;
    contents.settings = ledger_.settings;
    for (const auto& [name, object] : objects_.all) {
      FoundJob found = Found(name, object.created);
      found.token = object.state ? object.token : "";
      found.state = object.state;
      found.refusal = refusal_;
      contents.jobs.push_back(found);
    }
    ASSERT_TRUE(service_->Restore(contents, {{type_, NodeAdded{{"n", 4, NodeState::kReady}}}}, now_));
    Settle();
  }

  static FoundJob Found(const std::string& name, double created) {
    FoundJob found;
    found.name = name;
    found.created = created;
    found.spec = std::make_shared<const JobSpec>(
        ParseJobs(TeamYaml(name.substr(name.find('/') + 1), 1, 4), {}, RunAs::kContainers)->front());
    return found;
  }

  void Apply(const std::string& name) {
    objects_.all[name].created = now_;
    service_->Found(Found(name, now_), now_);
    Settle();
  }

  void Settle() {
    for (int i = 0; i < 10; ++i) {
      objects_.now = now_ += 1;
      service_->Step(now_);
      for (const ActionId id : std::exchange(objects_.carried_out, {}))
        service_->Deliver({type_, ActionDone{id}}, now_);
    }
  }

  std::string Submit(const std::string& yaml, const std::optional<SubmissionKey>& key = {}) {
    std::string name;
    service_->submitter().Submit(*ParseJobs(yaml, {}, RunAs::kContainers), key, now_,
                                 [&](const Answer<std::vector<std::int64_t>>& ids) {
                                   name = ids ? service_->jobs().Find(ids->front())->record.name
                                              : ids.error().message;
                                 });
    Settle();
    return name;
  }

  const JobRecord& Record(const std::string& name) { return service_->jobs().Find(name)->record; }

  double now_ = 1'700'000'000;
  std::string type_ = "a100";  // of the node
  std::string refusal_;        // of what is there at the start
  std::string folder_;
  Objects objects_;
  ObjectLedger ledger_{objects_};
  ObjectCluster cluster_{objects_};
  std::unique_ptr<Store> store_;
  std::unique_ptr<SqliteHistory> history_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<EventHub> hub_;
  std::unique_ptr<Service> service_;
};

TEST_F(TakeoverTest, ASubmittedJobIsAnObjectBeforeItIsAnswered) {
  const std::string name = Submit(TeamYaml("mnist", 1, 4));
  EXPECT_EQ(name.substr(0, 11), "team/mnist-");
  EXPECT_EQ(objects_.all.at(name).workers.size(), 4U);
  EXPECT_EQ(Record(name).status, JobStatus::kRunning);
  EXPECT_EQ(objects_.all.at(name).state->starts, 1);
  EXPECT_EQ(ledger_.said.at(name), (std::vector<std::string>{"Queued", "Started"}));

  ledger_.refuse = "quota";
  EXPECT_EQ(Submit(TeamYaml("other", 1, 1)), "quota");
  ledger_.refuse.clear();
  EXPECT_EQ(service_->views().Jobs({}, now_).find("team/other"), std::string::npos);
  EXPECT_EQ(Submit(TeamYaml("other", 1, 1)).substr(0, 11), "team/other-");
}

TEST_F(TakeoverTest, TheSameKeyMakesOneObject) {
  const SubmissionKey key{"k", "hash"};
  const std::string first = Submit(TeamYaml("once", 1, 1), key);
  EXPECT_EQ(Submit(TeamYaml("once", 1, 1), key), first);
  EXPECT_EQ(objects_.all.size(), 1U);
}

TEST_F(TakeoverTest, ARequestThatIsSentAgainAfterATakeoverIsKnown) {
  const std::string both = TeamYaml("one", 1, 1) + "---\n" + TeamYaml("two", 1, 1);
  const std::string one = Submit(both, SubmissionKey{"k", "hash"});
  ASSERT_EQ(objects_.all.size(), 2U);
  Open(false);
  EXPECT_EQ(Submit(both, SubmissionKey{"k", "hash"}), one);
  EXPECT_EQ(objects_.all.size(), 2U);
  EXPECT_EQ(Submit(both, SubmissionKey{"k", "other"}),
            "Idempotency-Key: the key was used with another body; use a new key for a new job");
}

TEST_F(TakeoverTest, AnAppliedJobRunsAndItsNameMayComeAgain) {
  Apply("team/resnet");
  EXPECT_EQ(Record("team/resnet").status, JobStatus::kRunning);
  EXPECT_EQ(Record("team/resnet").starts, 1);
  objects_.all.erase("team/resnet");
  service_->Gone("team/resnet", now_);
  Settle();
  EXPECT_EQ(Record("team/resnet").status, JobStatus::kCanceled);
  EXPECT_GT(Record("team/resnet").ran, 5);
  EXPECT_EQ(ledger_.said.at("team/resnet"), (std::vector<std::string>{"Queued", "Started"}))
      << "nobody stopped it: without its label it runs on";
  const std::int64_t old = Record("team/resnet").id;
  Apply("team/resnet");
  EXPECT_EQ(Record("team/resnet").status, JobStatus::kRunning);
  EXPECT_NE(Record("team/resnet").id, old);
  EXPECT_EQ(service_->jobs().Find(old)->record.name, "team/resnet@" + std::to_string(old));
}

TEST_F(TakeoverTest, WhatIsRefusedIsTold) {
  FoundJob found = Found("team/bad", now_);
  found.refusal = "it was created running";
  service_->Found(found, now_);
  EXPECT_EQ(ledger_.refused.at("team/bad"), "it was created running");
  EXPECT_EQ(service_->jobs().Find("team/bad"), nullptr);
}

TEST_F(TakeoverTest, AnotherReplicaKnowsAsMuchWithoutAStore) {
  Apply("team/a");
  Apply("team/b");
  JobChanges::Wish changes;
  changes.max = 2;
  service_->changes().Change("team/a", changes, [](const Answer<std::int64_t>& id) { EXPECT_TRUE(id); });
  service_->changes().Hold("team/b", true, [](const Answer<std::int64_t>& id) { EXPECT_TRUE(id); });
  Settle();
  const auto workers = objects_.all.at("team/a").workers;
  EXPECT_EQ(workers.size(), 2U);
  const double gpu_seconds = Record("team/a").gpu_seconds;
  for (const bool with_store : {true, false}) {
    Open(with_store);
    EXPECT_EQ(Record("team/a").status, JobStatus::kRunning);
    EXPECT_EQ(Record("team/a").limits.max, 2);
    EXPECT_EQ(Record("team/a").starts, 1);
    EXPECT_GE(Record("team/a").gpu_seconds, 0.9 * gpu_seconds);
    EXPECT_EQ(objects_.all.at("team/a").workers, workers) << "nothing was restarted";
    EXPECT_TRUE(Record("team/b").held);
    EXPECT_EQ(objects_.all.at("team/b").workers.size(), 0U);
  }
}

TEST_F(TakeoverTest, AJobInItsFirstEpochThatHasReportedIsNotSilent) {
  Apply("team/a");
  Apply("team/silent");
  ProgressReport report;
  report.epoch = 0;
  report.partly = 0.5;
  report.total_epochs = 10;
  EXPECT_FALSE(service_->reports().Take("team/a", Record("team/a").token, report, now_));
  JobChanges::Wish fewer;  // anything by which its state is written
  fewer.max = 3;
  service_->changes().Change("team/a", fewer, [](const Answer<std::int64_t>& id) { EXPECT_TRUE(id); });
  Settle();
  ASSERT_EQ(Record("team/a").epoch, 0);
  for (const bool with_store : {true, false}) {
    Open(with_store);
    const State& state = service_->pools().Find(type_)->state();
    EXPECT_FALSE(state.world.job(FindJob(state, "team/a")).guessed) << with_store;
    EXPECT_TRUE(state.world.job(FindJob(state, "team/silent")).guessed) << with_store;
  }
}

TEST_F(TakeoverTest, AnObjectThatIsGoneMeanwhileIsCanceled) {
  Apply("team/a");
  objects_.all.clear();
  Open();
  EXPECT_EQ(Record("team/a").status, JobStatus::kCanceled);
  EXPECT_NE(Record("team/a").message.find("while Voda was away"), std::string::npos);
}

TEST_F(TakeoverTest, AnObjectMadeAnewFromItsExportRuns) {
  Apply("team/a");
  FoundJob again = Found("team/a", now_ + 60);
  again.token = objects_.all.at("team/a").token;
  again.state = objects_.all.at("team/a").state;
  const std::int64_t old = Record("team/a").id;
  objects_.all.erase("team/a");
  service_->Gone("team/a", now_);
  Settle();
  objects_.all["team/a"].created = now_;
  service_->Found(again, now_);
  Settle();
  EXPECT_EQ(Record("team/a").status, JobStatus::kRunning);
  EXPECT_NE(Record("team/a").id, old);
}

TEST_F(TakeoverTest, NodesMayHaveAnotherTypeAfterwards) {
  Apply("team/a");
  objects_.all.at("team/a").workers.clear();
  type_ = "v100";
  Open();
  EXPECT_EQ(Record("team/a").gpu_type, "v100");
  EXPECT_EQ(Record("team/a").status, JobStatus::kRunning);
}

TEST_F(TakeoverTest, ATypeThatNoNodeHasIsRefusedAndNobodysDefault) {
  FoundJob typo = Found("team/typo", now_);
  JobSpec spec = *typo.spec;
  spec.gpu_type = "a1000";
  typo.spec = std::make_shared<const JobSpec>(std::move(spec));
  typo.state = JobState();  // whoever applies it can write that, too
  service_->Found(typo, now_);
  Settle();
  EXPECT_EQ(service_->jobs().Find("team/typo"), nullptr);
  EXPECT_NE(ledger_.refused["team/typo"].find("\"a1000\" is not a GPU type of this cluster"),
            std::string::npos)
      << ledger_.refused["team/typo"];
  Apply("team/a");
  EXPECT_EQ(Record("team/a").gpu_type, "a100");
  EXPECT_EQ(Record("team/a").status, JobStatus::kRunning);
}

TEST_F(TakeoverTest, ANewTypeOfNodesGivesRefusedJobsAnotherChance) {
  EXPECT_EQ(ledger_.looked_again, 0) << "what is there at the start is found anyway";
  service_->Deliver({"a100", NodeAdded{{"n2", 4, NodeState::kReady}}}, now_);
  EXPECT_EQ(ledger_.looked_again, 0);
  service_->Deliver({"h100", NodeAdded{{"h1", 4, NodeState::kReady}}}, now_);
  EXPECT_EQ(ledger_.looked_again, 1);
}

TEST_F(TakeoverTest, AJobThatIsRefusedAfterwardsSaysSo) {
  Apply("team/a");
  refusal_ = "spec: unknown";
  Open();
  EXPECT_EQ(Record("team/a").status, JobStatus::kCanceled);
  EXPECT_EQ(Record("team/a").message, "Voda cannot schedule it any more: spec: unknown");
}

TEST_F(TakeoverTest, JobsOfOtherNamespacesAreNotNamed) {
  Apply("other/secret");
  Apply("team/a");
  Apply("team/b");
  Apply("team/c");
  Apply("team/d");
  const std::string text = (*service_->views().AskExplain("team/d", now_))->Json();
  EXPECT_NE(text.find("a job of another namespace"), std::string::npos) << text;
  EXPECT_NE(text.find("team/c"), std::string::npos) << text;
  EXPECT_EQ(text.find("secret"), std::string::npos) << text;
}

TEST_F(TakeoverTest, ChangesOfOneJobFollowEachOther) {
  Apply("team/a");
  ledger_.slow = true;
  std::string answers;
  const auto done = [&](const Answer<std::int64_t>& ids) { answers += ids ? "y" : "n"; };
  JobChanges::Wish priority;
  priority.priority = 5;
  JobChanges::Wish max;
  max.max = 3;
  service_->changes().Hold("team/a", true, done);
  service_->changes().Change("team/a", priority, done);
  service_->changes().Change("team/a", max, done);
  ASSERT_EQ(ledger_.writes.size(), 1U);
  // An order meanwhile does not take back what is being written.
  service_->Deliver({type_, NodeAdded{{"m", 4, NodeState::kReady}}}, now_);
  service_->Deliver({type_, WorkersObserved{"team/a", {}}}, now_);
  Settle();
  EXPECT_TRUE(objects_.noted["team/a"].held);
  ledger_.writes[0](Unavailable("try again"));
  EXPECT_FALSE(objects_.noted["team/a"].held);
  ASSERT_EQ(ledger_.writes.size(), 2U);
  ledger_.writes[1](std::nullopt);
  ASSERT_EQ(ledger_.writes.size(), 3U);
  ledger_.writes[2](std::nullopt);
  EXPECT_EQ(answers, "nyy");
  const JobState kept = *objects_.all["team/a"].state;
  EXPECT_EQ(kept.priority, 5);
  EXPECT_EQ(kept.limits.max, 3);
  EXPECT_FALSE(kept.held);
  EXPECT_EQ(Record("team/a").priority, 5);
  EXPECT_EQ(Record("team/a").limits.max, 3);
  EXPECT_FALSE(Record("team/a").held);
}

TEST_F(TakeoverTest, SettingsAreTheClusters) {
  Settings::Change settings;
  settings.algorithm = "Tiresias";
  service_->settings().Set("", settings,
                           [](const std::optional<Refusal>& refused) { EXPECT_FALSE(refused); });
  Settle();
  EXPECT_EQ(ledger_.settings.at("algorithm/a100"), "Tiresias");
  Open(false);
  EXPECT_NE((*service_->views().Settings("a100")).find("Tiresias"), std::string::npos);
}

TEST_F(TakeoverTest, NodesAreNotVodasToChange) {
  std::optional<Refusal> refused;
  service_->nodes().Add({"x", 1, "a100", {}}, [&](const std::optional<Refusal>& why) { refused = why; });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 409);
  service_->Deliver({"a100", NodeChanged{"n", 2, NodeState::kCordoned}}, now_);
  EXPECT_NE(service_->views().Nodes().find("cordoned"), std::string::npos);
  service_->Deliver({"a100", NodeRemoved{"n"}}, now_);
  EXPECT_EQ(service_->views().Nodes().find("\"n\""), std::string::npos);
}

}  // namespace
}  // namespace voda
