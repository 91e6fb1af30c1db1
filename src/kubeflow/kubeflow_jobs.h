// KubeflowJobs: the service's JobCluster on Kubernetes. Jobs are objects, made by Voda or applied by users
// who opt in by the label vodascheduler/queue, and the objects are the ledger, too (object_ledger.h).
// KubeflowCluster carries orders out; here is what concerns jobs as a whole: which objects are Voda's, Events
// about them, their logs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/job_cluster.h"
#include "cluster/sink.h"
#include "kube/counters.h"
#include "kube/io.h"
#include "kubeflow/cluster.h"
#include "ledger/ledger.h"

namespace voda::kubeflow {

struct JobsConfig {
  ClusterConfig cluster;
  std::string progress_url;  // base, as pods reach it; empty: jobs are not told where to report
  kube::ObjectKey settings;  // the ConfigMap with what was set at run time
  std::string instance;      // who says what Events say
};

class KubeflowJobs : public JobCluster {
 public:
  // Everything given outlives it. `may_write` is asked on the I/O thread: we lead, with time left for a
  // write.
  static std::unique_ptr<KubeflowJobs> Create(kube::Io& io, kube::Counters& counters, JobsConfig config,
                                              ClusterSink& sink, std::function<bool()> may_write);
  // We lead: reads the settings, then everything there is.
  virtual void Start() = 0;
  virtual Ledger& ledger() = 0;
};

}  // namespace voda::kubeflow
