#include "service/kubernetes_side.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "api/auth.h"
#include "base/log.h"
#include "document/json_text.h"
#include "kube/lease.h"
#include "kube/transport.h"
#include "kubeflow/writes.h"

namespace voda {

namespace {

constexpr kube::Duration kWriteTime{2'000};  // what a write may take that is begun while we lead
constexpr kube::Duration kRetryLabel{2'000};

std::string HostName() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

class Side final : public KubernetesSide {
 public:
  Side(KubernetesConfig config, ClusterSink& sink, std::function<void()> lost)
      : config_(std::move(config)), sink_(sink), lost_(std::move(lost)) {}

  ~Side() override {
    if (election_ && transport_) {
      // Another replica need not wait for the lease to end.
      std::mutex mutex;
      std::condition_variable wake;
      bool done = false;
      election_->Stop([&] {
        const std::lock_guard lock(mutex);
        done = true;
        wake.notify_all();
      });
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return done; });
    }
    if (transport_) transport_->RunAndWait([this] { *alive_ = false; });
    jobs_.reset();
    access_.reset();
    election_.reset();
    transport_.reset();
  }

  Status Open() {
    auto found = kube::FindKubeConfig(config_.kubeconfig);
    if (!found) return found.error();
    server_ = found->server;
    if (config_.lease.name_space.empty()) config_.lease.name_space = found->name_space;
    if (config_.jobs.settings.name_space.empty()) config_.jobs.settings.name_space = config_.lease.name_space;
    kube::TransportOptions options;
    options.version = config_.version;
    kube::LaneLimits& writes = options.lanes[kube::Lane::kWrite];
    writes.per_second = config_.writes_per_second;
    writes.burst = 2 * config_.writes_per_second;
    writes.in_flight = 64;
    writes.waiting = 200'000;
    auto transport = kube::Transport::Create(*found, options, counters_);
    if (!transport) return transport.error();
    transport_ = std::move(*transport);
    if (Status reached = Reach(); !reached) return reached;

    const std::string identity = fmt::format("{}_{}", HostName(), NewToken().substr(0, 8));
    config_.jobs.instance = identity;
    kube::LeaseOptions lease;
    lease.name_space = config_.lease.name_space;
    lease.name = config_.lease.name;
    lease.identity = identity;
    lease.seed = std::hash<std::string>()(identity);
    auto election = kube::LeaderElection::Create(*transport_, counters_, lease,
                                                 {.on_leading = [this] { Lead(); }, .on_lost = lost_});
    if (!election) return election.error();
    election_ = std::move(*election);
    jobs_ = kubeflow::KubeflowJobs::Create(*transport_, counters_, config_.jobs, sink_, [this] {
      return transport_->Now() + kWriteTime < election_->LeaderUntil();
    });
    access_ = std::make_unique<kubeflow::Access>(*transport_);
    return Ok{};
  }

  void Start() override {
    Label("standby");
    election_->Start();
    Log(LogLevel::kInfo, "standing by",
        {{"server", server_}, {"lease", config_.lease.name_space + "/" + config_.lease.name}});
  }

  kubeflow::KubeflowJobs& jobs() override { return *jobs_; }
  kubeflow::Access& access() override { return *access_; }
  const kube::Counters& counters() const override { return counters_; }
  const Pulse& pulse() const override { return transport_->pulse(); }
  const kube::ObjectKey& settings() const override { return config_.jobs.settings; }
  const std::string& server() const override { return server_; }
  std::string Leader() const override { return election_->Holder(); }

 private:
  Status Reach() {
    kube::Request version;
    version.path = "/version";
    version.timeout = kube::Duration(15'000);
    const kube::Reply reply = transport_->Call(std::move(version));
    if (reply.ok()) return Ok{};
    return Error{
        fmt::format("the Kubernetes API server at {} does not answer: {}", server_, reply.error->Text())};
  }

  void Lead() {
    Label("leader");
    jobs_->Start();
  }

  // So that a Service can choose the pod that leads. One write at a time: of two that are under way the
  // server may take the later one first.
  void Label(const char* role) {
    role_ = role;
    if (!config_.pod.empty() && !labelling_) SendLabel();
  }
  void SendLabel() {
    labelling_ = true;
    kube::Request request = kube::MergePatchRequest(
        kubeflow::kPods, {config_.lease.name_space, config_.pod},
        fmt::format(R"({{"metadata":{{"labels":{{"vodascheduler/role":{}}}}}}})", Quoted(role_)));
    transport_->Send(std::move(request), [this, sent = role_, alive = alive_](const kube::Reply& reply) {
      if (!*alive) return;
      if (role_ != sent) return SendLabel();
      if (reply.ok()) {
        labelling_ = false;
        return;
      }
      Log(LogLevel::kWarn, "own pod cannot be labelled; clients may not find the leader",
          {{"pod", config_.pod}, {"why", reply.error->Text()}});
      transport_->After(kRetryLabel, [this, alive] {
        if (*alive) SendLabel();
      });
    });
  }

  KubernetesConfig config_;
  ClusterSink& sink_;
  std::function<void()> lost_;
  std::string server_;
  std::string role_;
  bool labelling_ = false;
  kube::Counters counters_;
  std::unique_ptr<kube::Transport> transport_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::unique_ptr<kubeflow::KubeflowJobs> jobs_;
  std::unique_ptr<kubeflow::Access> access_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

Result<std::unique_ptr<KubernetesSide>> KubernetesSide::Create(KubernetesConfig config, ClusterSink& sink,
                                                               std::function<void()> lost) {
  auto side = std::make_unique<Side>(std::move(config), sink, std::move(lost));
  if (const Status opened = side->Open(); !opened) return opened.error();
  return std::unique_ptr<KubernetesSide>(std::move(side));
}

}  // namespace voda
