// KubernetesSide: what `voda up --cluster kubernetes` has besides the service: the client's I/O thread, the
// election of a leader, the jobs of the cluster, and who may call. It stands by until it leads, and never
// stops leading in silence: a replica that has lost its lease ends at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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
  struct Callbacks {
    kubeflow::KubeflowJobs::Callbacks jobs;  // all but may_write
    std::function<void()> lost;              // the lease; on the I/O thread
  };

  // Asks the API server once, so that a wrong address or account is found now.
  static Result<std::unique_ptr<KubernetesSide>> Create(KubernetesConfig config, Callbacks callbacks);
  virtual ~KubernetesSide() = default;  // gives the lease back; jobs go on

  // Stands for election. Once it leads, callbacks.jobs.ready follows.
  virtual void Start() = 0;

  virtual kubeflow::KubeflowJobs& jobs() = 0;
  virtual kubeflow::Access& access() = 0;
  virtual const kube::Counters& counters() const = 0;
  virtual const kube::ObjectKey& settings() const = 0;
  virtual const std::string& server() const = 0;
  // Who leads, as far as we know; empty: nobody. Any thread.
  virtual std::string Leader() const = 0;
};

}  // namespace voda
