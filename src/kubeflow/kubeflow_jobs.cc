#include "kubeflow/kubeflow_jobs.h"

#include <fmt/format.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "kube/event_recorder.h"
#include "kube/json_text.h"
#include "kubeflow/conditions.h"
#include "kubeflow/judge.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {

namespace {

using Json = nlohmann::json;

// What the API server's refusal is to whoever asked Voda.
Refusal ToRefusal(const kube::ApiError& error) {
  switch (error.reason) {
    case kube::Reason::kBadRequest:
    case kube::Reason::kInvalid:
    case kube::Reason::kTooLarge:
      return Invalid("Kubernetes: " + error.message);
    case kube::Reason::kNotFound:
      return Invalid(fmt::format("Kubernetes has no such namespace or kind of job: {}", error.message));
    case kube::Reason::kForbidden:
      return {403, "forbidden", "Kubernetes: " + error.message};
    case kube::Reason::kAlreadyExists:
    case kube::Reason::kConflict:
      return Conflict("Kubernetes: " + error.message);
    default:
      return Unavailable("Kubernetes: " + error.Text());
  }
}

// Whether the server may have carried it out although there was no answer.
bool Unclear(const kube::ApiError& error) {
  return (error.reason == kube::Reason::kConnection && !error.refused) ||
         error.reason == kube::Reason::kNoAnswer || error.reason == kube::Reason::kTimeout;
}

constexpr std::string_view kLeftAlone = "LeftAlone";
constexpr std::string_view kOurs = "ours";  // of an object that is being created
constexpr const char* kSameName =
    "a job of the other kind has this name already, and their pods would have the same names; choose another";

std::pair<std::string, std::string> Split(const std::string& job) {
  const auto slash = job.find('/');
  return {job.substr(0, slash), job.substr(slash + 1)};
}

constexpr kube::Duration kClarifyEvery{1'000};
constexpr int kClarifyTries = 60;

// Keys of a ConfigMap have no slash.
std::string SettingKey(std::string key) {
  if (const auto slash = key.find('/'); slash != key.npos) key[slash] = '.';
  return key;
}

class Jobs final : public KubeflowJobs {
 public:
  Jobs(kube::Io& io, kube::Counters& counters, JobsConfig config, Callbacks callbacks)
      : io_(io),
        config_(std::move(config)),
        callbacks_(std::move(callbacks)),
        events_(io, counters, {.instance = config_.instance}),
        conditions_(std::make_unique<Conditions>(
            io, [this](const std::string& job) { return cluster_->Find(job); }, callbacks_.may_write)),
        cluster_(KubeflowCluster::Create(io, counters, config_.cluster, ClusterCallbacks())) {}

  ~Jobs() override {
    io_.RunAndWait([this] { *alive_ = false; });
    cluster_.reset();  // its watches tell us to the last
    io_.RunAndWait([this] { conditions_.reset(); });
  }

  void Start() override {
    Send(kube::GetRequest(kConfigMaps, config_.settings), [this](const kube::Reply& reply) {
      if (reply.ok()) {
        ReadSettings(reply.body);
      } else if (reply.error->reason != kube::Reason::kNotFound) {
        Log(LogLevel::kWarn, "settings cannot be read; tried again", {{"why", reply.error->Text()}});
        io_.After(kube::Duration(1000), [this, alive = alive_] {
          if (*alive) Start();
        });
        return;
      }
      cluster_->Start();
    });
  }

  // ---- The record.
  bool KeepsJobs() const override { return true; }

  void Accept(const std::vector<ClusterJob>& jobs, const Done& done) override {
    auto batch = std::make_shared<Batch>();
    batch->jobs = jobs;
    batch->done = done;
    OnIo([this, batch] { CreateNext(batch); });
  }

  void Remember(const std::string& job, const std::string& state, const Done& done) override {
    OnIo([this, job, state, done] {
      const JobObject* object = cluster_->Find(job);
      if (object == nullptr) return Answer(done, NotFound("the object of " + job + " is gone"));
      if (!callbacks_.may_write()) return Answer(done, NotLeading());
      Send(StateRequest(*object, state), [this, job, state, done](const kube::Reply& reply) {
        if (reply.ok()) cluster_->Note(job, state);
        Answer(done, reply.ok() ? std::nullopt : std::optional(ToRefusal(*reply.error)));
      });
    });
  }

  void Note(const std::string& job, const std::string& state) override { cluster_->Note(job, state); }

  void Remove(const std::string& job, const Done& done) override {
    OnIo([this, job, done] {
      const JobObject* object = cluster_->Find(job);
      if (object == nullptr)
        return Answer(done, NotFound("the object of " + job + " is gone; its history is kept"));
      if (!callbacks_.may_write()) return Answer(done, NotLeading());
      Send(kube::DeleteRequest(object->resource, object->key(),
                               {.uid = object->head.uid, .propagation = "Background"}),
           [this, done](const kube::Reply& reply) {
             const bool gone = reply.ok() || reply.error->reason == kube::Reason::kNotFound;
             Answer(done, gone ? std::nullopt : std::optional(ToRefusal(*reply.error)));
           });
    });
  }

  void KeepSettings(const std::map<std::string, std::string>& settings, const Done& done) override {
    Json data = Json::object();
    for (const auto& [key, value] : settings) data[SettingKey(key)] = value;
    OnIo([this, data = std::move(data), done] {
      if (!callbacks_.may_write()) return Answer(done, NotLeading());
      Send(kube::MergePatchRequest(kConfigMaps, config_.settings, Json{{"data", data}}.dump()),
           [this, data, done](const kube::Reply& reply) {
             if (reply.ok() || reply.error->reason != kube::Reason::kNotFound) {
               return Answer(done, reply.ok() ? std::nullopt : std::optional(ToRefusal(*reply.error)));
             }
             const Json object = {{"apiVersion", "v1"},
                                  {"kind", "ConfigMap"},
                                  {"metadata", {{"name", config_.settings.name}}},
                                  {"data", data}};
             Send(kube::CreateRequest(kConfigMaps, config_.settings.name_space, object.dump()),
                  [this, done](const kube::Reply& created) {
                    Answer(done, created.ok() ? std::nullopt : std::optional(ToRefusal(*created.error)));
                  });
           });
    });
  }

  void Refuse(const std::string& job, const std::string& why) override {
    OnIo([this, job, why] {
      if (const JobObject* object = cluster_->Find(job)) Tell(*object, {"Refused", why, true});
      // What an earlier run made of it goes on without us.
      cluster_->Forget(job);
    });
  }
  void LookAgain() override {
    OnIo([this] {
      std::erase_if(told_, [](const auto& told) { return told.second != kOurs; });
      cluster_->LookAgain();
    });
  }
  void Say(const std::string& job, const JobWord& word) override {
    OnIo([this, job, word] {
      if (const JobObject* object = cluster_->Find(job)) Tell(*object, word);
    });
  }

  // ---- What runs.
  Result<int> GpusPerWorker(const JobSpec& spec, const std::string& gpu_type) const override {
    return AmountPerWorker(spec, gpu_type, config_.cluster.nodes.ResourceOf(gpu_type));
  }
  std::vector<std::string> AddJob(const ClusterJob& job, bool known) override {
    ManagedJob managed;
    managed.name = job.name;
    managed.gpu_type = job.gpu_type;
    // A pod that its PyTorchJob never restarts fails the job when it is deleted.
    managed.whole = !job.spec.elastic ||
                    (job.spec.kind == JobKind::kPyTorchJob && job.spec.restart_policy == RestartPolicy::kNo);
    managed.settings = SettingsOf(job);
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
  void EraseJob(std::int64_t) override {}
  int Failures(const std::string&) const override { return 0; }
  Cluster& PortFor(const std::string& gpu_type) override { return cluster_->PortFor(gpu_type); }

  bool ReadLogs(const LogRequest& request) override {
    OnIo([this, request] { OpenLog(request); });
    return true;
  }

 private:
  struct Batch {
    std::vector<ClusterJob> jobs;
    Done done;
    std::size_t next = 0;
    struct Made {
      kube::Resource resource;
      kube::ObjectKey key;
      std::string uid;
    };
    std::vector<Made> made;
  };

  KubeflowCluster::Callbacks ClusterCallbacks() {
    KubeflowCluster::Callbacks callbacks;
    callbacks.post = callbacks_.post;
    callbacks.may_write = callbacks_.may_write;
    callbacks.ended = callbacks_.ended;
    callbacks.gone = [this](const std::string& job, std::vector<NodeBook::Change> nodes) {
      for (const JobKind kind : {JobKind::kMpiJob, JobKind::kPyTorchJob}) told_.erase({job, kind});
      {
        const std::lock_guard lock(mutex_);
        held_.erase(job);
      }
      conditions_->Forget(job);
      callbacks_.gone(job, std::move(nodes));
    };
    callbacks.failed = [this](const std::string& job, const std::string& gpu_type, const std::string& message,
                              int failures) {
      callbacks_.notice({job, gpu_type, JobNotice::Kind::kWorkerFailed, message, failures});
    };
    callbacks.stuck = [this](const std::string& job, const std::string& why) {
      Log(LogLevel::kWarn, "order does not come about yet", {{"job", job}, {"why", why}});
      if (const JobObject* object = cluster_->Find(job)) Tell(*object, {"Stuck", why, true});
    };
    callbacks.seen = [this](const JobObject& job) { Seen(job); };
    callbacks.synced = [this](std::vector<NodeBook::Change> nodes) {
      for (NodeBook::Change& change : nodes)
        world_.nodes.emplace_back(std::move(change.gpu_type), std::move(change.event));
      ready_ = true;
      callbacks_.ready(std::exchange(world_, {}));
    };
    return callbacks;
  }

  void OnIo(std::function<void()> what) {
    io_.Post([alive = alive_, what = std::move(what)] {
      if (*alive) what();
    });
  }
  void Send(kube::Request request, kube::Io::Done then) {
    io_.Send(std::move(request), [alive = alive_, then = std::move(then)](kube::Reply reply) {
      if (*alive) then(std::move(reply));
    });
  }
  void Answer(const Done& done, std::optional<Refusal> refused) {
    callbacks_.on_engine([done, refused = std::move(refused)] { done(refused); });
  }
  static Refusal NotLeading() { return Unavailable("this replica does not lead at the moment; try again"); }

  void ReadSettings(const std::string& body) {
    const Json object = Json::parse(body, nullptr, false);
    if (!object.is_object() || !object.contains("data") || !object["data"].is_object()) return;
    for (const auto& [key, value] : object["data"].items()) {
      if (!value.is_string()) continue;
      std::string name = key;
      if (const auto dot = name.find('.'); dot != name.npos) name[dot] = '/';
      world_.settings[name] = value.get<std::string>();
    }
  }

  ManifestSettings SettingsOf(const ClusterJob& job) const {
    ManifestSettings settings;
    if (!config_.progress_url.empty())
      settings.progress_url = fmt::format("{}/api/v1/jobs/{}/progress", config_.progress_url, job.name);
    settings.token = job.token;
    settings.gpu_type = job.gpu_type;
    settings.steering = config_.cluster.steering;
    settings.state = job.state;
    settings.submission = job.submission;
    return settings;
  }

  // Whoever describes the job reads it, and whoever waits for the condition. A job that is another's keeps
  // its status to itself.
  void Tell(const JobObject& job, const JobWord& word) {
    if (word.reason != kLeftAlone) conditions_->Put(JobId(job), word);
    events_.Record(About(job, word));
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

  // A job that nobody manages. Told once, and again when what speaks against it has changed.
  void Seen(const JobObject& job) {
    Judgement judgement = Judge(job, config_.allowed);
    const std::string id = JobId(job);
    if (judgement.verdict == Judgement::Verdict::kNotOurs) return;
    std::string& told = told_[{id, job.kind}];
    const std::string now = fmt::format(
        "{} {:x} {}", job.head.uid, std::hash<std::string>()(judgement.found.spec.document), judgement.why);
    if (told == now || told == kOurs) return;
    told = now;
    if (judgement.verdict == Judgement::Verdict::kLeftAlone) {
      if (TakenIn(job)) cluster_->Forget(id);
      return Tell(job, {std::string(kLeftAlone), judgement.why, false});
    }
    if (!cluster_->Claim(id, job.kind)) {
      events_.Record(About(job, {"Refused", kSameName, true}));
      return;
    }
    FoundJob& found = judgement.found;
    found.refusal = judgement.why;
    if (found.end == FoundJob::End::kNone) found.workers_on = cluster_->Held(id);
    {
      const std::lock_guard lock(mutex_);
      held_[id] = found.workers_on;
    }
    if (!ready_) {
      world_.jobs.push_back(std::move(found));
    } else {
      const bool again = found.end == FoundJob::End::kNone && TakenIn(job);
      callbacks_.found(std::move(found), again ? cluster_->TakeBack(id) : std::vector<NodeBook::Change>());
    }
  }

  // ---- Creation, one after the other.
  void CreateNext(const std::shared_ptr<Batch>& batch) {
    if (batch->next == batch->jobs.size()) return Answer(batch->done, std::nullopt);
    if (!callbacks_.may_write()) return Undo(batch, NotLeading());
    const ClusterJob& job = batch->jobs[batch->next];
    if (std::string why = OfAnotherQueue(job.spec); !why.empty())
      return Undo(batch, Invalid(fmt::format("{}: {}", job.spec.name, why)));
    const auto [name_space, name] = Split(job.name);
    const kube::Resource resource = JobResource(job.spec.kind, job.spec.api_version);
    if (!cluster_->Claim(job.name, job.spec.kind)) return Undo(batch, Conflict(kSameName));
    told_[{job.name, job.spec.kind}] = kOurs;  // the watch may be faster than the answer
    kube::Request request =
        kube::CreateRequest(resource, name_space, NewObject(job.spec, name, SettingsOf(job)));
    const kube::ObjectKey key{name_space, name};
    Send(std::move(request), [this, batch, resource, key](const kube::Reply& reply) {
      if (reply.ok()) return Created(batch, resource, key, reply.body);
      if (!Unclear(*reply.error)) return Undo(batch, ToRefusal(*reply.error));
      Clarify(batch, resource, key, *reply.error, 0);
    });
  }

  // It may be there all the same: then it has this job's token. Whoever asked is told when that is known.
  void Clarify(const std::shared_ptr<Batch>& batch, const kube::Resource& resource,
               const kube::ObjectKey& key, const kube::ApiError& error, int tries) {
    Send(kube::GetRequest(resource, key),
         [this, batch, resource, key, error, tries](const kube::Reply& there) {
           JobObject object;
           object.kind = batch->jobs[batch->next].spec.kind;
           object.document = there.body;
           if (there.ok() && TokenOf(object) == batch->jobs[batch->next].token)
             return Created(batch, resource, key, there.body);
           const bool known = there.ok() || there.error->reason == kube::Reason::kNotFound;
           if (known || tries >= kClarifyTries || !callbacks_.may_write())
             return Undo(batch, ToRefusal(error));
           io_.After(kClarifyEvery, [this, alive = alive_, batch, resource, key, error, tries] {
             if (*alive) Clarify(batch, resource, key, error, tries + 1);
           });
         });
  }

  void Created(const std::shared_ptr<Batch>& batch, const kube::Resource& resource,
               const kube::ObjectKey& key, const std::string& body) {
    kube::JsonReader reader;
    const auto head = reader.Head(body);
    batch->made.push_back({resource, key, head ? head->uid : std::string()});
    ++batch->next;
    CreateNext(batch);
  }

  // All or none.
  void Undo(const std::shared_ptr<Batch>& batch, const Refusal& refusal) {
    for (const Batch::Made& made : batch->made) {
      Send(kube::DeleteRequest(made.resource, made.key, {.uid = made.uid, .propagation = "Background"}),
           [key = made.key](const kube::Reply& reply) {
             if (reply.ok()) return;
             Log(LogLevel::kWarn, "a job of a refused submission could not be deleted",
                 {{"job", key.name_space + "/" + key.name}, {"why", reply.error->Text()}});
           });
    }
    // One of which nobody knows whether it is there is found by its watch.
    for (const ClusterJob& job : batch->jobs) {
      told_.erase({job.name, job.spec.kind});
      cluster_->Unclaim(job.name);
    }
    Answer(batch->done, refusal);
  }

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
  Callbacks callbacks_;
  kube::EventRecorder events_;
  std::unique_ptr<Conditions> conditions_;  // on the I/O thread
  World world_;                             // until it is ready
  bool ready_ = false;
  // What was said of a job and its object then, on the I/O thread.
  std::map<std::pair<std::string, JobKind>, std::string> told_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> held_;  // of jobs that were found, when they were
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<KubeflowCluster> cluster_;
};

}  // namespace

std::unique_ptr<KubeflowJobs> KubeflowJobs::Create(kube::Io& io, kube::Counters& counters, JobsConfig config,
                                                   Callbacks callbacks) {
  return std::make_unique<Jobs>(io, counters, std::move(config), std::move(callbacks));
}

}  // namespace voda::kubeflow
