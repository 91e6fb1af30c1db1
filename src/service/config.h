// ServiceConfig: how the service is set up, the same for all of its parts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/state.h"
#include "history/records.h"
#include "policy/registry.h"
#include "service/decisions.h"

namespace voda {

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
  // The cluster reports its nodes, and users declare none. Jobs may then name a GPU type that no node has
  // yet: an autoscaler starts at none.
  bool reports_nodes = false;
  // Jobs are named NAMESPACE/NAME, and those of one namespace are not told of others.
  bool namespaces = false;
  CoreConfig core;
  std::string algorithm{kDefaultPolicy};
  PolicyOptions options;
  bool algorithm_given = false;  // by a flag, which wins over what was set before
  bool rate_limit_given = false;
  PolicyMaker make_policy;           // of the flag; requests get the built-in ones only
  DecideElsewhere decide_elsewhere;  // for rounds of external policies; empty: they are decided at once
  Retention retention;
  double keys_kept_seconds = 86400;  // for which a request is known again by its key
  std::string jobs_folder;           // DATA/jobs; empty: jobs have no files on this machine
  std::string csv_folder;  // progress files FOLDER/NAMESPACE/NAME.csv of jobs without files here; empty: none
  std::string version;
};

}  // namespace voda
