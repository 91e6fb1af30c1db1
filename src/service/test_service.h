// For the tests: the service on a real store, with a cluster that does at once what it is told.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "history/sqlite_history.h"
#include "ledger/sqlite_ledger.h"
#include "service/service.h"

namespace voda::testing {

// Carries every action out when it is asked for outcomes; remembers what runs, as a machine would.
class ObedientCluster final : public JobCluster {
 public:
  Result<int> GpusPerWorker(const JobSpec& spec, const std::string&) const override {
    return spec.gpus_per_worker;
  }
  Status CanStart() const override { return able; }
  void AddNode(const std::string&, const std::vector<int>&) override {}
  std::vector<std::string> LogFiles(std::int64_t, const std::string&, int) const override { return {}; }
  bool ReadLogs(const LogRequest&) override { return false; }
  std::vector<std::string> AddJob(const AcceptedJob& job, bool known) override {
    return known ? running[job.name] : std::vector<std::string>();
  }
  void ForgetJob(const std::string& name) override {
    running.erase(name);
    forgotten.push_back(name);
  }
  void EraseJob(std::int64_t id, const std::string&) override { erased.push_back(id); }
  Cluster& PortFor(const std::string& gpu_type) override {
    auto& port = ports_[gpu_type];
    if (!port) port = std::make_unique<Port>(*this, gpu_type);
    return *port;
  }
  int Failures(const std::string&) const override { return 0; }
  double RanUnheard(const std::string&) const override { return unheard; }
  std::int64_t LastId() const override { return last_id; }

  std::int64_t last_id = 0;                                 // of which there are files
  std::map<std::string, std::vector<std::string>> running;  // job -> node of each worker
  double unheard = 0;                                       // RanUnheard of every job
  std::vector<std::string> forgotten;
  std::vector<std::int64_t> erased;
  std::vector<std::pair<std::string, ActionId>> done;  // not yet reported
  int actions = 0;
  Status able = Ok{};

 private:
  class Port final : public Cluster {
   public:
    Port(ObedientCluster& cluster, std::string gpu_type)
        : cluster_(cluster), gpu_type_(std::move(gpu_type)) {}
    void Execute(const Action& action, const PerNode<Node>& nodes) override {
      ++cluster_.actions;
      auto& workers = cluster_.running[action.job];
      workers.clear();
      for (const NodeIndex at : action.workers) {
        workers.push_back(at == kNoNode ? std::string() : nodes[at].name);
      }
      cluster_.done.emplace_back(gpu_type_, action.id);
    }

   private:
    ObedientCluster& cluster_;
    std::string gpu_type_;
  };
  std::map<std::string, std::unique_ptr<Port>> ports_;
};

// Takes 0.3 s for every answer while it is told to.
class SlowPolicy final : public Policy {
 public:
  SlowPolicy(std::unique_ptr<Policy> policy, std::shared_ptr<std::atomic<bool>> slow)
      : policy_(std::move(policy)), slow_(std::move(slow)) {}
  Allocation Allocate(const Snapshot& snapshot) const override {
    if (*slow_) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return policy_->Allocate(snapshot);
  }

 private:
  std::unique_ptr<Policy> policy_;
  std::shared_ptr<std::atomic<bool>> slow_;
};

// Asks a program, as far as anybody can tell.
class ExternalPolicy final : public Policy {
 public:
  ExternalPolicy(std::unique_ptr<Policy> policy, int& calls) : policy_(std::move(policy)), calls_(calls) {}
  Allocation Allocate(const Snapshot& snapshot) const override {
    ++calls_;
    return policy_->Allocate(snapshot);
  }
  bool External() const override { return true; }

 private:
  std::unique_ptr<Policy> policy_;
  int& calls_;
};

inline std::string Yaml(const std::string& name, int min, int max, const std::string& type = {}) {
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
    Close();
    std::filesystem::remove_all(folder_);
  }

  void Close() {
    service_.reset();
    ledger_.reset();
    history_.reset();
    store_.reset();
  }

  // A new run of Voda on the same folder and machine.
  void Open(std::vector<DeclaredNode> nodes) {
    Close();
    auto store = Store::Open(folder_ + "/voda.db");
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    ledger_ = std::make_unique<SqliteLedger>(*store_);
    history_ = std::make_unique<SqliteHistory>(*store_);
    ServiceConfig config;
    config.nodes = std::move(nodes);
    config.core.rate_limit = 0;
    config.algorithm = "ElasticFIFO";
    config.make_policy = [this](const std::string& name, const PolicyOptions& options) {
      auto policy = MakePolicy(name, options);
      if (policy && slow_) *policy = std::make_unique<SlowPolicy>(std::move(*policy), slow_);
      if (policy && external_) *policy = std::make_unique<ExternalPolicy>(std::move(*policy), calls_);
      return policy;
    };
    config.decide_elsewhere = [this](const std::string& gpu_type, std::shared_ptr<const Decider> decider) {
      asked_.emplace_back(gpu_type, std::move(decider));
    };
    config.jobs_folder = folder_;
    metrics_ = std::make_unique<Metrics>("test");
    hub_ = std::make_unique<EventHub>(EventHub::Config{});
    service_ = std::make_unique<Service>(config, *ledger_, *history_, cluster_, *hub_, *metrics_);
    auto contents = ledger_->Read();
    ASSERT_TRUE(contents) << contents.error().message;
    const Status restored = service_->Restore(*contents, {}, now_);
    ASSERT_TRUE(restored) << restored.error().message;
    Settle();
  }

  void Settle() {
    for (int i = 0; i < 10; ++i) {
      now_ += 1;
      service_->Step(now_);
      auto done = std::exchange(cluster_.done, {});
      for (const auto& [type, id] : done) service_->Deliver({type, ActionDone{id}}, now_);
    }
  }

  // The name of the accepted job, or the refusal's message.
  std::string Submit(const std::string& yaml, const std::optional<SubmissionKey>& key = {}) {
    auto specs = ParseJobs(yaml);
    if (!specs) return specs.error().message;
    std::string name;
    service_->submitter().Submit(
        std::move(*specs), key, now_, [&](const Answer<std::vector<std::int64_t>>& ids) {
          name = ids ? service_->jobs().Find(ids->front())->record.name : ids.error().message;
        });
    Settle();
    return name;
  }

  std::optional<Refusal> Wait(const std::function<void(JobChanges::Done)>& command) {
    std::optional<Refusal> refusal;
    bool called = false;
    command([&](const Answer<std::int64_t>& id) {
      called = true;
      if (!id) refusal = id.error();
    });
    Settle();
    EXPECT_TRUE(called);
    return refusal;
  }

  // Of the transaction under way.
  void BreakTheCommit() { store_->Write("INSERT INTO nowhere VALUES (1)"); }

  const JobRecord& Record(const std::string& name) { return service_->jobs().Find(name)->record; }

  double now_ = 1'700'000'000;
  std::shared_ptr<std::atomic<bool>> slow_;  // the policy of the next Open
  bool external_ = false;
  int calls_ = 0;                                                              // of the external policy
  std::vector<std::pair<std::string, std::shared_ptr<const Decider>>> asked_;  // of the external policy
  std::string folder_;
  ObedientCluster cluster_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SqliteLedger> ledger_;
  std::unique_ptr<SqliteHistory> history_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<EventHub> hub_;
  std::unique_ptr<Service> service_;
};

}  // namespace voda::testing
