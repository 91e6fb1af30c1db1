// Release: takes away again everything by which Voda steers pods, so that jobs go on without it: the gates of
// templates and of pods that wait, and the taints of nodes. Nothing that runs is touched.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/request.h"

namespace voda::kubeflow {

struct ReleaseOptions {
  std::vector<std::string> namespaces;  // empty: all
  std::string mpi_version = "v2beta1";
  bool dry_run = false;
};

struct Released {
  int templates = 0, pods = 0, nodes = 0;
  std::vector<std::string> suspended;  // jobs of Voda's that wait: "PyTorchJob team/resnet"
};

// `call` sends a request and waits for its answer; `say` gets a line for each thing that is taken away. Done
// again, it goes on where it was broken off.
Result<Released> Release(const ReleaseOptions& options, const std::function<kube::Reply(kube::Request)>& call,
                         const std::function<void(const std::string&)>& say);

}  // namespace voda::kubeflow
