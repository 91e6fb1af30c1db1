// ledger_probe: the contract of ledgers (ledger/ledger_contract.h) for the objects of a real cluster, for
// adapter_test.py. Jobs are made in the namespace "default" and deleted again.
//
//   ledger_probe KUBECONFIG [flags of GoogleTest]
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/log.h"
#include "kube/transport.h"
#include "kubeflow/kubeflow_jobs.h"
#include "kubeflow/writes.h"
#include "ledger/ledger_contract.h"

namespace voda::kubeflow {
namespace {

std::string kubeconfig;                                           // NOLINT: of the command line
const kube::ObjectKey kSettings{"voda-system", "voda-settings"};  // which Voda's account may write

// What a MortalIo and the answers that it waits for share: an answer may come after its end.
struct Fate {
  std::atomic<int> left = -1;  // writes before it dies; -1: it lives
  std::mutex mutex;
  std::map<std::string, std::set<std::string>> told;  // job: the reasons of Events that the server has taken

  bool dead() const { return left == 0; }
};

// Stops sending writes after so many of them, as if the process had died: nothing is answered from then on.
class MortalIo final : public kube::Io {
 public:
  explicit MortalIo(kube::Io& io) : io_(io) {}
  void DieAfter(int writes) { fate_->left = writes; }
  bool dead() const { return fate_->dead(); }
  std::set<std::string> Told(const std::string& job) {
    const std::lock_guard lock(fate_->mutex);
    return fate_->told[job];
  }

  kube::TimePoint Now() const override { return io_.Now(); }
  kube::WallTime Wall() const override { return io_.Wall(); }
  Ticket Send(kube::Request request, Done done) override {
    const bool writes = !ChangesNothing(request);
    if (writes && dead()) return Ticket::kNone;
    if (writes && fate_->left > 0) --fate_->left;
    std::string event;
    if (request.verb == kube::Verb::kCreate && request.path.ends_with("/events")) event = request.body;
    return io_.Send(std::move(request),
                    [fate = fate_, event = std::move(event), done = std::move(done)](kube::Reply reply) {
                      if (!event.empty() && reply.ok()) Note(*fate, event);
                      if (!fate->dead()) done(std::move(reply));
                    });
  }
  Ticket Stream(kube::Request request, kube::StreamCallbacks callbacks) override {
    return io_.Stream(std::move(request), std::move(callbacks));
  }
  Ticket After(kube::Duration delay, std::function<void()> then) override {
    return io_.After(delay, std::move(then));
  }
  void Cancel(Ticket ticket) override { io_.Cancel(ticket); }
  void Post(std::function<void()> then) override { io_.Post(std::move(then)); }
  void RunAndWait(const std::function<void()>& what) override { io_.RunAndWait(what); }

 private:
  static void Note(Fate& fate, const std::string& body) {
    const auto event = nlohmann::json::parse(body);
    const auto& about = event.at("regarding");
    const std::lock_guard lock(fate.mutex);
    fate.told[about.at("namespace").get<std::string>() + "/" + about.at("name").get<std::string>()].insert(
        event.at("reason").get<std::string>());
  }

  kube::Io& io_;
  std::shared_ptr<Fate> fate_ = std::make_shared<Fate>();
};

// Answers are handed to the test's thread, which stands for the engine's.
class WaitingSink final : public ClusterSink {
 public:
  void Post(std::vector<TypedEvent>) override {}
  void Notice(JobNotice) override {}
  void Ready(LedgerContents contents, std::vector<TypedEvent>) override {
    const std::lock_guard lock(mutex_);
    ready_ = std::move(contents);
    found_.clear();
    wake_.notify_all();
  }
  void Found(FoundJob job, std::vector<TypedEvent>) override {
    const std::lock_guard lock(mutex_);
    found_.push_back(std::move(job.name));
  }
  void Gone(const std::string&, std::vector<TypedEvent>) override {}
  void Answer(std::function<void()> answer) override {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
    wake_.notify_all();
  }

  LedgerContents WaitReady() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wake_.wait_for(lock, std::chrono::seconds(60), [&] { return ready_.has_value(); }));
    return std::exchange(ready_, std::nullopt).value();
  }
  std::vector<std::string> found() {
    const std::lock_guard lock(mutex_);
    return found_;
  }
  // False: none came in time.
  bool RunOne(std::chrono::milliseconds patience) {
    std::function<void()> answer;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait_for(lock, patience, [&] { return !answers_.empty(); })) return false;
      answer = std::move(answers_.front());
      answers_.pop_front();
    }
    answer();
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<LedgerContents> ready_;
  std::vector<std::string> found_;  // since it was ready
  std::deque<std::function<void()>> answers_;
};

class ObjectHarness final : public testing::LedgerHarness {
 public:
  ObjectHarness() {
    SetLog({LogLevel::kError, false});
    const auto config = kube::FindKubeConfig(kubeconfig);
    transport_ = std::move(*kube::Transport::Create(*config, {}, counters_));
    Clean();
    Reopen();
  }
  ~ObjectHarness() override {
    jobs_.reset();
    Clean();
  }

  Ledger& ledger() override { return jobs_->ledger(); }
  void Settle(const std::function<bool()>& answered) override {
    for (int tries = 0; !answered() && tries < 60; ++tries) sink_.RunOne(std::chrono::milliseconds(500));
  }
  LedgerContents Reopen() override {
    jobs_.reset();
    io_ = std::make_unique<MortalIo>(*transport_);
    JobsConfig config;
    config.settings = kSettings;
    config.instance = "ledger_probe";
    jobs_ = KubeflowJobs::Create(*io_, counters_, config, sink_, [] { return true; });
    jobs_->Start();
    return sink_.WaitReady();
  }
  bool AcceptAndDie(std::vector<LedgerJob> jobs, const SubmissionKey& key, int writes) override {
    bool answered = false;
    io_->DieAfter(writes);
    ledger().Accept(std::move(jobs), key, [&](const std::optional<Refusal>& refused) {
      answered = true;
      EXPECT_FALSE(refused) << refused->message;
    });
    Settle([&] { return answered || io_->dead(); });
    if (!answered) std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the last write arrives
    return answered;
  }
  int WritesOf(int jobs) const override { return jobs + 2; }  // and the one that accepts them; then it lives
  bool KeepsNodes() const override { return false; }
  std::vector<std::string> Found() override { return sink_.found(); }
  std::optional<std::set<std::string>> Told(const std::string& job) override { return io_->Told(job); }
  std::string Named(const std::string& name) const override { return "default/" + name; }

 private:
  void Clean() {
    transport_->Call(kube::MergePatchRequest(kConfigMaps, kSettings, R"({"data":null})"));
    const kube::Resource resource = JobResource(JobKind::kPyTorchJob, "kubeflow.org/v1");
    for (int tries = 0; tries < 200; ++tries) {
      kube::Request list;
      list.verb = kube::Verb::kList;
      list.path = kube::ResourcePath(resource, "default");
      const auto objects = nlohmann::json::parse(transport_->Call(list).body);
      if (objects.at("items").empty()) return;
      for (const auto& object : objects.at("items"))
        transport_->Call(kube::DeleteRequest(
            resource, {"default", object.at("metadata").at("name").get<std::string>()}, {}));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    ADD_FAILURE() << "objects of the test stay";
  }

  kube::Counters counters_;
  std::unique_ptr<kube::Transport> transport_;
  std::unique_ptr<MortalIo> io_;
  WaitingSink sink_;
  std::unique_ptr<KubeflowJobs> jobs_;
};

}  // namespace
}  // namespace voda::kubeflow

namespace voda::testing {
INSTANTIATE_TEST_SUITE_P(Kubernetes, LedgerContract,
                         ::testing::Values(LedgerContractCase{"objects", [] {
                                                                return std::unique_ptr<LedgerHarness>(
                                                                    new kubeflow::ObjectHarness);
                                                              }}));
}  // namespace voda::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2) return 2;
  voda::kubeflow::kubeconfig = argv[1];
  return RUN_ALL_TESTS();
}
