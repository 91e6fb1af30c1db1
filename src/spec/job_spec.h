// JobSpec: what Voda takes from the YAML or JSON of an MPIJob or PyTorchJob, checked in full. Whether there
// are containers is for the caller to say (RunAs); which GPU types exist is decided by whoever accepts the
// job.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "document/tree_builder.h"
#include "model/job_kind.h"
#include "model/limits.h"

namespace voda {

enum class RestartPolicy : std::uint8_t { kNo, kOnFailure, kAlways, kExitCode };

struct EnvVar {
  std::string name;
  std::string value;  // as submitted: $(VAR) is not expanded

  friend bool operator==(const EnvVar&, const EnvVar&) = default;
};

// What is run of a container.
struct Container {
  std::vector<std::string> command;
  std::vector<std::string> args;
  std::vector<EnvVar> env;
  std::string working_dir;
  std::int64_t memory_bytes = 0;  // limit; 0: none

  friend bool operator==(const Container&, const Container&) = default;
};

// What a container asks for of one resource.
struct ResourceAmount {
  std::string resource;  // "nvidia.com/gpu"
  std::string amount;    // as submitted: a quantity, such as 3500m

  friend bool operator==(const ResourceAmount&, const ResourceAmount&) = default;
};

// The label that gives a job to Kueue.
inline constexpr std::string_view kOtherQueueLabel = "kueue.x-k8s.io/queue-name";

// Where a job of this kind has its replica specs, as a JSON pointer.
constexpr const char* ReplicaSpecs(JobKind kind) {
  return kind == JobKind::kMpiJob ? "/spec/mpiReplicaSpecs" : "/spec/pytorchReplicaSpecs";
}

// Begins the warning that lists fields which mean nothing without containers, such as `image`.
inline constexpr std::string_view kIgnoredHere =
    "Where there are no containers, as on one machine under voda up, these are ignored";

struct JobSpec {
  JobKind kind = JobKind::kPyTorchJob;
  std::string api_version;
  std::string name_space = "default";
  bool names_namespace = false;  // the document does
  std::string name;              // as submitted; of a generateName without its last dashes
  std::string category;          // jobs of one category share what is learned
  std::string gpu_type;  // the nodeSelector vodascheduler/accelerator of the workers; empty: none given

  Limits limits;
  int gpus_per_worker = 1;
  int slots_per_worker = 1;  // MPIJob
  int priority = 0;
  bool preemptible = true;
  int epochs = 0;  // EPOCHS; 0: not said

  std::optional<Container> launcher;  // MPIJob
  std::optional<Container> master;    // PyTorchJob: worker 0 where there is one
  Container worker;                   // the master's where there is a Master alone

  RestartPolicy restart_policy = RestartPolicy::kOnFailure;  // of launcher or workers
  int backoff_limit = 6;
  int grace_seconds = 30;
  // elasticPolicy of a PyTorchJob, as the training operator reads it.
  bool elastic = false;  // there is an elasticPolicy, or min < max
  std::optional<int> max_restarts;
  std::string rdzv_backend = "c10d";
  std::string rdzv_conf;  // "last_call_timeout=1,join_timeout=60"
  std::optional<std::string> nproc_per_node;

  // What a cluster of others looks at before it takes the job.
  std::optional<std::string> other_queue;        // the value of kOtherQueueLabel
  std::vector<ResourceAmount> worker_resources;  // of each container of a worker
  std::vector<std::string> dangers;              // the broken rules for pod templates, if they were asked for

  std::vector<std::string> warnings;  // one sentence each; what is ignored and what will hurt
  std::string document;               // this document alone, as JSON: ParseJobs takes it back

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

struct SpecLimits : DocumentLimits {
  bool named = false;  // names are final: nothing will be added to them but the number of a worker
  // The rules for pod templates (template_rules.h) that may be broken; null: none of the rules counts.
  const std::set<std::string, std::less<>>* allowed = nullptr;
};

// What becomes of a job's containers. As processes of one machine they need a command line, since nobody
// reads the image, and most of a pod's fields are ignored, with a warning. As containers, images know their
// commands and every field has its effect.
enum class RunAs : std::uint8_t { kProcesses, kContainers };

// One JobSpec for each document. An error names the document where there are several, the field
// (`spec.mpiReplicaSpecs.Worker.replicas`), the value and the fix.
Result<std::vector<JobSpec>> ParseJobs(std::string_view text, const SpecLimits& limits = {},
                                       RunAs run_as = RunAs::kProcesses);
// The same of a document that was read already and is one job.
Result<JobSpec> ReadJobSpec(const Value& document, const SpecLimits& limits, RunAs run_as);

// "$(VAR)" and "$$" as Kubernetes expands them: unknown names stay as they are, and so do references past
// what a process can be given (128 KiB a string, 1 MiB in all).
std::string ExpandVariables(std::string_view text, const std::vector<EnvVar>& env);
// The whole environment of a container: `given` and then its own, each value expanded with those before it. A
// name that comes again replaces what it was, so what must win over the container's own is set afterwards.
std::vector<EnvVar> ExpandEnvironment(const std::vector<EnvVar>& given, const std::vector<EnvVar>& env);

}  // namespace voda
