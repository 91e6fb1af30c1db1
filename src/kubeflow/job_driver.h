// JobDriver: carries out the order of one job. Keeps what is under way: writes that were sent, and
// versions that the watch has yet to show.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/io.h"
#include "kubeflow/step.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {

// What a driver needs of the cluster around it.
class DriverHost {
 public:
  virtual ~DriverHost() = default;
  virtual kube::Io& io() = 0;
  virtual bool MayWrite() = 0;
  // Whether the job may send its writes now. If not, JobDriver::Turn is called when it may. A write that
  // waits to be sent has a time limit and grows stale, so few wait and the others are made when their turn
  // comes.
  virtual bool MaySend(const std::string&) { return true; }
  virtual void SendWrite(kube::Request request, kube::Io::Done done) {
    io().Send(std::move(request), std::move(done));
  }
  // Whether the copy of a resource has a write that was answered with this version.
  virtual bool HasSeen(const kube::Resource& resource, const std::string& name_space,
                       const std::string& version) const = 0;
  virtual const JobObject* FindJob(const std::string& job) const = 0;
  virtual std::vector<const PodObject*> PodsOf(const std::string& job) const = 0;
  // Whether the node's kubelet is not heard of any more (node_book.h).
  virtual bool Silent(const std::string&) const { return false; }
  virtual void Post(const std::string& gpu_type, Event event) = 0;
  // The job has ended, as the event says: what its pods still hold is not Voda's any more.
  virtual void Ended(const std::string& job, const std::string& gpu_type, Event event) = 0;
  // A worker has failed and is replaced.
  virtual void Failed(const std::string& job, const std::string& gpu_type, const std::string& message,
                      int failures) = 0;
  // An order does not come about, for this reason; it is still tried.
  virtual void Stuck(const std::string& job, const std::string& why) = 0;
};

// How the job is to be driven.
struct ManagedJob {
  std::string name;  // "namespace/name"
  std::string gpu_type;
  // It cannot gain or lose a worker while it runs.
  bool whole = false;
  ManifestSettings settings;
  std::vector<std::string> believed;  // what the scheduler takes it to hold
};

class JobDriver {
 public:
  JobDriver(DriverHost& host, ManagedJob job);
  ~JobDriver();
  JobDriver(const JobDriver&) = delete;
  JobDriver& operator=(const JobDriver&) = delete;

  // One order at a time: one that is still in hand is not wanted any more.
  void Execute(Order order, const std::string& gpu_type);
  // The job is described anew: what it was told before stays.
  void Change(ManagedJob job);
  // Goes with the next write to the job's object.
  void Note(std::string state) { settings_.state = std::move(state); }
  // Its object is gone: nothing of what was ordered will come about.
  void Abandon(const std::string& why);
  // The watch has shown something of the job.
  void Changed();
  void Turn() { Advance(); }
  std::vector<std::string> Held() const;
  // What the order in hand waits for; empty: there is none.
  std::string Waits() const;

 private:
  struct Sent {
    kube::Resource resource;
    std::string removes;  // the uid of a pod; empty: the object stays, with a new version
    int changes = 0;      // that had been seen by then
  };
  void Advance();
  bool Pursue(const JobObject& job);
  JobView View() const;
  bool Settled();
  void Send(const Write& write, const JobObject& job);
  void SendRequest(kube::Request request, Sent sent);
  void Answered(const Sent& sent, const kube::Reply& reply);
  void Refused(const Sent& sent, const kube::ApiError& error);
  bool Dead(const PodObject& pod) const;
  // A pod that does not end in its time may be on a node that dies, which no watch of ours shows.
  void LookAtEnding(const JobView& view);
  double WallSeconds() const;
  // How long its operator may still be at work on the job's object. A write that comes between makes its sync
  // fail, and mpi-operator tries again only after a time that doubles with every event since.
  kube::Duration OperatorNeeds(const JobObject& job) const;
  // Whether a worker that failed is to wait before it is replaced once more.
  bool TooSoon(const PodObject& failed);
  void Again(kube::Duration delay);
  void Tell();
  void FollowHosts(int workers, int tries);

  DriverHost& host_;
  std::string job_;
  std::string gpu_type_;
  bool whole_;
  ManifestSettings settings_;
  struct InHand {
    Order order;
    std::string gpu_type;
    kube::TimePoint begun;
    bool told = false;  // that it is stuck
  };
  std::optional<InHand> order_;
  std::vector<std::string> believed_;  // what the scheduler takes the job to hold
  bool note_due_ = false;              // it was resized by a write that cannot take its state along
  bool ended_ = false;                 // and told so
  kube::TimePoint changed_{};          // when the watch last showed something
  int changes_ = 0;                    // and how often
  int in_flight_ = 0;
  // What was written and is not seen yet. After a while the copies count as they are: a server that was set
  // back to an old backup never shows it.
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
  std::map<int, Repair> repairs_;  // of workers that had failed
  int failed_workers_ = 0;
  int failures_ = 0;            // writes in a row
  kube::TimePoint retry_at_{};  // after one
  bool stale_ = false;          // it may be made at once when something changes
  std::string refusal_;         // what the server said
  kube::Io::Ticket timer_ = kube::Io::Ticket::kNone;
  kube::TimePoint timer_at_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace voda::kubeflow
