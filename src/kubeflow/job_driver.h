// JobDriver: carries out the orders of one job. It keeps what is under way: writes that were sent, and
// versions that the watch has yet to show.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/sink.h"
#include "kube/io.h"
#include "kubeflow/step.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {

// What a driver needs from the cluster around it.
class DriverHost {
 public:
  virtual ~DriverHost() = default;
  virtual kube::Io& io() = 0;
  virtual bool MayWrite() = 0;
  // Whether the job may send its writes now. If not, JobDriver::Turn is called when it may. A write in the
  // queue has a time limit and grows stale, so few writes wait there, and a job makes its writes when its
  // turn comes.
  virtual bool MaySend(const std::string&) { return true; }
  virtual void SendWrite(kube::Request request, kube::Io::Done done) {
    io().Send(std::move(request), std::move(done));
  }
  // Whether the copy of a resource contains a write that was answered with this version.
  virtual bool HasSeen(const kube::Resource& resource, const std::string& name_space,
                       const std::string& version) const = 0;
  virtual const JobObject* FindJob(const std::string& job) const = 0;
  virtual std::vector<const PodObject*> PodsOf(const std::string& job) const = 0;
  // Whether the node's kubelet does not answer any more (node_book.h).
  virtual bool Silent(const std::string&) const { return false; }
  // The job has ended: what its pods still hold is not Voda's any more. Returns the changes of the nodes.
  virtual std::vector<TypedEvent> Ended(const std::string& job) = 0;
  // An order does not come about, for this reason; it is still tried.
  virtual void Stuck(const std::string& job, const std::string& why) = 0;
  // What the job's user should read there.
  virtual void TellUser(const std::string&, const JobWord&) {}
};

// A managed job and how to drive it.
struct ManagedJob {
  std::string name;  // "namespace/name"
  std::string gpu_type;
  // Whether it cannot gain or lose a worker while it runs.
  bool whole = false;
  int min = 1;  // with fewer workers it does not train
  ManifestSettings settings;
  std::vector<std::string> believed;  // the seats that the scheduler believes it to hold
};

class JobDriver {
 public:
  // The sink is told the outcome of orders and what becomes of the job's workers.
  JobDriver(DriverHost& host, ClusterSink& sink, ManagedJob job);
  ~JobDriver();
  JobDriver(const JobDriver&) = delete;
  JobDriver& operator=(const JobDriver&) = delete;

  // There is one order at a time: a new one replaces an order that is not over.
  void Execute(Order order);
  // Replaces the description of the job; what was written to its object stays.
  void Change(ManagedJob job);
  // Keeps this state for the next write to the job's object.
  void Note(std::string state) { settings_.state = std::move(state); }
  // The job's object is gone, so its order cannot be carried out.
  void Abandon(const std::string& why);
  // The watch has shown a change of the job.
  void Changed();
  void Turn() { Advance(); }
  std::vector<std::string> Held() const;
  // What the current order waits for; empty if there is none.
  std::string Waits() const;

 private:
  struct Sent {
    kube::Resource resource;
    std::string removes;  // the uid of a pod; if empty, the object stays, with a new version
    int changes = 0;      // number of changes that had been seen by then
  };
  void Advance();
  bool Pursue(const JobObject& job);
  JobView View() const;
  // Undoes an order whose pods do not all come about or are not all scheduled, so that the GPUs can be given
  // to others: the job keeps the workers that found room, or is halted where those are of no use.
  void GiveBack(const JobView& view, const std::string& why);
  // What its order waits for, with what the server said.
  std::string WhyStuck(const StepResult& step) const;
  // Tells its user if somebody else suspended it: its owner means to hold it, and Voda starts it again.
  void LookAtSuspension(const JobObject& job);
  // Whether the copies show all our writes.
  bool WritesSeen();
  void Send(const Write& write, const JobObject& job);
  void SendRequest(kube::Request request, Sent sent);
  void Answered(const Sent& sent, const kube::Reply& reply);
  void Refused(const Sent& sent, const kube::ApiError& error);
  bool Dead(const PodObject& pod) const;
  // A pod that does not end in time may be on a dead node, which none of our watches shows.
  void LookAtEnding(const JobView& view);
  double WallSeconds() const;
  // How long the operator may still be at work on the job's object. A write in between makes its sync fail,
  // and mpi-operator tries again only after a time that doubles with every such event.
  kube::Duration OperatorNeeds(const JobObject& job) const;
  // Whether a failed worker must wait before it is replaced again.
  bool TooSoon(const PodObject& failed);
  void Again(kube::Duration delay);
  void Tell();
  void FollowHosts(int workers, int tries);

  DriverHost& host_;
  ClusterSink& sink_;
  std::string job_;
  std::string gpu_type_;
  bool whole_;
  int min_;
  ManifestSettings settings_;
  struct InHand {
    Order order;
    kube::TimePoint begun;
    bool told = false;    // whether the user was told that it is stuck
    std::string no_room;  // why its pods cannot be scheduled, once it is undone for that
  };
  std::optional<InHand> order_;
  std::vector<std::string> believed_;  // the seats that the scheduler believes the job to hold
  bool note_due_ = false;              // it was resized by a write that has no room for its state
  bool ended_ = false;                 // and reported
  bool not_suspended_ = false;         // as its object was last seen
  kube::TimePoint changed_{};          // when the watch last showed something
  int changes_ = 0;                    // and how often
  int in_flight_ = 0;
  // Writes that the watch has not shown yet. After a while they are not waited for any more: a server that
  // was set back to an old backup never shows them.
  struct Awaited {
    Sent sent;
    std::string version;
    kube::TimePoint until{};
  };
  std::vector<Awaited> awaited_;
  struct Repair {
    int count = 0;
    kube::TimePoint next{};
  };
  std::map<int, Repair> repairs_;  // of failed workers
  int failed_workers_ = 0;
  int failures_ = 0;            // failed writes in a row
  kube::TimePoint retry_at_{};  // when to write again after a failure
  bool stale_ = false;          // whether the write may be made as soon as something changes
  std::string refusal_;         // what the server said
  kube::Io::Ticket timer_ = kube::Io::Ticket::kNone;
  kube::TimePoint timer_at_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace voda::kubeflow
