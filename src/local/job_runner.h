// JobRunner: carries out the orders for one job, one after the other, and reports what became of its
// processes. Both kinds of jobs share this part; PyTorchRunner and MpiRunner know what an order means for
// theirs.
//
// It is level-triggered: Advance looks at what runs and does the next thing that is missing, so an order
// that was carried out in part, or twice, leads to the same end. Everything it needs after a restart is on
// the disk.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/order.h"
#include "local/environment.h"
#include "local/exit_judge.h"
#include "local/machine.h"

namespace voda::local {

// An order, and how far it got.
struct OrderInHand : Order {
  std::vector<std::string> nodes;  // all nodes of the scheduler that gave it

  double begun = 0;
  std::set<int> started;  // the serials of the starts that it began
  double ran_since = 0;   // when the first of them began to run; 0: none has
  std::string failed;     // why it failed; its starts are being stopped
  bool whole = false;     // the job is started anew: workers with a serial below `first_new` stop first
  int first_new = 0;
  double trim_at = 0;  // when a shrink of an MPIJob ends processes above the new size
  bool trimmed = false;
};

class JobRunner {
 public:
  static std::unique_ptr<JobRunner> Make(Machine& machine, AcceptedJob job);
  JobRunner(Machine& machine, AcceptedJob job);
  virtual ~JobRunner() = default;

  // Takes over the running workers and returns the node of each, for LocalCluster::AddJob. The first
  // Advance handles the workers that ended meanwhile. What cannot be read yet is taken over by a later
  // Advance; until then orders fail, and nothing is said of the job's workers.
  std::vector<std::string> Adopt();
  // Makes the job's folder its own; an error if it is another job's.
  Status Claim();
  // Writes into the folder that the job has ended for the service.
  void NoteEnd();
  void Execute(OrderInHand order);
  // Stops all workers and reports nothing more.
  void Forget();

  // Does what can be done now.
  void Advance(double now);
  // The next time after now at which Advance has something to do even if no process ends.
  double Next(double now) const;

  const AcceptedJob& job() const { return job_; }
  bool adopted() const { return unread_.empty(); }
  bool forgotten() const { return phase_ == Phase::kForgotten; }
  bool idle() const { return workers_.live().empty(); }
  // Whether there is nothing to do before the next Execute or Forget.
  bool quiet() const;
  // Replaces the description of the job; running workers go on as they were started.
  void Change(AcceptedJob job) { job_ = std::move(job); }
  std::vector<std::string> Seats() const { return Actual(); }
  const WorkerProcesses& workers() const { return workers_; }
  virtual std::vector<int> HeldDevices(const std::string& node) const = 0;

 protected:
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  // The node of each worker that runs now.
  virtual std::vector<std::string> Actual() const = 0;
  // Reads what an adoption needs beside the workers' files; called before them.
  virtual Status Recall() { return Ok{}; }
  // Called before the first Advance, once the workers are adopted.
  virtual void OnAdopted() {}
  // Handles the end of a worker that was not asked to stop.
  virtual void OnEnd(StartRecord start, double now) = 0;
  // Called before orders are handled; returns false if they must wait.
  virtual bool Consider(double now) = 0;
  // Does what can be done now for the current order; returns true when the order is over.
  virtual bool Step(double now) = 0;
  virtual double NextOfKind(double now) const = 0;
  virtual std::string Title(int worker) const = 0;

  // Begins the start of a worker for the current order: its number, node, devices, incarnation, port, memory
  // and purpose are given. If the start fails later, the order fails.
  Status Start(WorkerSpec start, const Told& told);
  void Close(const StartRecord& start, const ExitVerdict& verdict);
  // Judges the end of a worker and counts it if it is a failure. Returns false if the job fails of it.
  bool CountEnd(const StartRecord& start, double now);
  ExitJudgement JudgeEnd(const StartRecord& start, bool disturbed, double now) const;
  bool Count(const ExitJudgement& judgement, const std::string& message, const ExitRecord& exit);
  // When a worker was last started or ended, or the group changed in another way.
  double LastChange() const;
  double LastEnd() const;  // 0 if none has ended
  void Complete(double now);
  std::string Message(const StartRecord& start, const std::string& rule) const;
  // These report the outcome of the current order, and return true so that Step can return it.
  bool Done(double now);
  bool Failed(std::string reason);
  // Whether the workers that the order started have been running for long enough.
  bool TrialOver(double now) const;

  bool running() const { return phase_ == Phase::kRunning; }
  const LocalConfig& config() const { return machine_.config(); }

  Machine& machine_;
  AcceptedJob job_;
  WorkerProcesses workers_;
  std::optional<OrderInHand> order_;
  std::vector<std::string> believed_;  // the seats that the scheduler believes the job to hold
  double changed_at_ = 0;              // when the group changed without a start or stop
  bool looking_back_ = false;          // while handling ends that Adopt told the scheduler of
  std::vector<StartRecord> found_;     // starts that ended before this run and are not handled yet
  std::set<int> lost_;                 // workers whose next start repairs a loss and was not ordered

 private:
  enum class Phase { kRunning, kCompleting, kFailing, kEnded, kForgotten };

  // A start of the latest incarnation and its end, which may have caused a failure.
  struct Deed {
    int worker;
    int serial;
    std::string purpose;
    double started;
    double ended;  // 0 if not yet
  };

  Status TryAdopt();
  Status ReadAndAdopt();
  // Tells the job's user what its GPUs wait for; nothing: for nothing any more.
  void TellStuck(const std::string& why);
  void AdoptLate(double now);
  void LookAtFound(double now);
  void EndAgain(double now);
  void TakeStart(const Worker& worker);
  void TakeFailedStart(const WorkerProcesses::FailedStart& failed);
  void TakeEnd(StartRecord start, double now);
  void Note(const StartRecord& start);
  bool Disturbed(const StartRecord& start) const;
  void Fail(std::string message, const ExitRecord& exit);
  void AdvanceEnding(double now);
  void Work(double now);
  void Tell();

  Phase phase_ = Phase::kRunning;
  bool ours_ = false;          // whether the folder is known to be the job's
  bool foreign_ = false;       // or another job's
  bool ended_before_ = false;  // its folder says that it has ended, and the service does not know
  std::string unread_;         // why nothing could be adopted yet
  double adopt_at_ = 0;        // when that is tried again
  double find_until_ = 0;      // until when it may still be about to become known who holds a lock
  std::string stuck_;          // what its user was told that its GPUs wait for
  std::vector<OrderInHand> queue_;
  std::vector<Deed> deeds_;
  int deeds_incarnation_ = 0;
  int failures_ = 0;
  int disturbed_row_ = 0;
  double stop_at_ = 0;
  double ran_since_ = 0;  // of the order in hand when the job ended (OrderInHand)
  std::string message_;
  int exit_code_ = 0;
  std::string repair_;  // why workers are started again
};

std::unique_ptr<JobRunner> MakePyTorchRunner(Machine& machine, AcceptedJob job);
std::unique_ptr<JobRunner> MakeMpiRunner(Machine& machine, AcceptedJob job);

}  // namespace voda::local
