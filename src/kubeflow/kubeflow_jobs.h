// KubeflowJobs: the service's JobCluster on Kubernetes. Jobs are objects, made by Voda or applied by users
// who opt in by the label vodascheduler/queue; the object is the record, so a replica that takes over needs
// nothing else. KubeflowCluster carries orders out; here is what concerns jobs as a whole: creation,
// deletion, what is remembered on them, Events about them, their logs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/job_cluster.h"
#include "kube/counters.h"
#include "kube/io.h"
#include "kubeflow/cluster.h"

namespace voda::kubeflow {

struct JobsConfig {
  ClusterConfig cluster;
  std::string progress_url;  // base, as pods reach it; empty: jobs are not told where to report
  std::set<std::string, std::less<>> allowed;  // of the rules for pod templates (spec/template_rules.h)
  kube::ObjectKey settings;                    // the ConfigMap with what was set at run time
  std::string instance;                        // who says what Events say
};

class KubeflowJobs : public JobCluster {
 public:
  struct World {
    std::map<std::string, std::string> settings;
    std::vector<std::pair<std::string, Event>> nodes;  // by GPU type
    std::vector<FoundJob> jobs;
  };
  // On the I/O thread; must not block.
  struct Callbacks {
    std::function<void(const std::string& gpu_type, Event event)> post;
    // With what the pods of the job still hold of the nodes (KubeflowCluster::Callbacks).
    std::function<void(const std::string& gpu_type, Event event, std::vector<NodeBook::Change> nodes)> ended;
    std::function<void(const std::string& job, std::vector<NodeBook::Change> nodes)> gone;
    std::function<void(const JobNotice&)> notice;
    // With the GPUs of its pods, where an earlier run of Voda took it in: they are Voda's again.
    std::function<void(FoundJob, std::vector<NodeBook::Change> nodes)> found;
    std::function<void(World)> ready;                      // everything there is; the others come after it
    std::function<void(std::function<void()>)> on_engine;  // runs it on the engine's thread
    std::function<bool()> may_write;                       // we lead, with time left for a write
  };

  // `io` and `counters` outlive it.
  static std::unique_ptr<KubeflowJobs> Create(kube::Io& io, kube::Counters& counters, JobsConfig config,
                                              Callbacks callbacks);
  // We lead: reads the settings, then everything there is.
  virtual void Start() = 0;
};

}  // namespace voda::kubeflow
