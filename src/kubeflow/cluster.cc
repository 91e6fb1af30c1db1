#include "kubeflow/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <utility>

#include "base/log.h"
#include "kube/reflector.h"
#include "kubeflow/job_driver.h"

namespace voda::kubeflow {

namespace {

constexpr int kWritesAtOnce = 128;  // more than are sent at once, so that no slot of the lane is idle

std::string IdOf(const std::string& name_space, const std::string& name) {
  return name_space + "/" + name;
}

bool BreaksRules(const JobObject& job) {
  return job.applied && !job.applied->dangers.empty();
}

class Driven final : public KubeflowCluster, public DriverHost {
 public:
  Driven(kube::Io& io, kube::Counters& counters, ClusterConfig config, ClusterSink& sink, JobsOwner& owner)
      : io_(io), config_(std::move(config)), sink_(sink), owner_(owner), book_(config_.nodes) {
    const std::vector<std::string> namespaces =
        config_.namespaces.empty() ? std::vector<std::string>{""} : config_.namespaces;
    nodes_ = std::make_unique<kube::TypedReflector<NodeObject>>(
        io, counters, Options(kNodes, ""),
        [](const kube::ObjectHead& head, const kube::JsonView& object, const NodeObject*) {
          return DecodeNode(head, object);
        },
        node_handler_);
    for (const std::string& name_space : namespaces) {
      pods_.push_back(
          {kPods, name_space,
           std::make_unique<kube::TypedReflector<PodObject>>(
               io, counters, Options(kPods, name_space),
               [steering = config_.steering](const kube::ObjectHead& head, const kube::JsonView& object,
                                             const PodObject*) { return DecodePod(steering, head, object); },
               pod_handler_)});
      for (const JobKind kind : {JobKind::kMpiJob, JobKind::kPyTorchJob}) {
        const kube::Resource resource =
            JobResource(kind, kind == JobKind::kMpiJob ? config_.mpi_version : std::string("v1"));
        jobs_.push_back({resource, name_space,
                         std::make_unique<kube::TypedReflector<JobObject>>(
                             io, counters, Options(resource, name_space),
                             [rules = JobRules{resource, kind, config_.allowed}](
                                 const kube::ObjectHead& head, const kube::JsonView& object,
                                 const JobObject* before) { return DecodeJob(rules, head, object, before); },
                             job_handler_)});
      }
    }
    waiting_ = 1 + pods_.size() + jobs_.size();
  }

  ~Driven() override {
    for (const auto& watched : jobs_) watched.copy->Stop();
    for (const auto& watched : pods_) watched.copy->Stop();
    nodes_->Stop();
    io_.RunAndWait([this] {
      *alive_ = false;
      io_.Cancel(node_timer_);
      drivers_.clear();
    });
  }

  void Start() override {
    nodes_->Start();
    for (const auto& watched : pods_) watched.copy->Start();
    for (const auto& watched : jobs_) watched.copy->Start();
  }

  void Manage(ManagedJob job) override {
    OnIo([this, job = std::move(job)]() mutable {
      const std::string name = job.name;
      taken_in_.erase(name);
      if (const auto at = drivers_.find(name); at != drivers_.end())
        return at->second->Change(std::move(job));
      // The job is made and told of at once: what has changed since is news to the scheduler.
      drivers_[name] = std::make_unique<JobDriver>(*this, sink_, std::move(job));
      if (const JobObject* object = FindJob(name);
          object != nullptr && object->end != JobObject::End::kNone) {
        ended_.insert(name);
      } else {
        DropForeign(name);
      }
      LookAtNodes();
      Stir(name);
    });
  }

  void Forget(const std::string& job) override {
    OnIo([this, job] { LetGo(job); });
  }

  void Note(const std::string& job, std::string state) override {
    OnIo([this, job, state = std::move(state)] {
      if (const auto at = drivers_.find(job); at != drivers_.end()) at->second->Note(state);
    });
  }

  bool ReserveName(const std::string& job, JobKind kind) override {
    return kinds_.emplace(job, kind).first->second == kind;
  }

  void FreeName(const std::string& job) override {
    if (FindJob(job) == nullptr) kinds_.erase(job);
  }

  std::vector<TypedEvent> TakeBack(const std::string& job) override {
    taken_in_.insert(job);
    DropForeign(job);
    return NodeChanges();
  }

  void LookAgain() override {
    if (waiting_ > 0) return;
    for (const JobObject* job : JobsByAge()) {
      if (job->end == JobObject::End::kNone && !IsManaged(*job)) owner_.Seen(*job);
    }
  }

  std::vector<std::string> Held(const std::string& job) const override {
    const JobObject* object = FindJob(job);
    return object == nullptr ? std::vector<std::string>() : Seats(MakeView(*object, PodsOf(job), false));
  }
  const JobObject* Find(const std::string& job) const override { return FindJob(job); }
  std::vector<const PodObject*> Pods(const std::string& job) const override { return PodsOf(job); }

  std::string Waits(const std::string& job) const override {
    const auto at = drivers_.find(job);
    return at == drivers_.end() ? std::string() : at->second->Waits();
  }

  Cluster& PortFor(const std::string& gpu_type) override {
    auto& port = ports_[gpu_type];
    if (!port) port = std::make_unique<Port>(*this, gpu_type);
    return *port;
  }

 private:
  class Port final : public Cluster {
   public:
    Port(Driven& cluster, std::string gpu_type) : cluster_(cluster), gpu_type_(std::move(gpu_type)) {}
    void Execute(const Action& action, const PerNode<Node>& nodes) override {
      cluster_.OnIo([&cluster = cluster_, order = MakeOrder(action, nodes, gpu_type_)] {
        const auto at = cluster.drivers_.find(order.job);
        if (at != cluster.drivers_.end()) return at->second->Execute(order);
        cluster.sink_.Post({{order.gpu_type, ActionFailed{order.id, "the job's object is gone"}}});
      });
    }

   private:
    Driven& cluster_;
    std::string gpu_type_;
  };

  template <class T>
  struct Watched {
    kube::Resource resource;
    std::string name_space;  // empty means all
    std::unique_ptr<kube::TypedReflector<T>> copy;
  };

  template <class T, class OnPut, class OnGone>
  class Handler final : public kube::TypedReflector<T>::Handler {
   public:
    Handler(Driven& cluster, OnPut put, OnGone gone) : cluster_(cluster), put_(put), gone_(gone) {}
    void OnAdd(const T& object) override { (cluster_.*put_)(object); }
    void OnUpdate(const T& before, const T& object) override {
      if (before.head.uid != object.head.uid) (cluster_.*gone_)(before);
      (cluster_.*put_)(object);
    }
    void OnDelete(const T& last) override { (cluster_.*gone_)(last); }
    void OnSynced() override { cluster_.OneSynced(); }

   private:
    Driven& cluster_;
    OnPut put_;
    OnGone gone_;
  };
  template <class T>
  using HandlerOf = Handler<T, void (Driven::*)(const T&), void (Driven::*)(const T&)>;

  kube::ReflectorOptions Options(const kube::Resource& resource, const std::string& name_space) {
    kube::ReflectorOptions options;
    options.resource = resource;
    options.name_space = name_space;
    options.seed = config_.seed++;
    if (resource.plural == "mpijobs") {
      options.if_missing = fmt::format(
          "the cluster has no MPIJobs of {}: install mpi-operator (v2beta1) or the training operator (v1), "
          "or "
          "start Voda with the other --mpi-version",
          resource.ApiVersion());
    }
    // One replica with a few watches need not fear to return in step with a thousand others, and a
    // scheduler must not be blind for half a minute.
    options.rules.backoff.longest = kube::Duration(5'000);
    return options;
  }

  void OnIo(std::function<void()> what) {
    io_.Post([alive = alive_, what = std::move(what)] {
      if (*alive) what();
    });
  }

  // ---- The watches call these, on the I/O thread.
  void PutNode(const NodeObject& node) {
    book_.Put(node, WallSeconds());
    LookAtNodes();
    if (config_.steering == Steering::kTaints && waiting_ == 0) Taint(node);
  }
  // Keeps our taint on nodes with our label, for the pods that we place there; removes it from other nodes.
  void Taint(const NodeObject& node) {
    const bool ours = !node.gpu_type.empty();
    if (ours == (node.own_taint >= 0) || node.deleting || !owner_.MayWrite()) return;
    io_.Send(ours ? TaintRequest(node) : UntaintRequest(node), [name = node.head.name](
                                                                   const kube::Reply& reply) {
      if (reply.ok() || reply.error->reason == kube::Reason::kConflict ||
          reply.error->reason == kube::Reason::kInvalid)
        return;  // the node's next change brings us here again
      Log(LogLevel::kWarn, "taint of the node not changed", {{"node", name}, {"why", reply.error->Text()}});
    });
  }
  void GoneNode(const NodeObject& node) {
    book_.Remove(node.head.name);
    LookAtNodes();
  }

  void PutPod(const PodObject& pod) {
    const std::string job = pod.job.empty() ? std::string() : IdOf(pod.head.name_space, pod.job);
    if (!job.empty()) pods_of_[job].insert({pod.head.name_space, pod.head.name});
    if (waiting_ > 0) return;
    const bool managed = drivers_.contains(job) && !ended_.contains(job);
    // The plan contains what workers hold, and neither launchers nor what others labelled like a worker.
    if (!IsWorkerOf(job, pod) || (!managed && !taken_in_.contains(job))) {
      book_.PutForeign(pod);
      LookAtNodes();
    }
    if (managed) Stir(job);
  }
  void GonePod(const PodObject& pod) {
    const std::string job = pod.job.empty() ? std::string() : IdOf(pod.head.name_space, pod.job);
    if (const auto at = pods_of_.find(job);
        at != pods_of_.end() && FindPod({pod.head.name_space, pod.head.name}) == nullptr) {
      at->second.erase({pod.head.name_space, pod.head.name});
      if (at->second.empty()) pods_of_.erase(at);
    }
    book_.RemoveForeign(pod.head.uid);
    LookAtNodes();
    Stir(job);
  }

  void PutJob(const JobObject& job) {
    if (waiting_ > 0) return;
    // Once the object is being deleted, its operator does nothing for it. Without our label, or with
    // another queue's, it is not ours any more, and neither is one whose template breaks the rules since its
    // user changed it. How the job ended is still reported.
    const bool leaves =
        job.end == JobObject::End::kNone && (job.deleting || !IsOurs(job) || BreaksRules(job));
    if (leaves && IsManaged(job)) {
      GoneJob(job);
      if (!job.deleting && !job.applied) owner_.TellUser(job, ReleasedWord());
    }
    IsManaged(job) ? Stir(JobId(job)) : owner_.Seen(job);
  }
  void GoneJob(const JobObject& job) {
    if (waiting_ > 0) return;
    const std::string id = JobId(job);
    const auto kind = kinds_.find(id);
    if (kind != kinds_.end() && kind->second != job.kind) return;
    if (kind != kinds_.end()) kinds_.erase(kind);
    if (const auto at = drivers_.find(id); at != drivers_.end())
      at->second->Abandon("its object was deleted");
    LetGo(id);
    owner_.Gone(id);
    sink_.Gone(id, NodeChanges());
  }

  void DropForeign(const std::string& job) {
    for (const PodObject* pod : PodsOf(job)) {
      if (IsWorkerOf(job, *pod)) book_.RemoveForeign(pod->head.uid);
    }
  }
  bool IsWorkerOf(const std::string& job, const PodObject& pod) const {
    const JobObject* object = job.empty() ? nullptr : FindJob(job);
    return object != nullptr && IsWorker(*object, pod);
  }

  // Makes a job's pods foreign; they hold their GPUs until they are gone.
  void LetGo(const std::string& job) {
    drivers_.erase(job);
    taken_in_.erase(job);
    ended_.erase(job);
    for (const PodObject* pod : PodsOf(job)) book_.PutForeign(*pod);
    LookAtNodes();
  }

  void OneSynced() {
    if (--waiting_ > 0) return;
    OnIo([this] {
      // Whose a pod is, is only known once all jobs are.
      for (const auto& watched : jobs_) {
        for (const auto& [key, job] : watched.copy->objects()) {
          if (TakenIn(job) && job.end == JobObject::End::kNone) taken_in_.insert(JobId(job));
        }
      }
      for (const auto& watched : pods_) {
        for (const auto& [key, pod] : watched.copy->objects()) {
          const std::string job = pod.job.empty() ? std::string() : IdOf(pod.head.name_space, pod.job);
          if (!taken_in_.contains(job) || !IsWorkerOf(job, pod)) book_.PutForeign(pod);
        }
      }
      for (const JobObject* job : JobsByAge()) owner_.Seen(*job);
      if (config_.steering == Steering::kTaints) {
        for (const auto& [key, node] : nodes_->objects()) Taint(node);
      }
      std::optional<double> next;
      owner_.Synced(book_.Changes(WallSeconds(), next));
      LookAtNodes();
    });
  }

  std::vector<const JobObject*> JobsByAge() const {
    std::vector<const JobObject*> jobs;
    for (const auto& watched : jobs_) {
      for (const auto& [key, job] : watched.copy->objects()) jobs.push_back(&job);
    }
    std::sort(jobs.begin(), jobs.end(), [](const JobObject* a, const JobObject* b) {
      return std::tie(a->created, a->head.name_space, a->head.name, a->kind) <
             std::tie(b->created, b->head.name_space, b->head.name, b->kind);
    });
    return jobs;
  }

  bool IsManaged(const JobObject& job) const {
    const std::string id = JobId(job);
    const auto kind = kinds_.find(id);
    return drivers_.contains(id) && (kind == kinds_.end() || kind->second == job.kind);
  }

  // Advances the job once for all events of a batch.
  void Stir(const std::string& job) {
    if (!drivers_.contains(job) || !stirred_.insert(job).second) return;
    if (stirred_.size() > 1) return;
    OnIo([this] {
      for (const std::string& one : std::exchange(stirred_, {})) {
        if (const auto at = drivers_.find(one); at != drivers_.end()) at->second->Changed();
      }
    });
  }

  void LookAtNodes() {
    if (waiting_ > 0 || std::exchange(nodes_stirred_, true)) return;
    OnIo([this] {
      nodes_stirred_ = false;
      if (std::vector<TypedEvent> changes = NodeChanges(); !changes.empty()) sink_.Post(std::move(changes));
    });
  }
  std::vector<TypedEvent> NodeChanges() {
    const double now = WallSeconds();
    std::optional<double> next;
    std::vector<TypedEvent> changes = book_.Changes(now, next);
    if (!next) return changes;
    io_.Cancel(node_timer_);
    const auto delay = std::chrono::duration_cast<kube::Duration>(std::chrono::duration<double>(*next - now));
    node_timer_ = io_.After(delay + kube::Duration(1), [this, alive = alive_] {
      if (*alive) LookAtNodes();
    });
    return changes;
  }

  double WallSeconds() const { return std::chrono::duration<double>(io_.Wall().time_since_epoch()).count(); }

  // ---- DriverHost
  kube::Io& io() override { return io_; }
  bool MayWrite() override { return owner_.MayWrite(); }
  bool MaySend(const std::string& job) override {
    if (writing_ < kWritesAtOnce) return true;
    if (in_line_.insert(job).second) line_.push_back(job);
    return false;
  }
  void SendWrite(kube::Request request, kube::Io::Done done) override {
    ++writing_;
    io_.Send(std::move(request), [this, alive = alive_, done = std::move(done)](kube::Reply reply) {
      if (!*alive) return;
      --writing_;
      done(std::move(reply));
      while (writing_ < kWritesAtOnce && !line_.empty()) {
        const std::string next = std::move(line_.front());
        line_.pop_front();
        in_line_.erase(next);
        if (const auto at = drivers_.find(next); at != drivers_.end()) at->second->Turn();
      }
    });
  }
  bool HasSeen(const kube::Resource& resource, const std::string& name_space,
               const std::string& version) const override {
    const auto covers = [&](const auto& watched) {
      return watched.resource.plural == resource.plural &&
             (watched.name_space.empty() || watched.name_space == name_space);
    };
    for (const auto& watched : pods_) {
      if (covers(watched)) return watched.copy->HasSeen(version);
    }
    for (const auto& watched : jobs_) {
      if (covers(watched)) return watched.copy->HasSeen(version);
    }
    return true;
  }
  const JobObject* FindJob(const std::string& job) const override {
    const kube::ObjectKey key = KeyOf(job);
    const auto kind = kinds_.find(job);
    for (const auto& watched : jobs_) {
      const auto& objects = watched.copy->objects();
      const auto at = objects.find(key);
      if (at != objects.end() && (kind == kinds_.end() || kind->second == at->second.kind))
        return &at->second;
    }
    return nullptr;
  }
  const PodObject* FindPod(const kube::ObjectKey& key) const {
    for (const auto& watched : pods_) {
      const auto& objects = watched.copy->objects();
      if (const auto at = objects.find(key); at != objects.end()) return &at->second;
    }
    return nullptr;
  }
  std::vector<const PodObject*> PodsOf(const std::string& job) const override {
    std::vector<const PodObject*> pods;
    const auto at = pods_of_.find(job);
    if (at == pods_of_.end()) return pods;
    for (const kube::ObjectKey& key : at->second) {
      if (const PodObject* pod = FindPod(key)) pods.push_back(pod);
    }
    return pods;
  }
  bool Silent(const std::string& node) const override { return book_.Silent(node, WallSeconds()); }
  std::vector<TypedEvent> Ended(const std::string& job) override {
    ended_.insert(job);
    for (const PodObject* pod : PodsOf(job)) book_.PutForeign(*pod);
    if (const JobObject* object = FindJob(job)) owner_.TellUser(*object, EndOf(*object));
    return NodeChanges();
  }
  void Stuck(const std::string& job, const std::string& why) override { owner_.Stuck(job, why); }
  void TellUser(const std::string& job, const JobWord& word) override {
    if (const JobObject* object = FindJob(job)) owner_.TellUser(*object, word);
  }

  kube::Io& io_;
  ClusterConfig config_;
  ClusterSink& sink_;
  JobsOwner& owner_;
  NodeBook book_;
  HandlerOf<NodeObject> node_handler_{*this, &Driven::PutNode, &Driven::GoneNode};
  HandlerOf<PodObject> pod_handler_{*this, &Driven::PutPod, &Driven::GonePod};
  HandlerOf<JobObject> job_handler_{*this, &Driven::PutJob, &Driven::GoneJob};
  std::unique_ptr<kube::TypedReflector<NodeObject>> nodes_;
  std::vector<Watched<PodObject>> pods_;  // one for each namespace
  std::vector<Watched<JobObject>> jobs_;  // two, for two kinds
  std::size_t waiting_ = 0;               // watches without their first list
  std::map<std::string, JobKind> kinds_;  // the kind that has a job name
  std::set<std::string> taken_in_;        // taken in by an earlier run, not managed yet
  std::set<std::string> ended_;           // managed, but their pods are foreign now
  std::map<std::string, std::set<kube::ObjectKey>> pods_of_;
  std::map<std::string, std::unique_ptr<JobDriver>> drivers_;
  std::map<std::string, std::unique_ptr<Port>> ports_;
  std::set<std::string> stirred_;
  int writing_ = 0;                // writes of jobs without an answer
  std::deque<std::string> line_;   // jobs that wait for their turn to write
  std::set<std::string> in_line_;  // the same jobs
  bool nodes_stirred_ = false;
  kube::Io::Ticket node_timer_ = kube::Io::Ticket::kNone;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace

bool IsOurs(const JobObject& job) {
  return job.labels.contains(kQueueLabel) && !job.labels.contains(kOtherQueueLabel);
}

JobWord EndOf(const JobObject& job) {
  return job.end == JobObject::End::kSucceeded
             ? JobWord{"Completed", "the job has completed", false}
             : JobWord{"Failed", "the job has failed: " + job.message, true};
}

JobWord ReleasedWord() {
  return {"Released", fmt::format("the label {} is gone: Voda leaves the job alone from now on", kQueueLabel),
          false};
}

bool TakenIn(const JobObject& job) {
  return job.labels.contains(kQueueLabel) && job.annotations.contains(kStateAnnotation) && !job.deleting;
}

std::unique_ptr<KubeflowCluster> KubeflowCluster::Create(kube::Io& io, kube::Counters& counters,
                                                         ClusterConfig config, ClusterSink& sink,
                                                         JobsOwner& owner) {
  return std::make_unique<Driven>(io, counters, std::move(config), sink, owner);
}

}  // namespace voda::kubeflow
