// Service: the live system between the API, the store, the cluster and one scheduler for each GPU type.
//
// One thread (engine.h) owns it. Reads answer at once; writes are collected into one transaction for all
// tasks of a batch and take effect, in memory and towards the scheduler, only when that is durable: a request
// is answered 2xx after its commit or not at all. What the cluster reports needs no such care, for the
// cluster can be asked again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/event_hub.h"
#include "base/refusal.h"
#include "cluster/job_cluster.h"
#include "core/scheduler.h"
#include "estimate/collector.h"
#include "metrics/metrics.h"
#include "policy/registry.h"
#include "service/progress.h"
#include "service/progress_file.h"
#include "service/submissions.h"
#include "service/timed_policy.h"
#include "spec/job_spec.h"
#include "store/database.h"

namespace voda {

class JsonWriter;

// Seconds since 1970.
double WallNow();

struct DeclaredNode {
  std::string name;
  int gpus = 0;
  std::string gpu_type;
  std::vector<int> devices;  // GPU indices; empty: slots without a device
};

using PolicyMaker =
    std::function<Result<std::unique_ptr<Policy>>(const std::string& name, const PolicyOptions& options)>;

struct ServiceConfig {
  std::vector<DeclaredNode> nodes;
  CoreConfig core;
  std::string algorithm{kDefaultPolicy};
  PolicyOptions options;
  bool algorithm_given = false;  // by a flag, which wins over what was set before
  bool rate_limit_given = false;
  PolicyMaker make_policy;  // of the flag; requests get the built-in ones only
  Retention retention;
  std::string jobs_folder;  // DATA/jobs
  std::string csv_folder;   // of a cluster that keeps jobs: FOLDER/NAMESPACE/NAME.csv; empty: none
  std::string version;
};

// A job as the service keeps it. Ended jobs keep their record without the document.
struct JobEntry {
  JobRecord record;
  std::shared_ptr<const JobSpec> spec;  // while it is active
  JobProgress progress;
  std::shared_ptr<ProgressFile> csv;
  double partly = 0;               // of the epoch under way
  std::vector<std::string> nodes;  // of its workers, "" where one is down
};

// The scheduler of one GPU type and what belongs to it.
struct Lane {
  std::string gpu_type;
  std::unique_ptr<Cluster> port;  // the scheduler's
  std::unique_ptr<Scheduler> scheduler;
  const TimedPolicy* policy = nullptr;  // the scheduler's
  std::string algorithm;
  PolicyOptions options;
  Collector collector;
  ActionId next_action = 1;  // those before it were looked at
  std::size_t active = 0;    // jobs that the scheduler knew after the last look
  double last_round = 0;     // when; 0: none yet
};

// A node as users see it; the scheduler knows a draining one as lost.
struct NodeEntry {
  DeclaredNode declared;
  std::string state = "ready";
  bool kept = false;  // in the store: added through the API
};

// What a user asks of a job; what is not given stays as it is.
struct Changes {
  std::optional<int> priority, min, num, max;
  std::optional<bool> held, deleting;  // Hold and Delete; not for Change
};

class Service {
 public:
  // Everything given outlives the service.
  Service(ServiceConfig config, Database& database, JobCluster& cluster, EventHub& events, Metrics& metrics);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // What a cluster that keeps jobs has at the start.
  struct World {
    std::map<std::string, std::string> settings;
    std::vector<std::pair<std::string, Event>> nodes;  // by GPU type
    std::vector<FoundJob> jobs;
  };
  // Before the first Step: nodes, settings, history, and the jobs of an earlier run with what still runs of
  // them.
  Status Restore(double now, const World& world = {});

  // After the tasks of a batch: commits, runs rounds, looks after what is periodic. Returns when to come back
  // at the latest.
  double Step(double now);

  // ---- Commands. `done` is called after the commit, or at once with a refusal.
  using Done = std::function<void(Answer<std::vector<std::int64_t>>)>;  // the ids of the jobs
  struct Idempotency {
    std::string key, body_hash;
  };
  void Submit(std::vector<JobSpec> specs, std::optional<Idempotency> idempotency, double now,
              const Done& done);
  // What Submit would do, as the API answers it.
  Answer<std::string> DryRun(const std::vector<JobSpec>& specs, double now);
  // Stops it. Where the cluster keeps jobs its object goes, also of one that has ended; the record stays.
  void Delete(const std::string& job, Done done);
  // Removes one that has ended: its files, with checkpoints and logs, and its record.
  void Erase(const std::string& job, Done done);
  void Hold(const std::string& job, bool held, Done done);
  void Change(const std::string& job, const Changes& changes, Done done);
  using NodeDone = std::function<void(std::optional<Refusal>)>;
  void AddNode(const DeclaredNode& node, NodeDone done);
  void RemoveNode(const std::string& name, NodeDone done);
  void SetNodeState(const std::string& name, const std::string& state, NodeDone done);
  // For one GPU type, or all where it is empty. Changes nothing where any part cannot be used.
  struct Settings {
    std::optional<std::string> algorithm;
    std::optional<PolicyOptions> options;
    std::optional<double> rate_limit;
  };
  void Set(const std::string& gpu_type, const Settings& settings, NodeDone done);
  std::optional<Refusal> Progress(const std::string& job, std::string_view token,
                                  const ProgressReport& report, double now);

  // ---- Events of the cluster.
  void Deliver(const std::string& gpu_type, const Event& event, double now);
  void Notice(const JobNotice& notice, double now);
  // A job that the cluster keeps has come, or its object is gone.
  void Found(FoundJob found, double now);
  void Gone(const std::string& job, double now);

  // ---- Views, as JSON of docs/API.md.
  const JobEntry* Find(std::string_view name) const;
  const JobEntry* Find(std::int64_t id) const;
  void WriteJob(JsonWriter& out, const JobEntry& job, double now, bool full) const;
  Answer<std::string> JobJson(const std::string& name, double now) const;
  std::string JobsJson(const JobFilter& filter, double now) const;
  std::string JobTable(double now, const std::string& gpu_type) const;  // of the reference
  // When a waiting job should start takes a simulation, which the caller runs elsewhere (CopyFor).
  Answer<std::string> ExplainJson(const std::string& name, std::optional<double> expected_start,
                                  double now) const;
  std::string NodesJson() const;
  Answer<std::string> NodeJson(const std::string& name) const;
  Answer<std::string> PlanJson(const std::string& gpu_type, double now) const;
  Answer<std::string> RoundsJson(const std::string& gpu_type, std::int64_t before, int limit);
  Answer<std::string> SettingsJson(const std::string& gpu_type) const;
  std::string InfoJson(double now) const;
  std::vector<std::string> GpuTypes() const;  // sorted
  std::set<std::string> TypesWithNodes() const;

  // A state to compute on elsewhere, with a policy of its own; empty where the policy cannot be copied
  // (exec:).
  struct Copy {
    State state;
    std::unique_ptr<Policy> policy;
  };
  std::optional<Copy> CopyFor(const std::string& gpu_type) const;

  void UpdateGauges();
  std::string NodeOfDevice(int device) const;  // empty: of none
  // Empty while the store takes writes.
  const std::string& store_error() const { return store_error_; }
  EventHub& events() { return events_; }
  Metrics& metrics() { return metrics_; }
  JobCluster& cluster() { return cluster_; }
  Database& database() { return database_; }

 private:
  using AtCommit = std::function<void(const std::optional<Refusal>& failed)>;

  // service.cc: transactions and periodic work.
  Database& Writing();
  template <class Read>
  auto ReadStore(const Read& read) {
    const double began = WallNow();
    auto result = read();
    metrics_.Observe(Series::kStoreReadDuration, WallNow() - began);
    if (!result) metrics_.Add(Series::kStoreErrors);
    return result;
  }
  void OnCommit(AtCommit then);
  void Settle();
  void Touch(const JobEntry& job) { dirty_.insert(job.record.id); }
  void LookAtProgressFiles(double now);
  void Prune(double now);
  void Drop(std::int64_t id);  // a job that the store does not keep any more

  // lanes.cc: schedulers and what follows from their events.
  Result<Lane*> LaneFor(const std::string& gpu_type);
  Lane* FindLane(const std::string& gpu_type);
  const Lane* FindLane(const std::string& gpu_type) const;
  void Handle(Lane& lane, const Event& event, double now);
  void Follow(Lane& lane, const std::string& job, const std::vector<NodeIndex>& before, double now);
  void SayChange(const JobEntry& job, std::string_view direction, std::size_t from,
                 const std::string& reason);
  void CollectEnded(Lane& lane, double now);
  void Finish(Lane& lane, JobEntry& job, const EndedJob& ended, double now);
  void Advance(Lane& lane, double now);
  // A job stalls from the moment it is told to change; it says itself when it goes on.
  void BeginStalls(Lane& lane, double now);
  void Account(JobEntry& job, const Lane& lane);
  // What an action makes of a job's record goes with the write that carries it out.
  class NotingPort;
  void NoteBefore(const Action& action, const Lane& lane);
  void Publish(const std::string& type, const Lane& lane, const std::string& job,
               const std::string& fields = {});
  void TellScheduler(Lane& lane, const NodeEntry& node, bool added, double now);

  // jobs.cc: submission and changes.
  Answer<std::vector<JobRecord>> Admit(const std::vector<JobSpec>& specs, double now);
  Answer<JobRecord> RecordFor(const JobSpec& spec, double now) const;
  void Insert(std::vector<JobRecord> records, std::vector<JobSpec> specs,
              const std::optional<Idempotency>& idempotency, double now, const Done& done);
  void Start(std::int64_t id, const JobRecord& record, JobSpec spec, double now);
  void RefuseAfterCommit(const Refusal& refusal, NodeDone done);
  Job JobFor(const Lane& lane, const JobRecord& record, const JobSpec& spec) const;

  // changes.cc: what users ask of jobs.
  Answer<JobEntry*> Active(const std::string& name);
  // As it will be when what was asked is durable.
  JobRecord WithAsked(const JobRecord& record) const;
  // True: the cluster still writes an earlier request about the job, and `again` is called after that.
  bool WaitsForWrite(std::int64_t id, std::function<void()> again);
  // Makes the changes durable and then carries them out: in the record, which was `before`, and by `then`.
  using Then = std::function<void(JobEntry& job, const JobRecord& before)>;
  void Write(const JobRecord& record, const Changes& changes, Done done, Then then);

  // estimates.cc
  void Learn(Lane& lane, JobEntry& job, const ProgressReport& report, const JobProgress::Outcome& outcome,
             double now);
  std::optional<std::string> Report(JobEntry& job, const ProgressReport& report, double now);
  void RestoreMeans(Lane& lane, const std::vector<MeanRecord>& means);
  void KeepMean(const Lane& lane, const std::string& category, const char* kind, int workers, int nodes,
                Collector::Mean mean);
  double RemainingWork(const Lane& lane, const JobRecord& record) const;

  // restore.cc
  Status RestoreJob(JobRecord record, double now);
  void Resume(JobRecord record, JobSpec spec, double now);
  std::string CsvPath(const JobRecord& record) const;
  std::string ToldOf(const std::string& job, const std::string& text) const;

  // found.cc: jobs and nodes of a cluster that keeps them itself.
  bool MakeRoom(const FoundJob& found);
  void Welcome(JobRecord record, const FoundJob& found, double now);
  void FollowNode(const std::string& gpu_type, const Event& event);
  static constexpr const char* kDeletedMeanwhile = "its object was deleted while Voda was away";
  void LoseAbsent(JobRecord record, const std::string& why, double now);

  ServiceConfig config_;
  Database& database_;
  JobCluster& cluster_;
  EventHub& events_;
  Metrics& metrics_;

  std::map<std::string, Lane> lanes_;
  std::map<std::int64_t, JobEntry> jobs_;
  std::unordered_map<std::string, std::int64_t> by_name_;  // with names that are being accepted
  std::map<std::string, JobRecord> absent_;                // of an earlier run, their objects not found yet
  std::map<std::string, std::vector<std::function<void()>>> accepting_;  // idempotency keys: who asked again
  Submissions submissions_;                                              // of earlier runs
  std::set<std::string> gone_early_;  // objects that were deleted while they were being taken in
  std::int64_t unstored_ = 0;         // ids below 0, of jobs that the store could not take
  std::map<std::string, NodeEntry> nodes_;
  std::set<std::string> adding_, removing_;  // nodes, not durable yet
  std::map<std::string, std::string> settings_;

  bool writing_ = false;
  std::vector<AtCommit> at_commit_;
  std::map<std::int64_t, Changes> asked_;  // of jobs, not durable yet
  std::set<std::int64_t> erasing_;         // jobs, the same
  // Jobs whose changes the cluster writes: who came meanwhile.
  std::map<std::int64_t, std::vector<std::function<void()>>> remembering_;
  std::set<std::int64_t> dirty_;                         // jobs whose record is to be written
  std::vector<std::function<void(Database&)>> pending_;  // further writes that nobody waits for
  std::string store_error_;
  bool restored_ = false;
  double started_ = 0;
  std::uint64_t lagged_told_ = 0;  // streams, to the metrics
  double retry_store_at_ = 0;
  double next_files_ = 0, next_prune_ = 0, next_beat_ = 0, next_account_ = 0;
  Workers readers_{1};  // of progress files
};

}  // namespace voda
