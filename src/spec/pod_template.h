// One replica spec of a job: how many pods, and what of their template matters to Voda.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "document/field.h"
#include "spec/expand.h"
#include "spec/job_spec.h"

namespace voda::spec {

struct ReplicaRules {
  RunAs run_as = RunAs::kProcesses;
  bool runs = true;                          // it is what trains, and not a host for others
  std::vector<std::string_view> containers;  // which one of several to take; the first that is there
  bool first_container = false;              // else the first, else it is an error
  bool all_restart_policies = true;          // Always and ExitCode too
};

struct Replica {
  bool present = false;
  std::string path;
  std::optional<int> replicas;
  Container container;
  Expander env;          // of the container, expanded
  std::string env_path;  // for messages about settings
  std::string gpu_type;  // empty: none given
  std::string gpu_type_path;
  std::optional<int> gpus;
  std::optional<RestartPolicy> restart_policy;
  std::optional<int> grace_seconds;
};

Replica ReadReplica(const Field& field, const ReplicaRules& rules);

}  // namespace voda::spec
