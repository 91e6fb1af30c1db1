// The objects of a cluster as far as Voda reads them: jobs of the Kubeflow operators, their pods, nodes.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/json_read.h"
#include "kube/request.h"
#include "spec/job_spec.h"

namespace voda::kubeflow {

// Names that Voda uses on objects of others.
inline constexpr std::string_view kQueueLabel = "vodascheduler/queue";  // opts a job in
inline constexpr std::string_view kGate = "vodascheduler/placement";    // keeps workers pending until placed
inline constexpr std::string_view kTaint = "vodascheduler/hostname";    // keeps a node for those placed on it
inline constexpr std::string_view kAcceleratorLabel = "vodascheduler/accelerator";
inline constexpr std::string_view kStateAnnotation = "vodascheduler/state";  // what a restart must know
inline constexpr std::string_view kSubmissionAnnotation = "vodascheduler/submission";  // of its request
inline constexpr std::string_view kTouchAnnotation = "vodascheduler/hosts";  // makes the kubelet look again
inline constexpr std::string_view kOtherQueueLabel = "kueue.x-k8s.io/queue-name";

// How workers get to the nodes that were chosen for them.
enum class Steering : std::uint8_t {
  kGates,   // a scheduling gate holds them until one patch pins the node and opens it
  kTaints,  // every node has a taint of its own, and they get the toleration for one
  kOff,     // Kubernetes chooses; Voda decides sizes alone
};

using Strings = std::map<std::string, std::string, std::less<>>;

// An MPIJob or PyTorchJob.
struct JobObject {
  JobKind kind = JobKind::kPyTorchJob;
  kube::Resource resource;  // with the version it was read in
  kube::ObjectHead head;
  Strings labels;
  Strings annotations;
  double created = 0;  // seconds since 1970
  bool deleting = false;
  bool suspended = false;
  int replicas = 0;  // workers, a Master among them
  bool master = false;
  bool gated = false;    // the worker template has our gate
  bool handled = false;  // its operator has said something of it
  // Its operator is done with it: succeeded or failed, and completionTime is set. An eviction alone is not
  // an end.
  enum class End { kNone, kSucceeded, kFailed } end = End::kNone;
  double ended = 0;     // seconds since 1970
  std::string message;  // of the end
  std::string document;

  kube::ObjectKey key() const { return {head.name_space, head.name}; }
};

struct PodObject {
  kube::ObjectHead head;
  std::string job;  // label training.kubeflow.org/job-name; empty: not of a job
  bool launcher = false;
  bool master = false;
  int index = -1;        // of a worker, as its operator counts
  std::string node;      // where it was bound to; empty: not yet
  std::string pinned;    // where our patch wants it, by affinity or by toleration
  bool gated = false;    // by our gate
  int gate = 0;          // which of its gates that is
  std::string affinity;  // JSON; empty: none
  bool deleting = false;
  double gone_by = 0;  // then its time to end is over, in seconds since 1970; while it is being deleted
  enum class Phase { kPending, kRunning, kSucceeded, kFailed } phase = Phase::kPending;
  std::string container;                                      // the first one's name
  std::string reason;                                         // of a failure, or why it cannot be scheduled
  std::map<std::string, std::int64_t, std::less<>> requests;  // extended resources and cpu, whole units

  bool over() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
};

struct NodeObject {
  kube::ObjectHead head;
  std::string gpu_type;  // empty: not labelled, none of ours
  std::map<std::string, std::int64_t, std::less<>> allocatable;
  bool ready = false;
  double not_ready_since = 0;  // seconds since 1970; 0 while ready
  bool cordoned = false;
  int taints = 0;        // all of them
  int own_taint = -1;    // which of them has its own name, for Steering::kTaints; -1: none
  bool leaving = false;  // drained, to be removed, or terminated soon: its workers have to move
  bool deleting = false;
};

// Decoders for kube::TypedReflector. `json` is padded (kube/json_read.h).
Result<JobObject> DecodeJob(const kube::Resource& resource, JobKind kind, const kube::ObjectHead& head,
                            std::string_view json);
Result<PodObject> DecodePod(Steering steering, const kube::ObjectHead& head, std::string_view json);
Result<NodeObject> DecodeNode(const kube::ObjectHead& head, std::string_view json);

}  // namespace voda::kubeflow
