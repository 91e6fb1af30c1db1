// JobRunner: carries out what the scheduler orders for one job, one order after the other, and says what
// became of its processes. What is common to both kinds of jobs is here; PyTorchRunner and MpiRunner know
// what an order means for theirs.
//
// It is level-triggered: Advance looks at what runs and does the next thing that is missing, so an order that
// was carried out in part, or twice, leads to the same end. Nothing it needs after a restart is only in
// memory.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "local/environment.h"
#include "local/judge.h"
#include "local/machine.h"
#include "model/action.h"

namespace voda::local {

// An action with names instead of indices, and how far it got.
struct Order {
  ActionId id = 0;
  ActionKind kind = ActionKind::kHalt;
  std::string gpu_type;            // of the scheduler that asked
  std::vector<std::string> seats;  // the node of each worker once it is done; "": that worker is down
  std::vector<std::string> nodes;  // all nodes of that scheduler

  double begun = 0;
  std::set<int> started;  // serials
  std::string failed;     // why; what it started is being stopped
  bool whole = false;     // the job is started anew: workers with a serial below `first_new` go first
  int first_new = 0;
  double trim_at = 0;  // of a shrink of an MPIJob: when processes above the new size are made to go
  bool trimmed = false;
};

class JobRunner {
 public:
  static std::unique_ptr<JobRunner> Make(Machine& machine, ClusterJob job);
  JobRunner(Machine& machine, ClusterJob job);
  virtual ~JobRunner() = default;

  // Takes over what runs of the job: the node of each worker, as LocalCluster::AddJob returns it. What ended
  // meanwhile is looked at by the first Advance.
  std::vector<std::string> Adopt();
  void Execute(Order order);
  // Stops what runs and says no more.
  void Forget();

  // Does what can be done now.
  void Advance(double now);
  // When, later than now, Advance has something to do even if no process ends.
  double Next(double now) const;

  const ClusterJob& job() const { return job_; }
  bool forgotten() const { return phase_ == Phase::kForgotten; }
  bool idle() const { return workers_.live().empty(); }
  // Nothing to do before the next Execute or Forget.
  bool quiet() const;
  // The job as it is described now; what runs goes on as it was started.
  void Change(ClusterJob job) { job_ = std::move(job); }
  std::vector<std::string> Seats() const { return Actual(); }
  const Workers& workers() const { return workers_; }
  virtual std::vector<int> HeldDevices(const std::string& node) const = 0;

 protected:
  // The node of each worker that runs now.
  virtual std::vector<std::string> Actual() const = 0;
  // Before the first Advance, once the workers are adopted.
  virtual void OnAdopted() {}
  // An end that was not asked for.
  virtual void OnEnd(StartRecord start, double now) = 0;
  // Before orders are looked at; false: they have to wait.
  virtual bool Consider(double now) = 0;
  // One look at the order in hand; true: it is over.
  virtual bool Step(double now) = 0;
  virtual double NextOfKind(double now) const = 0;
  virtual std::string Title(int worker) const = 0;

  Status Start(const Seat& seat, const std::string& purpose);
  void Close(const StartRecord& start, const Verdict& verdict);
  // Counts a failure, or not. False: it was one too many, the job is failing.
  bool Judged(const StartRecord& start, double now);
  Judgement JudgeEnd(const StartRecord& start, bool disturbed, double now) const;
  bool Count(const Judgement& judgement, const std::string& message);
  // When a worker was last started or ended, or the group changed otherwise.
  double LastChange() const;
  double LastEnd() const;  // 0: none has
  void Complete(double now);
  std::string Message(const StartRecord& start, const std::string& rule) const;
  // Outcomes of the order in hand; true for Step to return.
  bool Done(double now);
  bool Failed(std::string reason);
  // Whether those that the order started have run for long enough.
  bool Settled(double now) const;

  bool running() const { return phase_ == Phase::kRunning; }
  const LocalConfig& config() const { return machine_.config(); }

  Machine& machine_;
  ClusterJob job_;
  Workers workers_;
  std::optional<Order> order_;
  std::vector<std::string> believed_;  // what the scheduler takes the job to hold
  double changed_at_ = 0;              // a change that no start or stop tells of
  bool looking_back_ = false;          // at ends that the scheduler was told of by Adopt
  std::vector<StartRecord> found_;     // ended before this run, not yet looked at
  std::set<int> lost_;                 // workers whose next start is not the scheduler's wish but a repair

 private:
  enum class Phase { kRunning, kCompleting, kFailing, kEnded, kForgotten };

  // Starts and ends of the latest incarnation: what a failure may be the effect of.
  struct Deed {
    int worker;
    int serial;
    std::string purpose;
    double started;
    double ended;  // 0: not yet
  };

  void LookAtFound(double now);
  void TakeEnd(StartRecord start, double now);
  void Note(const StartRecord& start);
  bool Disturbed(const StartRecord& start) const;
  void Fail(std::string message);
  void AdvanceEnding(double now);
  void Work(double now);
  void Tell();

  Phase phase_ = Phase::kRunning;
  std::vector<Order> queue_;
  std::vector<Deed> deeds_;
  int deeds_incarnation_ = 0;
  int failures_ = 0;
  int disturbed_row_ = 0;
  double stop_at_ = 0;
  std::string message_;
  std::string repair_;  // why workers are started again
};

std::unique_ptr<JobRunner> MakePyTorchRunner(Machine& machine, ClusterJob job);
std::unique_ptr<JobRunner> MakeMpiRunner(Machine& machine, ClusterJob job);

}  // namespace voda::local
