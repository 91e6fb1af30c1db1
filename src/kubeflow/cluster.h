// KubeflowCluster: jobs as objects of the Kubeflow operators behind the Cluster port.
//
// Everything it knows comes from the API server, so a replica that takes over knows as much. It lives on
// the I/O thread of the Kubernetes client: watches feed it, orders are posted to it, and each change of a
// job's objects leads to the next step of its order (step.h). The next write is made once the watch has
// shown the previous one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/sink.h"
#include "core/ports.h"
#include "kube/counters.h"
#include "kube/io.h"
#include "kubeflow/job_driver.h"
#include "kubeflow/node_book.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

struct ClusterConfig {
  std::vector<std::string> namespaces;  // empty means all
  std::string mpi_version = "v2beta1";  // v1 if only the training operator runs
  NodeRules nodes;
  Steering steering = Steering::kGates;
  std::set<std::string, std::less<>> allowed;  // broken rules of spec/template_rules.h that are accepted
  std::uint64_t seed = 1;
};

// Decides which objects are Voda's (kubeflow_jobs.h). Called on the I/O thread.
class JobsOwner {
 public:
  virtual ~JobsOwner() = default;
  // Called for a job that is not managed: at the start, when it appears and when it changes.
  virtual void Seen(const JobObject& job) = 0;
  // Called at the start, once every object was seen, with the nodes.
  virtual void Synced(std::vector<TypedEvent> nodes) = 0;
  // The job's object and its pods are gone. The sink is told after this.
  virtual void Gone(const std::string& job) = 0;
  // The job's order does not come about yet, for this reason.
  virtual void Stuck(const std::string& job, const std::string& why) = 0;
  // Something happened to the job, or became of it, that its user should read there.
  virtual void TellUser(const JobObject& job, const JobWord& word) = 0;
  // Whether this replica leads, with time left for a write.
  virtual bool MayWrite() = 0;
};

// Whether the labels give the job to Voda and to no other queue.
bool IsOurs(const JobObject& job);

// What stands on a job that has ended, and on one that lost our label: nobody stops its pods.
JobWord EndOf(const JobObject& job);
JobWord ReleasedWord();

// Whether an earlier run took the job in: its workers are Voda's before it is managed.
bool TakenIn(const JobObject& job);

class KubeflowCluster {
 public:
  // Everything passed in must outlive the cluster. The sink is told nothing before the owner was told Synced.
  static std::unique_ptr<KubeflowCluster> Create(kube::Io& io, kube::Counters& counters, ClusterConfig config,
                                                 ClusterSink& sink, JobsOwner& owner);
  virtual ~KubeflowCluster() = default;
  virtual void Start() = 0;

  // The job is Voda's from now on: its workers hold their GPUs for Voda, and orders may follow. A job that
  // is managed already gets a new description. Any thread may call this.
  virtual void Manage(ManagedJob job) = 0;
  virtual void Forget(const std::string& job) = 0;
  virtual void Note(const std::string& job, std::string state) = 0;

  // Reserves the name for a job of this kind until its object is gone, since both kinds of objects may have
  // the same name. Returns false if a job of the other kind has it. On the I/O thread.
  virtual bool ReserveName(const std::string& job, JobKind kind) = 0;
  virtual void FreeName(const std::string& job) = 0;  // if no object was made
  // Makes a job's pods Voda's although it is not managed yet, and returns the nodes that this changes.
  virtual std::vector<TypedEvent> TakeBack(const std::string& job) = 0;
  // Shows the owner again all jobs that have not ended and are not managed.
  virtual void LookAgain() = 0;

  // On the I/O thread: the seats of the job as the scheduler is told; its object, or null; its pods.
  virtual std::vector<std::string> Held(const std::string& job) const = 0;
  virtual const JobObject* Find(const std::string& job) const = 0;
  virtual std::vector<const PodObject*> Pods(const std::string& job) const = 0;
  // What its order waits for; empty if it has none. On the I/O thread.
  virtual std::string Waits(const std::string& job) const = 0;

  virtual Cluster& PortFor(const std::string& gpu_type) = 0;
};

}  // namespace voda::kubeflow
