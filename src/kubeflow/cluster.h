// KubeflowCluster: jobs as objects of the Kubeflow operators behind the Cluster port.
//
// Everything it knows it read from the API server, so a replica that takes over knows as much. It lives on
// the I/O thread of the Kubernetes client: watches feed it, orders are posted to it, and each change of a
// job's objects is answered with the next step of its order (step.h). A write is made once what was written
// before has been seen in the watch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/ports.h"
#include "kube/counters.h"
#include "kube/io.h"
#include "kubeflow/node_book.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

struct ClusterConfig {
  std::vector<std::string> namespaces;  // empty: all
  std::string mpi_version = "v2beta1";  // v1 with the training operator alone
  NodeRules nodes;
  std::uint64_t seed = 1;
};

// "namespace/name": what the scheduler calls the job.
std::string JobId(const JobObject& job);

class KubeflowCluster {
 public:
  // All are called on the I/O thread and must not block.
  struct Callbacks {
    std::function<void(const std::string& gpu_type, Event event)> post;
    std::function<void(const JobObject& job)> seen;  // new, or another object of that name
    std::function<void(const std::string& job)> gone;
    std::function<void()> synced;     // everything there is has been told
    std::function<bool()> may_write;  // we lead, with time left for a write
  };

  static std::unique_ptr<KubeflowCluster> Create(kube::Io& io, kube::Counters& counters, ClusterConfig config,
                                                 Callbacks callbacks);
  virtual ~KubeflowCluster() = default;
  virtual void Start() = 0;

  // Any thread. The job is Voda's from now on: its workers hold their GPUs for Voda, and orders may follow.
  // `whole`: it cannot gain or lose a worker while it runs.
  virtual void Manage(const std::string& job, const std::string& gpu_type, bool whole) = 0;
  virtual void Forget(const std::string& job) = 0;
  // What it holds, as the scheduler is told; on the I/O thread.
  virtual std::vector<std::string> Held(const std::string& job) const = 0;

  // What its order waits for; empty: it has none. On the I/O thread.
  virtual std::string Waits(const std::string& job) const = 0;

  virtual Cluster& PortFor(const std::string& gpu_type) = 0;
};

}  // namespace voda::kubeflow
