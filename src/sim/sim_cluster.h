// SimCluster: the simulated cluster behind the Cluster port. Jobs progress by their true speed-up for their
// size and the nodes that they span. A change stalls a job, which holds its GPUs meanwhile; stopping loses
// no progress.
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

// Seconds without progress per change, for a job that names none of its own.
struct ChangeCosts {
  double start = 39;
  double rescale = 110;
  double migration = 97;
};

class SimCluster final : public Cluster {
 public:
  SimCluster(const Workload& workload, ChangeCosts costs, bool keep_history);

  // Collects the action; Apply carries it out.
  void Execute(const Action& action, const PerNode<Node>& nodes) override;
  // Carries out the collected actions and returns their ids.
  std::vector<ActionId> Apply(double now);

  void Submitted(JobNumber job);
  // Takes over a job that already runs when the simulation starts: it is not started and does not stall.
  void Seat(JobNumber job, const std::vector<std::string>& nodes, double now);
  // Jobs with workers on that node make no progress until they are placed anew.
  void NodeLost(const std::string& node, double now);
  // The node is back, but its workers are not. Returns the jobs that still counted on these workers, with
  // the node of each of their workers; the node is empty if the worker is down.
  std::vector<std::pair<JobNumber, std::vector<std::string>>> NodeBack(const std::string& node);

  // The time of the earliest completion, or infinity.
  double NextCompletion();
  // Completes the jobs that are done at `now` and frees their GPUs. Returns them in the workload's order.
  std::vector<JobNumber> Complete(double now);

  // Seconds of work on one worker that an unfinished job has left.
  double RemainingWork(JobNumber job, double now) const;
  // Whole epochs that began and ended at the present size since the last call, and the seconds of one.
  struct Epochs {
    int workers = 0;
    int nodes = 0;
    int count = 0;
    double seconds = 0;
  };
  Epochs TakeEpochs(JobNumber job, double now);
  int EpochsDone(JobNumber job, double now) const;
  // Epochs done with the part of the one under way.
  double Progress(JobNumber job, double now) const;
  // The same as TakeEpochs by parts of epochs: once so much of one went by at the present size.
  Epochs TakePart(JobNumber job, double now, double least);
  // Stalls that ended since the last call, in the order in which they began.
  struct ObservedStall {
    JobNumber job;
    StallKind kind = StallKind::kStart;
    double seconds = 0;
    double until = 0;
  };
  std::vector<ObservedStall> TakeStalls(double now);

  const std::vector<JobNumber>& running() const { return running_; }
  int gpus_used() const { return gpus_used_; }
  JobResult& result(JobNumber job) { return results_[job]; }
  PerWorkloadJob<JobResult>& results() { return results_; }
  JobNumber NumberOfJob(const std::string& name) const;

 private:
  struct Runtime {
    const WorkloadJob* job = nullptr;
    std::vector<NodeIndex> workers;
    double done = 0;  // seconds of work on one worker
    double rate = 0;  // progress a second, once the stall is over
    double stalled_until = 0;
    double updated_at = 0;
    double changed_at = -1;
    double held_since = 0;
    int clean_from = 0;    // epochs before this one were cut by a change
    int reported = 0;      // epochs handed out by TakeEpochs
    double part_from = 0;  // progress at the change, or when TakePart last handed out something
    std::uint32_t version = 0;
    int running_at = -1;  // position in running_
  };
  struct Due {
    double time;
    JobNumber job;
    std::uint32_t version;
    bool operator>(const Due& other) const {
      return time != other.time ? time > other.time : job > other.job;
    }
  };

  Runtime& at(JobNumber job) { return runtimes_[job]; }
  const Runtime& at(JobNumber job) const { return runtimes_[job]; }
  NodeIndex NumberOfNode(const std::string& node);
  double DoneAt(const Runtime& runtime, double now) const;
  void AccrueProgress(Runtime& runtime, double now);
  void Change(JobNumber job, std::vector<NodeIndex> workers, double stall, double now);
  void Schedule(JobNumber job);
  void Record(JobNumber job, double now);

  ChangeCosts costs_;
  bool keep_history_;
  PerWorkloadJob<Runtime> runtimes_;
  PerWorkloadJob<JobResult> results_;
  std::vector<std::pair<Action, JobNumber>> collected_;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::vector<ObservedStall> stalls_;
  std::vector<JobNumber> running_;
  int gpus_used_ = 0;
  std::unordered_map<std::string, JobNumber> job_numbers_;
  // Nodes have numbers of their own here, since positions in the core change.
  PerNode<std::string> nodes_;
  std::unordered_map<std::string, NodeIndex> node_numbers_;
};

}  // namespace voda::sim
