// ObjectLedger: the ledger of Kubernetes. A job's object is its record: annotations hold the state and the
// request that made it, and settings are a ConfigMap. A replica that takes over needs nothing else.
//
// Objects cannot be written together. A batch of several jobs is kept as a whole all the same: its objects
// name the first of them, which is marked until all are there. To remove that mark is the one write that
// accepts the batch. A replica that finds the mark removes what there is of the batch, for nobody was told of
// it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/sink.h"
#include "kube/io.h"
#include "kubeflow/adoption.h"
#include "kubeflow/cluster.h"
#include "kubeflow/manifest.h"
#include "kubeflow/submissions.h"
#include "ledger/ledger.h"

namespace voda::kubeflow {

// Where jobs report, and how they get to their nodes.
struct ObjectSettings {
  std::string progress_url;  // base, as pods reach it; empty: jobs are not told where to report
  Steering steering = Steering::kGates;
  kube::ObjectKey settings;             // the ConfigMap with what was set at run time
  std::string mpi_version = "v2beta1";  // of the MPIJobs that are watched

  ManifestSettings For(const std::string& job, const std::string& gpu_type, const std::string& token) const;
};

class ObjectLedger final : public Ledger {
 public:
  // Who owns the objects besides: the rest of KubeflowJobs. All of it is used on the I/O thread.
  struct Surroundings {
    kube::Io& io;
    KubeflowCluster& cluster;
    Sightings& sightings;
    ClusterSink& sink;
    std::function<bool()> may_write;
    std::function<void(const JobObject& job, const JobWord& word)> tell;
  };
  ObjectLedger(Surroundings around, ObjectSettings settings);
  // Nothing that was begun goes on. Before anything around it ends.
  void Stop();
  ObjectLedger(const ObjectLedger&) = delete;
  ObjectLedger& operator=(const ObjectLedger&) = delete;

  const ObjectSettings& settings() const { return settings_; }  // any thread

  // ---- On the I/O thread.
  // Reads the settings, again and again until they can be read.
  void ReadSettings(const std::function<void(std::map<std::string, std::string>)>& then);
  // A job is there: where an earlier run accepted it, the request that made it is known again.
  void Known(const FoundJob& found, const JobObject& job);
  // Whether the object is of a batch that was never accepted. It is removed then, the first one after the
  // others.
  bool RemoveUnaccepted(const JobObject& job);

  // ---- Ledger
  void Accept(std::vector<LedgerJob> jobs, const std::optional<SubmissionKey>& key, Done done) override;
  Result<std::optional<Submission>> Find(const std::string& key) override;
  void ForgetBefore(double time) override { submissions_.ForgetBefore(time); }
  void Change(const std::string& job, const JobState& state, Done done) override;
  void Note(const std::string& job, const JobState& state) override;
  void Remove(const std::string& job, std::function<void(Answer<Removal>)> done) override;
  void End(const std::string&, std::function<void()> then) override { then(); }
  bool KeepsEnded() const override { return true; }
  void Refuse(const std::string& job, const std::string& why) override;
  void LookAgain() override;
  void Tell(const std::string& job, const JobWord& word) override;
  void Set(const std::map<std::string, std::string>& settings, Done done) override;
  void PutNode(const NodeRecord& node, Done done) override;
  void RemoveNode(const std::string& name, Done done) override;
  void Flush() override {}
  bool Waiting() const override { return false; }

 private:
  struct Batch;
  using BatchPtr = std::shared_ptr<Batch>;

  void OnIo(std::function<void()> what);
  void Send(kube::Request request, kube::Io::Done then);
  void Answer(const Done& done, std::optional<Refusal> refused);

  // Calls `then` with the job's object, or with null. An object that was just created may not have come back
  // yet.
  void WithObject(const std::string& job, std::function<void(const JobObject* object)> then);

  void CreateNext(const BatchPtr& batch);
  void Clarify(const BatchPtr& batch, const kube::Resource& resource, const kube::ObjectKey& key,
               const kube::ApiError& error, int tries);
  void Created(const BatchPtr& batch, const kube::Resource& resource, const kube::ObjectKey& key,
               const std::string& body);
  void Seal(const BatchPtr& batch, int tries);
  void Accepted(const BatchPtr& batch);
  void Undo(const BatchPtr& batch, const Refusal& refusal);
  void Leave(const BatchPtr& batch, const Refusal& refusal);
  void GiveUp(const BatchPtr& batch, const Refusal& refusal);
  struct Target {
    kube::Resource resource;
    kube::ObjectKey key;
    std::string uid;
  };
  void DeleteOther(const std::string& first, const Target& target);
  void DeleteFirst(const std::string& first, const Target& target, kube::Duration delay);
  void DeleteUntilGone(const Target& target, const std::function<void()>& then);

  Surroundings around_;
  ObjectSettings settings_;
  Submissions submissions_;
  std::map<std::string, std::set<std::string>> unaccepted_;  // by the first object, uids of the others
  std::map<std::string, kube::TimePoint> accepted_;          // when; not looked for since
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace voda::kubeflow
