// Step: what to write next so that a job's objects become what the scheduler ordered. Pure.
//
// Level-triggered: it compares what the cluster shows with the order, and returns every write that can be
// made now. It is asked again after each change that is seen; an order that was carried out in part, or
// twice, leads to the same end, and one that is reached gives no write at all.
//
// Traps of the operators that the rules here keep clear of (tested on real operators):
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

#include "kubeflow/objects.h"
#include "model/action.h"

namespace voda::kubeflow {

// A job and its pods as the cluster shows them.
struct JobView {
  struct Worker {
    int number = 0;  // as Voda counts: a Master is worker 0, and the others come after it
    const PodObject* pod = nullptr;
    bool dead = false;  // being deleted on a node that does not answer, and its time to end is over
  };
  const JobObject* job = nullptr;
  std::vector<Worker> workers;
  const PodObject* launcher = nullptr;
  bool launcher_dead = false;  // the same
  bool patient = false;        // the order is young: a job that is about to end may do so
  bool nominal = false;        // Kubernetes chooses the nodes: seats count, their names do not
  bool whole = false;  // its processes cannot lose or gain a member: it is stopped and started as a whole
};

struct Order {
  ActionId id = 0;
  ActionKind kind = ActionKind::kHalt;
  std::vector<std::string> seats;  // the node of each worker once it is done; "": that worker is down
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
  bool force = false;  // kDeletePod: nobody has to confirm that it has ended
};

struct StepResult {
  enum class State { kWaiting, kDone } state = State::kWaiting;
  std::vector<Write> writes;
  std::string why;  // it waits
};

JobView MakeView(const JobObject& job, const std::vector<const PodObject*>& pods, bool whole);

StepResult NextStep(const JobView& view, const Order& order);

// The node of each worker as the scheduler is told: where a pod sits, until it is gone; "" where there is
// none or it is not placed yet. Empty: nothing is held.
std::vector<std::string> Seats(const JobView& view);

}  // namespace voda::kubeflow
