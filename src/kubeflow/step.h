// Step: what to write next so that a job's objects become what the scheduler ordered. Pure.
//
// It is level-triggered: it compares what the cluster shows with the order, and returns every write that
// can be made now. It is called again after each change; an order that was carried out in part, or twice,
// leads to the same end, and a finished order gives no writes.
//
// Traps of the operators that these rules avoid (tested on real operators):
// - replicas are never 0 (the operators stop reconciling); a job that holds nothing is suspended.
// - replicas are not lowered by the write that suspends, and nothing is suspended while pods above the
//   present size are left: mpi-operator would leave those running.
// - worker names are used again, so every write names the uid it means.
// - a failed worker is not made anew by mpi-operator until its pod is deleted.
// - a worker that succeeded ends a PyTorchJob, so it is left to the operator; and a job that was suspended
//   just then would train again.
// - the ready-made host list still has workers that are terminating, so GPUs are free when pods are gone.
// - a pod on a node that died stays for ever, and its name with it, unless it is deleted without its
//   kubelet's word.
#pragma once

#include <string>
#include <vector>

#include "cluster/order.h"
#include "kubeflow/objects.h"

namespace voda::kubeflow {

// A job and its pods, as the cluster shows them.
struct JobView {
  struct Worker {
    int number = 0;  // as Voda counts: a Master is worker 0, and the others follow
    const PodObject* pod = nullptr;
    bool dead = false;  // being deleted on a node that does not answer, and its grace period is over
  };
  const JobObject* job = nullptr;
  std::vector<Worker> workers;
  const PodObject* launcher = nullptr;
  bool launcher_dead = false;  // the same for the launcher
  // Whether there is a launcher, and it has no node yet: without it the workers do nothing.
  bool launcher_waits() const {
    return launcher != nullptr && launcher->node.empty() && !launcher->over() && !launcher->deleting;
  }
  bool patient = false;  // the order is young, so a job that is about to end may do so
  bool nominal = false;  // Kubernetes chooses the nodes: only the number of seats counts
  bool whole = false;    // the job cannot lose or gain a worker: it is stopped and started as a whole
};

struct Write {
  enum class Kind {
    kSuspend,
    kResume,  // with `replicas`
    kScale,   // to `replicas`
    kPin,     // the pod to `node`: opens its gate
    kDeletePod,
  } kind = Kind::kSuspend;
  int replicas = 0;
  const PodObject* pod = nullptr;
  std::string node;
  bool force = false;  // for kDeletePod: nobody has to confirm the end
};

struct StepResult {
  enum class State { kWaiting, kDone } state = State::kWaiting;
  std::vector<Write> writes;
  std::string why;  // why the order waits
};

// Whether the pod is a worker of the job. Anybody can write a job's labels on a pod of the same namespace:
// the operators name their pods by the job and the number, and those ask for what the template says.
bool IsWorker(const JobObject& job, const PodObject& pod);

JobView MakeView(const JobObject& job, const std::vector<const PodObject*>& pods, bool whole);

StepResult NextStep(const JobView& view, const Order& order);

// The node of each worker as the scheduler is told: that of its pod until it is gone; "" if there is no pod
// or it is not placed yet. Empty if the job holds nothing.
std::vector<std::string> Seats(const JobView& view);

}  // namespace voda::kubeflow
