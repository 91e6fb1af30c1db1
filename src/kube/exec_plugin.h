// Credential plug-ins: runs the program of a kubeconfig's `exec` section, bounded in time and output, and
// reads the ExecCredential that it prints (client.authentication.k8s.io/v1 and v1beta1).
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/kube_config.h"
#include "kube/time.h"

namespace voda::kube {

struct ExecCredential {
  Secret token;
  Secret certificate;
  Secret key;
  std::optional<WallTime> expires;
};

struct ExecLimits {
  Duration time{60'000};
  std::size_t output_bytes = std::size_t{1} << 20;
};

// Blocks until the program has ended, was killed at a limit, or `canceled` became true. The program gets
// our environment with KUBERNETES_EXEC_INFO, no stdin, and our stderr. When this returns, the whole process
// group of the program is gone.
Result<ExecCredential> RunExecPlugin(const ExecPlugin& plugin, const KubeConfig& config,
                                     const ExecLimits& limits, const std::atomic<bool>& canceled);
Result<ExecCredential> DecodeExecCredential(std::string_view json, std::string_view api_version);

}  // namespace voda::kube
