// SimCluster: the simulated cluster behind the Cluster port. Jobs progress by their true speed-up for their
// size and the nodes they span; a change stalls a job, its GPUs held meanwhile; stopping loses no progress.
#pragma once

#include <cstdint>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ports.h"
#include "estimate/collector.h"
#include "sim/result.h"
#include "sim/workload.h"

namespace voda::sim {

// Seconds without progress per change of a job that names none of its own.
struct ChangeCosts {
  double start = 39;
  double rescale = 110;
  double migration = 97;
};

class SimCluster final : public Cluster {
 public:
  SimCluster(const Workload& workload, ChangeCosts costs, bool keep_history);

  // Collects; Apply carries out.
  void Execute(const Action& action, const std::vector<Node>& nodes) override;
  // Carries out what was collected and returns the ids of the actions done.
  std::vector<ActionId> Apply(double now);

  void Submitted(int job);
  // A job that already runs when the simulation starts: no start, no stall.
  void Seat(int job, const std::vector<std::string>& nodes, double now);
  // Jobs with workers there make no progress until they are placed anew.
  void NodeLost(const std::string& node, double now);
  // The node is back, but not the workers it had: returns the jobs that still counted on them, with the nodes
  // of what they hold.
  std::vector<std::pair<int, std::vector<std::string>>> NodeBack(const std::string& node);

  // The earliest completion, or infinity.
  double NextCompletion();
  // Jobs that complete at `now`, in the workload's order; their GPUs are free.
  std::vector<int> Complete(double now);

  // Progress of a running or waiting job.
  double RemainingWork(int job, double now) const;
  // Whole epochs that began and ended at the present size since they were last asked for, and the seconds of
  // one.
  struct Epochs {
    int workers = 0;
    int nodes = 0;
    int count = 0;
    double seconds = 0;
  };
  Epochs TakeEpochs(int job, double now);
  int EpochsDone(int job, double now) const;
  // Stalls that are over since they were last asked for, in the order in which they began.
  struct ObservedStall {
    int job = 0;
    StallKind kind = StallKind::kStart;
    double seconds = 0;
    double until = 0;
  };
  std::vector<ObservedStall> TakeStalls(double now);

  const std::vector<int>& running() const { return running_; }
  int gpus_used() const { return gpus_used_; }
  JobResult& result(int job) { return results_[static_cast<std::size_t>(job)]; }
  std::vector<JobResult>& results() { return results_; }
  int IndexOf(const std::string& name) const;

 private:
  struct Runtime {
    const WorkloadJob* job = nullptr;
    std::vector<NodeIndex> workers;
    double done = 0;  // seconds of work on one worker
    double rate = 0;  // of progress, once the stall is over
    double stalled_until = 0;
    double updated_at = 0;
    double changed_at = -1;
    double held_since = 0;
    int clean_from = 0;  // epochs before this one were cut by a change
    int reported = 0;    // epochs handed out by TakeEpochs
    std::uint32_t version = 0;
    int running_at = -1;  // position in running_
  };
  struct Due {
    double time;
    int job;
    std::uint32_t version;
    bool operator>(const Due& other) const {
      return time != other.time ? time > other.time : job > other.job;
    }
  };

  Runtime& at(int job) { return runtimes_[static_cast<std::size_t>(job)]; }
  const Runtime& at(int job) const { return runtimes_[static_cast<std::size_t>(job)]; }
  NodeIndex NumberOf(const std::string& node);
  double DoneAt(const Runtime& runtime, double now) const;
  void Settle(Runtime& runtime, double now);
  void Change(int job, std::vector<NodeIndex> workers, double stall, double now);
  void Schedule(int job);
  void Record(int job, double now);

  ChangeCosts costs_;
  bool keep_history_;
  std::vector<Runtime> runtimes_;
  std::vector<JobResult> results_;
  std::vector<std::pair<Action, int>> collected_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<ObservedStall> stalls_;
  std::vector<int> running_;
  int gpus_used_ = 0;
  std::unordered_map<std::string, int> index_;
  // Nodes have numbers of their own here: in the core, positions change.
  std::vector<std::string> nodes_;
  std::unordered_map<std::string, NodeIndex> numbers_;
};

}  // namespace voda::sim
