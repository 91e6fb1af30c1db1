#include "kubeflow/kubeflow_jobs.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "base/log.h"
#include "kube/event_recorder.h"
#include "kubeflow/adoption.h"
#include "kubeflow/conditions.h"
#include "kubeflow/object_ledger.h"
#include "kubeflow/refusals.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {

namespace {

constexpr std::string_view kLeftAlone = "LeftAlone";

class Jobs final : public KubeflowJobs, private JobsOwner {
 public:
  Jobs(kube::Io& io, kube::Counters& counters, JobsConfig config, ClusterSink& sink,
       std::function<bool()> may_write)
      : io_(io),
        config_(std::move(config)),
        sink_(sink),
        may_write_(std::move(may_write)),
        events_(io, counters, {.instance = config_.instance}),
        conditions_(std::make_unique<Conditions>(
            io, [this](const std::string& job) { return cluster_->Find(job); }, may_write_)),
        cluster_(KubeflowCluster::Create(io, counters, config_.cluster, sink_, *this)),
        ledger_(std::make_unique<ObjectLedger>(
            ObjectLedger::Surroundings{
                io, *cluster_, sightings_, sink_, may_write_,
                [this](const JobObject& job, const JobWord& word) { Tell(job, word); }},
            ObjectSettings{config_.progress_url, config_.cluster.steering, config_.settings,
                           config_.cluster.mpi_version})) {}

  ~Jobs() override {
    io_.RunAndWait([this] { *alive_ = false; });
    ledger_->Stop();
    cluster_.reset();  // its watches tell us to the last
    ledger_.reset();
    io_.RunAndWait([this] { conditions_.reset(); });
  }

  void Start() override {
    ledger_->ReadSettings([this](std::map<std::string, std::string> settings) {
      contents_.settings = std::move(settings);
      cluster_->Start();
    });
  }

  Ledger& ledger() override { return *ledger_; }

  // ---- What runs.
  Result<int> GpusPerWorker(const JobSpec& spec, const std::string& gpu_type) const override {
    // The ledger refuses it, too; a dry run does not come that far.
    for (const std::string& why : {OfAnotherQueue(spec), OfAnotherVersion(spec, config_.cluster.mpi_version)})
      if (!why.empty()) return Error{fmt::format("{}: {}", spec.name, why)};
    return AmountPerWorker(spec, gpu_type, config_.cluster.nodes.ResourceOf(gpu_type));
  }
  std::vector<std::string> AddJob(const AcceptedJob& job, bool known) override {
    ManagedJob managed;
    managed.name = job.name;
    managed.gpu_type = job.gpu_type;
    // A pod that its PyTorchJob never restarts fails the job when it is deleted.
    managed.whole = !job.spec->elastic || (job.spec->kind == JobKind::kPyTorchJob &&
                                           job.spec->restart_policy == RestartPolicy::kNo);
    managed.min = job.spec->limits.min;
    managed.settings = ledger_->settings().For(job.name, job.gpu_type, job.token);
    {
      const std::lock_guard lock(mutex_);
      auto held = held_.extract(job.name);
      if (known && !held.empty()) managed.believed = std::move(held.mapped());
    }
    std::vector<std::string> held = managed.believed;
    cluster_->Manage(std::move(managed));
    return held;
  }
  void ForgetJob(const std::string& name) override { cluster_->Forget(name); }
  void AddNode(const std::string&, const std::vector<int>&) override {}
  void EraseJob(std::int64_t, const std::string&) override {}
  int Failures(const std::string&) const override { return 0; }
  Cluster& PortFor(const std::string& gpu_type) override { return cluster_->PortFor(gpu_type); }

  std::vector<std::string> LogFiles(std::int64_t, const std::string&, int) const override { return {}; }
  bool ReadLogs(const LogRequest& request) override {
    OnIo([this, request] { OpenLog(request); });
    return true;
  }

 private:
  // ---- JobsOwner
  void Synced(std::vector<TypedEvent> nodes) override {
    ready_ = true;
    sink_.Ready(std::exchange(contents_, {}), std::move(nodes));
  }
  void Gone(const std::string& job) override {
    for (const JobKind kind : {JobKind::kMpiJob, JobKind::kPyTorchJob}) sightings_.Forget(job, kind);
    {
      const std::lock_guard lock(mutex_);
      held_.erase(job);
    }
    conditions_->Forget(job);
  }
  void Stuck(const std::string& job, const std::string& why) override {
    Log(LogLevel::kWarn, "order does not come about yet", {{"job", job}, {"why", why}});
    if (const JobObject* object = cluster_->Find(job)) Tell(*object, {"Stuck", why, true});
  }
  void TellUser(const JobObject& job, const JobWord& word) override { Tell(job, word); }
  bool MayWrite() override { return may_write_(); }

  void OnIo(std::function<void()> what) {
    io_.Post([alive = alive_, what = std::move(what)] {
      if (*alive) what();
    });
  }
  // Whoever describes the job reads it, and whoever waits for the condition. A job that is another's keeps
  // its status to itself.
  void Tell(const JobObject& job, const JobWord& word) {
    if (word.reason != kLeftAlone) conditions_->Put(JobId(job), word);
    if (job.end == JobObject::End::kNone) events_.Record(About(job, word));  // its operator tells of the end
  }

  // A job that nobody manages says that it is scheduled although it has ended or is none of ours any more.
  // That may have happened while nobody led, or the last leader had no time to write it.
  void LookAtCondition(const JobObject& job) {
    if (job.condition.status != "True" || job.deleting) return;
    const std::string id = JobId(job);
    const JobObject* named = cluster_->Find(id);
    if (named == nullptr || named->head.uid != job.head.uid) return;  // the other kind has the name
    if (job.end != JobObject::End::kNone) {
      conditions_->Put(id, EndOf(job));
    } else if (!job.applied) {
      conditions_->Put(id, ReleasedWord());
    } else if (!IsOurs(job)) {
      conditions_->Put(id, {std::string(kLeftAlone), Classify(job)->refusal, false});
    }
  }

  static kube::KubeEvent About(const JobObject& job, const JobWord& word) {
    kube::KubeEvent event;
    event.regarding = {job.resource.ApiVersion(), std::string(Name(job.kind)), job.head.name_space,
                       job.head.name, job.head.uid};
    event.type = word.warning ? kube::EventType::kWarning : kube::EventType::kNormal;
    event.reason = word.reason;
    event.action = "Schedule";
    event.note = word.message;
    return event;
  }

  // A job that nobody manages. The service is told once, and again when what speaks against the job has
  // changed.
  void Seen(const JobObject& job) override {
    LookAtCondition(job);
    std::optional<FoundJob> found = sightings_.Look(job);
    if (!found || ledger_->RemoveUnaccepted(job)) return;
    const std::string id = JobId(job);
    if (!IsOurs(job)) {
      if (TakenIn(job)) cluster_->Forget(id);
      return Tell(job, {std::string(kLeftAlone), found->refusal, false});
    }
    if (!cluster_->ReserveName(id, job.kind)) {
      events_.Record(About(job, {"Refused", kSameName, true}));
      return;
    }
    if (found->state) found->state = Possible(*found->state, found->created, WallSeconds());
    ledger_->Known(*found, job);
    if (found->end == FoundJob::End::kNone) {
      const std::lock_guard lock(mutex_);
      held_[id] = cluster_->Held(id);
    }
    if (!ready_) {
      contents_.jobs.push_back(*std::move(found));
    } else {
      const bool again = found->end == FoundJob::End::kNone && TakenIn(job);
      sink_.Found(*std::move(found), again ? cluster_->TakeBack(id) : std::vector<TypedEvent>());
    }
  }

  double WallSeconds() const { return std::chrono::duration<double>(io_.Wall().time_since_epoch()).count(); }

  // ---- Logs.
  void OpenLog(const LogRequest& request) {
    const JobObject* job = cluster_->Find(request.job);
    if (job == nullptr) {
      return request.end(
          NotFound(fmt::format("the object of {} is gone, and its logs with it", request.job)));
    }
    const bool mpi = job->kind == JobKind::kMpiJob;
    const PodObject* pod = nullptr;
    const JobView view = MakeView(*job, cluster_->Pods(request.job), false);
    if (mpi && request.worker == 0) pod = view.launcher;
    for (const JobView::Worker& worker : view.workers) {
      if (!mpi && worker.number == request.worker) pod = worker.pod;
    }
    if (pod == nullptr) {
      return request.end(NotFound(
          mpi ? fmt::format(
                    "{} has no launcher pod at the moment; what an MPIJob prints is read there (worker 0)",
                    request.job)
              : fmt::format("worker {} of {} has no pod at the moment", request.worker, request.job)));
    }
    kube::Request get;
    get.verb = kube::Verb::kGet;
    get.path = kube::ResourcePath(kPods, pod->head.name_space, pod->head.name, "log") +
               kube::Query({{"container", pod->container},
                            {"follow", request.follow ? "true" : ""},
                            {"tailLines", request.tail >= 0 ? std::to_string(request.tail) : ""},
                            {"limitBytes", request.follow ? "" : std::to_string(request.bytes)}});
    get.idle = kube::Duration(3'600'000);
    kube::StreamCallbacks stream;
    stream.on_open = [] {};
    stream.on_data = request.data;
    stream.on_end = [end = request.end](const std::optional<kube::ApiError>& error) {
      end(error ? std::optional(ToRefusal(*error)) : std::nullopt);
    };
    io_.Stream(std::move(get), std::move(stream));
  }

  kube::Io& io_;
  JobsConfig config_;
  ClusterSink& sink_;
  std::function<bool()> may_write_;
  kube::EventRecorder events_;
  std::unique_ptr<Conditions> conditions_;  // on the I/O thread
  LedgerContents contents_;                 // until it is ready
  bool ready_ = false;
  Sightings sightings_;  // on the I/O thread
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> held_;  // of jobs that were found, when they were
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<KubeflowCluster> cluster_;
  std::unique_ptr<ObjectLedger> ledger_;
};

}  // namespace

std::unique_ptr<KubeflowJobs> KubeflowJobs::Create(kube::Io& io, kube::Counters& counters, JobsConfig config,
                                                   ClusterSink& sink, std::function<bool()> may_write) {
  return std::make_unique<Jobs>(io, counters, std::move(config), sink, std::move(may_write));
}

}  // namespace voda::kubeflow
