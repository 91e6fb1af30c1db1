// The objects of a cluster as far as Voda reads them: jobs of the Kubeflow operators, their pods, and nodes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/json_read.h"
#include "kube/request.h"
#include "kubeflow/applied_job.h"
#include "kubeflow/names.h"
#include "spec/job_spec.h"

namespace voda::kubeflow {

// How workers get to the nodes that were chosen for them (docs/KUBERNETES.md).
enum class Steering : std::uint8_t {
  kGates,   // a scheduling gate holds a worker's pod until one patch pins it to its node and opens the gate
  kTaints,  // every node has a taint of its own, and a pod gets the toleration for one
  kOff,     // Kubernetes chooses the node; Voda only decides sizes
};

using Strings = std::map<std::string, std::string, std::less<>>;

// An MPIJob or PyTorchJob.
struct JobObject {
  JobKind kind = JobKind::kPyTorchJob;
  kube::Resource resource;  // with the API version it was read in
  kube::ObjectHead head;
  Strings labels;
  Strings annotations;
  double created = 0;  // seconds since 1970
  bool deleting = false;
  bool suspended = false;
  int replicas = 0;  // number of workers, including a Master
  bool master = false;
  bool gated = false;    // whether the worker template has our gate
  bool handled = false;  // whether its operator has written a status
  // The operator is done with it: it succeeded or failed, and completionTime is set. An eviction alone is
  // not an end.
  enum class End { kNone, kSucceeded, kFailed } end = End::kNone;
  double ended = 0;     // seconds since 1970
  std::string message;  // of the end
  // The condition in which Voda reports what it does with the job (conditions.h).
  struct Condition {
    int at = -1;  // position in the list of conditions; -1 if it is not there
    std::string status, reason, message;
    std::string since;  // the time of its last transition
  };
  Condition condition;
  bool has_conditions = false;  // whether its status has a list of conditions
  std::int64_t generation = 0;  // counts changes of its spec; 0 if unknown
  // What its user asks for; null if it does not opt in. Versions that ask for the same share it.
  std::shared_ptr<const AppliedJob> applied;

  kube::ObjectKey key() const { return {head.name_space, head.name}; }
};

// "namespace/name", by which the scheduler knows the job.
std::string JobId(const JobObject& job);
// The key of the object of a job with this id.
kube::ObjectKey KeyOf(std::string_view job);

struct PodObject {
  kube::ObjectHead head;
  std::string job;  // label training.kubeflow.org/job-name; empty if it is not a job's pod
  bool launcher = false;
  bool master = false;
  int index = -1;        // the operator's number of a worker
  std::string node;      // the node that it is bound to; empty if not yet
  std::string pinned;    // the node that our patch demands, by affinity or by toleration
  bool gated = false;    // by our gate
  int gate = 0;          // position of our gate in its gates
  std::string affinity;  // JSON; empty if there is none
  bool deleting = false;
  double gone_by = 0;  // when its grace period is over, in seconds since 1970, if it is being deleted
  enum class Phase { kPending, kRunning, kSucceeded, kFailed } phase = Phase::kPending;
  std::string container;                                      // name of the first container
  std::string reason;                                         // of a failure, or why it cannot be scheduled
  std::map<std::string, std::int64_t, std::less<>> requests;  // extended resources and cpu, whole units

  bool over() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
};

struct NodeObject {
  kube::ObjectHead head;
  std::string gpu_type;  // empty if it has no label: it is not one of ours
  std::map<std::string, std::int64_t, std::less<>> allocatable;
  bool ready = false;
  double not_ready_since = 0;  // seconds since 1970; 0 while ready
  bool cordoned = false;
  int taints = 0;      // number of taints
  int own_taint = -1;  // position of the taint with its own name, for Steering::kTaints; -1 if there is none
  bool leaving = false;  // drained, to be removed, or terminated soon: its workers must move
  bool deleting = false;
};

// How a job's object is read.
struct JobRules {
  kube::Resource resource;
  JobKind kind = JobKind::kPyTorchJob;
  std::set<std::string, std::less<>> allowed;  // rules for pod templates that may be broken
};

// Decoders for kube::TypedReflector. `before` is the previous version of the object, if there is one.
JobObject DecodeJob(const JobRules& rules, const kube::ObjectHead& head, const kube::JsonView& object,
                    const JobObject* before = nullptr);
PodObject DecodePod(Steering steering, const kube::ObjectHead& head, const kube::JsonView& object);
NodeObject DecodeNode(const kube::ObjectHead& head, const kube::JsonView& object);

}  // namespace voda::kubeflow
