// Release: takes away everything by which Voda steers pods, so that jobs go on without it: the gates of
// templates and of waiting pods, and the taints of nodes. What runs is not touched.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/request.h"

namespace voda::kubeflow {

struct ReleaseOptions {
  std::vector<std::string> namespaces;  // empty means all
  std::string mpi_version = "v2beta1";
  bool dry_run = false;
};

struct Released {
  int templates = 0, pods = 0, nodes = 0;
  std::vector<std::string> suspended;  // jobs of Voda's that wait, such as "PyTorchJob team/resnet"
};

// `call` sends a request and waits for its answer; `say` gets a line for each thing that is taken away.
// After an interruption, it can be called again.
Result<Released> Release(const ReleaseOptions& options, const std::function<kube::Reply(kube::Request)>& call,
                         const std::function<void(const std::string&)>& say);

}  // namespace voda::kubeflow
