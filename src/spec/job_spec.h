// JobSpec: what Voda takes from the YAML or JSON of an MPIJob or PyTorchJob, checked in full. Whether there
// are containers is for the caller to say (RunAs); which GPU types exist is decided by whoever accepts the
// job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda {

enum class JobKind : std::uint8_t { kMpiJob, kPyTorchJob };
std::string_view Name(JobKind kind);  // "MPIJob", "PyTorchJob"

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

struct JobSpec {
  JobKind kind = JobKind::kPyTorchJob;
  std::string api_version;
  std::string name_space = "default";
  bool names_namespace = false;  // the document does
  std::string name;              // as submitted; of a generateName without its last dashes
  std::string category;          // design.md section 1
  std::string gpu_type;  // the nodeSelector vodascheduler/accelerator of the workers; empty: none given

  int min = 1;
  int num = 1;
  int max = 1;
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

  std::vector<std::string> warnings;  // one sentence each; what is ignored and what will hurt
  std::string document;               // this document alone, as JSON: ParseJobs takes it back

  friend bool operator==(const JobSpec&, const JobSpec&) = default;
};

struct SpecLimits {
  std::size_t bytes = std::size_t{1} << 20;
  int depth = 64;
  int nodes = 100'000;  // of the YAML, with aliases expanded
  int aliases = 100;
  int documents = 100;
  bool named = false;  // names are final: nothing will be added to them but the number of a worker
};

// What becomes of a job's containers. As processes of one machine they need a command line, since nobody
// reads the image, and most of a pod's fields are ignored, with a warning. As containers, images know their
// commands and every field has its effect.
enum class RunAs : std::uint8_t { kProcesses, kContainers };

// One JobSpec for each document. An error names the document where there are several, the field
// (`spec.mpiReplicaSpecs.Worker.replicas`), the value and the fix.
Result<std::vector<JobSpec>> ParseJobs(std::string_view text, const SpecLimits& limits = {},
                                       RunAs run_as = RunAs::kProcesses);

// "$(VAR)" and "$$" as Kubernetes expands them: unknown names stay as they are, and so do references past
// what a process can be given (128 KiB a string, 1 MiB in all).
std::string ExpandVariables(std::string_view text, const std::vector<EnvVar>& env);
// The whole environment of a container: `given` and then its own, each value expanded with those before it. A
// name that comes again replaces what it was, so what must win over the container's own is set afterwards.
std::vector<EnvVar> ExpandEnvironment(const std::vector<EnvVar>& given, const std::vector<EnvVar>& env);

}  // namespace voda
