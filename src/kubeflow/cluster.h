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
#include "kubeflow/job_driver.h"
#include "kubeflow/node_book.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

struct ClusterConfig {
  std::vector<std::string> namespaces;  // empty: all
  std::string mpi_version = "v2beta1";  // v1 with the training operator alone
  NodeRules nodes;
  Steering steering = Steering::kGates;
  std::uint64_t seed = 1;
};

// "namespace/name": what the scheduler calls the job.
std::string JobId(const JobObject& job);

// Whether its labels give it to Voda, and to nobody else.
bool IsOurs(const JobObject& job);

// Whether an earlier run took the job in: its workers are Voda's before anybody manages it.
bool TakenIn(const JobObject& job);

class KubeflowCluster {
 public:
  // All are called on the I/O thread and must not block.
  struct Callbacks {
    std::function<void(const std::string& gpu_type, Event event)> post;
    // A job has ended, or its object is gone; and what its pods still hold of the nodes. Nothing may be
    // decided between the two.
    std::function<void(const std::string& gpu_type, Event event, std::vector<NodeBook::Change> nodes)> ended;
    std::function<void(const std::string& job, std::vector<NodeBook::Change> nodes)> gone;
    // A job that is not managed: at the start, when it comes and when it changes.
    std::function<void(const JobObject& job)> seen;
    // Everything there is at the start: these nodes, and jobs that were told of before. Nothing else is told
    // earlier.
    std::function<void(std::vector<NodeBook::Change> nodes)> synced;
    std::function<void(const std::string& job, const std::string& gpu_type, const std::string& message,
                       int failures)>
        failed;                                                                 // a worker, which is replaced
    std::function<void(const std::string& job, const std::string& why)> stuck;  // an order
    std::function<bool()> may_write;  // we lead, with time left for a write
  };

  static std::unique_ptr<KubeflowCluster> Create(kube::Io& io, kube::Counters& counters, ClusterConfig config,
                                                 Callbacks callbacks);
  virtual ~KubeflowCluster() = default;
  virtual void Start() = 0;

  // Any thread. The job is Voda's from now on: its workers hold their GPUs for Voda, and orders may follow.
  // One that is managed already is described anew.
  virtual void Manage(ManagedJob job) = 0;
  virtual void Forget(const std::string& job) = 0;
  virtual void Note(const std::string& job, std::string state) = 0;

  // On the I/O thread. Both kinds of objects may have the same name; it is a job's of this kind from now on,
  // until its object is gone. False: of the other kind already.
  virtual bool Claim(const std::string& job, JobKind kind) = 0;
  virtual void Unclaim(const std::string& job) = 0;  // where no object came of it
  // What its pods hold is Voda's, although nobody manages it yet; and the nodes that this changes.
  virtual std::vector<NodeBook::Change> TakeBack(const std::string& job) = 0;
  // Those that have not ended and nobody manages are told of again.
  virtual void LookAgain() = 0;

  // On the I/O thread: what the job holds, as the scheduler is told; its object, null where there is none;
  // its pods.
  virtual std::vector<std::string> Held(const std::string& job) const = 0;
  virtual const JobObject* Find(const std::string& job) const = 0;
  virtual std::vector<const PodObject*> Pods(const std::string& job) const = 0;
  // What its order waits for; empty: it has none. On the I/O thread.
  virtual std::string Waits(const std::string& job) const = 0;

  virtual Cluster& PortFor(const std::string& gpu_type) = 0;
};

}  // namespace voda::kubeflow
