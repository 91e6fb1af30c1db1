// KubernetesSide: what `voda up --cluster kubernetes` has besides the service: the client's I/O thread, the
// election of a leader, the jobs of the cluster, and the rights of callers. It stands by until it leads, and
// never stops leading in silence: a replica that has lost its lease ends at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/pulse.h"
#include "kube/kube_config.h"
#include "kubeflow/access.h"
#include "kubeflow/kubeflow_jobs.h"

namespace voda {

struct KubernetesConfig {
  std::string kubeconfig;  // file; empty: the pod's own account, else $KUBECONFIG or ~/.kube/config
  kubeflow::JobsConfig jobs;
  kube::ObjectKey lease;     // namespace empty: that of the pod or of the context
  std::string pod;           // our own, that is labelled by its role; empty: none
  std::string version;       // of Voda
  double writes_per_second;  // at most; 0: no limit
};

class KubernetesSide {
 public:
  // Asks the API server once, so that a wrong address or account is found now. `lost` is called on the I/O
  // thread when the lease is lost.
  static Result<std::unique_ptr<KubernetesSide>> Create(KubernetesConfig config, ClusterSink& sink,
                                                        std::function<void()> lost);
  virtual ~KubernetesSide() = default;  // gives the lease back; jobs go on

  // Stands for election. Once it leads, ClusterSink::Ready follows.
  virtual void Start() = 0;

  virtual kubeflow::KubeflowJobs& jobs() = 0;
  virtual kubeflow::Access& access() = 0;
  virtual const kube::Counters& counters() const = 0;
  virtual const Pulse& pulse() const = 0;  // of the client's I/O thread
  virtual const kube::ObjectKey& settings() const = 0;
  virtual const std::string& server() const = 0;
  // Who leads, as far as we know; empty: nobody. Any thread.
  virtual std::string Leader() const = 0;
};

}  // namespace voda
