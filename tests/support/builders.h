// Builders: jobs and snapshots in one readable line each, for tests.
//
//   const Snapshot snapshot = SnapshotBuilder()
//                                 .Nodes(2, 4)
//                                 .Add(JobBuilder("a").Sizes(1, 2, 8).Submit(3).Remaining(100))
//                                 .Add(JobBuilder("b").Sizes(1, 1, 2).Speedup({1, 1.8}).On({"n0"}))
//                                 .Build();
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/allocation.h"
#include "model/snapshot.h"

namespace voda::testing {

class JobBuilder {
 public:
  // One worker, submitted at 0, linear, nothing left to do, never started.
  explicit JobBuilder(std::string name);

  JobBuilder& Sizes(int min, int num, int max);
  // Exactly these sizes may be run at (ascending); min and max follow, num becomes the first unless among
  // them.
  JobBuilder& Allowed(std::vector<int> sizes);
  // One value for each allowed size, ascending; linear when not called.
  JobBuilder& Speedup(std::vector<double> speedup);
  JobBuilder& GpusPerWorker(int gpus);
  JobBuilder& Submit(double time);
  JobBuilder& Remaining(double seconds);
  JobBuilder& Priority(int priority);
  JobBuilder& FirstStart(double time);
  JobBuilder& Attained(double gpu_seconds);
  JobBuilder& Waited(double seconds);
  JobBuilder& Ran(double seconds);
  JobBuilder& NotPreemptible();
  // Nodes of worker 0, 1, …, by name; a name that is not in the snapshot is a worker that is down (kNoNode).
  JobBuilder& On(std::vector<std::string> nodes);
  // Costs of a start, a rescale and a migration in seconds.
  JobBuilder& Costs(double start, double rescale, double migration);

  // Without On(): those names mean something only within a snapshot.
  Job Build() const;

 private:
  friend class SnapshotBuilder;

  Job job_;
  std::vector<int> sizes_;
  std::vector<double> speedup_;
  std::vector<std::string> on_;
};

class SnapshotBuilder {
 public:
  SnapshotBuilder& Now(double now);
  SnapshotBuilder& Node(std::string name, int gpus, NodeState state = NodeState::kReady);
  // `count` more ready nodes of `gpus` GPUs each, named n0, n1, … in order of addition.
  SnapshotBuilder& Nodes(int count, int gpus);
  SnapshotBuilder& Add(const JobBuilder& job);
  Snapshot Build() const;

 private:
  double now_ = 1000;
  PerNode<voda::Node> nodes_;
  std::vector<JobBuilder> jobs_;
};

// Workers per job by name: answers compare equal whatever the order of the jobs.
using Sizes = std::map<std::string, int>;
Sizes SizesByName(const Snapshot& snapshot, const Allocation& allocation);

// The reason of a job by name; the job must be there.
const Reason& ReasonOf(const Snapshot& snapshot, const Allocation& allocation, std::string_view name);

// Position of a job by name; the job must be there.
JobIndex IndexOf(const Snapshot& snapshot, std::string_view name);

// Names of the jobs promoted, sorted.
std::vector<std::string> PromotedNames(const Snapshot& snapshot, const Allocation& allocation);

}  // namespace voda::testing
