// Ledger: the record of what Voda has promised. It holds the jobs that were accepted, what users asked of
// them since, the settings, the nodes that users declared, and which requests were carried out. Whoever runs
// Voda next, here or as another replica, needs nothing else.
//
// A ledger is a file of this machine (sqlite_ledger.h) or the objects of a Kubernetes cluster
// (kubeflow/object_ledger.h). The second is also written by others: jobs come into it without Voda, and they
// stay there when they have ended.
//
// All of it is called on the engine's thread and does not block. `done` comes on that thread, too, when what
// was asked for is durable, or with the reason why it is not; it may come before the call returns.
// ledger_contract.h says in tests what every ledger does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "base/result.h"
#include "ledger/job_state.h"
#include "spec/job_spec.h"

namespace voda {

// A job as it is accepted. The cluster that is to run it is told the same (cluster/job_cluster.h).
struct AcceptedJob {
  std::int64_t id = 0;  // names its files
  std::string name;     // "team-a/resnet" where there are namespaces
  std::string gpu_type;
  std::string token;  // for its progress reports
  std::shared_ptr<const JobSpec> spec;
};

// What the ledger keeps of it from the beginning.
struct LedgerJob : AcceptedJob {
  double submitted = 0;
  JobState state;
};

// A job that is in the ledger: an earlier run accepted it, or a user put it there.
struct FoundJob {
  std::string name;
  std::int64_t id = 0;                  // 0: the ledger does not keep ids
  double created = 0;                   // tells it from others of its name
  std::shared_ptr<const JobSpec> spec;  // null where it cannot be read
  std::string refusal;                  // why it cannot be Voda's; empty: it can
  std::string gpu_type;                 // on which it was accepted; empty: as its spec and the nodes say
  std::string token;                    // empty: it was never started
  std::optional<JobState> state;        // as it was kept last
  bool deleting = false;                // Remove was called, and its workers are to be stopped
  enum class End : std::uint8_t { kNone, kCompleted, kFailed } end = End::kNone;
  double ended = 0;
  std::string message;  // of the end
};

struct NodeRecord {
  std::string name, gpu_type, state;  // the state as users see it
  int gpus = 0;
};

// Everything that the ledger holds when Voda begins to schedule.
struct LedgerContents {
  std::map<std::string, std::string> settings;
  std::vector<NodeRecord> nodes;
  std::vector<FoundJob> jobs;  // oldest first
};

// By which the same request is known again.
struct SubmissionKey {
  std::string key;
  std::string body_hash;
};

// A request that was carried out.
struct Submission {
  std::string body_hash;
  std::vector<std::string> jobs;  // those of its jobs that are known, in its order
};

// For people who look at the job's record.
struct JobWord {
  std::string reason;  // "Started"
  std::string message;
  bool warning = false;
};

class Ledger {
 public:
  using Done = std::function<void(const std::optional<Refusal>&)>;

  virtual ~Ledger() = default;

  // ---- Jobs.
  // All of them are kept from now on, or none, also where Voda dies meanwhile.
  virtual void Accept(std::vector<LedgerJob> jobs, const std::optional<SubmissionKey>& key, Done done) = 0;
  virtual Result<std::optional<Submission>> Find(const std::string& key) = 0;
  // Requests that were carried out before `time` are not known again.
  virtual void ForgetBefore(double time) = 0;
  // `state` takes the place of the job's; Note does so with the next write that is made anyway.
  virtual void Change(const std::string& job, const JobState& state, Done done) = 0;
  virtual void Note(const std::string& job, const JobState& state) = 0;
  // The user wants the job gone.
  enum class Removal : std::uint8_t {
    kMarked,  // Voda is to stop its workers
    kLeaves,  // its workers go with its record; ClusterSink::Gone says when
  };
  virtual void Remove(const std::string& job, std::function<void(Answer<Removal>)> done) = 0;
  // The job has ended. `then` is called when that is kept, and a restart finds it no more or finds it ended.
  virtual void End(const std::string& job, std::function<void()> then) = 0;
  // Whether jobs stay when they have ended, until somebody removes them.
  virtual bool KeepsEnded() const = 0;

  // ---- What others put into it, and what they read there.
  // A job that was found is none of Voda's, and its user is told why.
  virtual void Refuse(const std::string& job, const std::string& why) = 0;
  // Those that were refused are found again: what spoke against them may be gone.
  virtual void LookAgain() = 0;
  virtual void Tell(const std::string& job, const JobWord& word) = 0;

  // ---- Settings and declared nodes.
  // Settings that are not named stay as they are.
  virtual void Set(const std::map<std::string, std::string>& settings, Done done) = 0;
  // A ledger refuses both where the cluster reports its nodes and nobody declares any.
  virtual void PutNode(const NodeRecord& node, Done done) = 0;
  virtual void RemoveNode(const std::string& name, Done done) = 0;

  // ---- The engine's batch of tasks is over: what was asked for becomes durable together.
  virtual void Flush() = 0;
  virtual bool Waiting() const = 0;  // for a Flush
};

}  // namespace voda
