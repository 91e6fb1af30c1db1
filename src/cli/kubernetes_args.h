// The flags of `voda up --cluster kubernetes`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "service/kubernetes_side.h"

namespace CLI {
class App;
}

namespace voda {

struct KubernetesArgs {
  std::string kubeconfig;
  std::vector<std::string> namespaces;
  std::string lease = "voda";
  std::vector<std::string> resources;
  std::string steering = "gates";
  std::string mpi_version = "v2beta1";
  std::string not_ready_grace = "60s";
  std::vector<std::string> allow;
  std::string progress_listen, progress_url, metrics_dir;
  double writes_per_second = 500;
};

void AddKubernetesFlags(CLI::App& command, KubernetesArgs& args);

// An error names the flag, its value and the fix.
Result<KubernetesConfig> ReadKubernetesArgs(const KubernetesArgs& args);

}  // namespace voda
