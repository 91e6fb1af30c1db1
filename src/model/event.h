// Event: everything that can happen to the scheduler. State changes only by reduce(State, Event)
// (src/core/reduce.h). Events name jobs and nodes; an event about one that is unknown or has ended changes
// nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/job.h"
#include "model/node.h"

namespace voda {

using ActionId = std::uint64_t;

struct JobArrived {
  Job job;  // what it holds now is ignored unless `workers_on` says it runs already (a restart of Voda)
  std::string category;
  std::vector<std::string> workers_on;
  bool anew = false;  // another job of a name that has ended
  // Totals of a job that an earlier run of Voda accepted.
  double waited = 0;
  double ran = 0;
  double gpu_seconds = 0;
};
struct JobCompleted {
  std::string job;
};
struct JobFailed {
  std::string job;
  std::string message;
};
struct JobDeleted {
  std::string job;
};
struct JobHeld {
  std::string job;
};
struct JobResumed {
  std::string job;
};
// New priority or limits; a new curve comes with new limits, for its sizes are the allowed ones.
struct JobChanged {
  std::string job;
  std::optional<int> priority;
  struct Limits {
    int min;
    int num;
    int max;
    CurvePtr curve;
  };
  std::optional<Limits> limits;
};
struct NodeAdded {
  Node node;
};
struct NodeRemoved {
  std::string node;
};
struct NodeChanged {
  std::string node;
  std::optional<int> gpus;
  std::optional<NodeState> state;
};
// What the collector knows of jobs now. Picked up by the next round; does not ask for one.
struct MetricsUpdated {
  struct Entry {
    std::string job;
    CurvePtr curve;  // null: what is known of its speed is unchanged; otherwise over the job's allowed sizes
    std::shared_ptr<const std::vector<int>> measured;  // with a curve
    std::shared_ptr<const SpanTable> spans;            // with a curve
    struct Costs {
      double start;
      double rescale;
      double migration;
    };
    std::optional<Costs> costs;
    std::optional<double> remaining_seconds;
  };
  std::vector<Entry> entries;
};
// What the cluster says a job holds, where that differs from what the outcomes of actions imply (a worker
// died).
struct WorkersObserved {
  std::string job;
  std::vector<std::string> nodes;
};
struct ActionDone {
  ActionId id;
};
struct ActionFailed {
  ActionId id;
  std::string message;
};
struct ActionTimedOut {
  ActionId id;
};
struct Wake {};
struct Tick {};

using Event = std::variant<JobArrived, JobCompleted, JobFailed, JobDeleted, JobHeld, JobResumed, JobChanged,
                           NodeAdded, NodeRemoved, NodeChanged, MetricsUpdated, WorkersObserved, ActionDone,
                           ActionFailed, ActionTimedOut, Wake, Tick>;

// "job a arrived", "node n0 changed": what a reason names as its trigger.
std::string Describe(const Event& event);

}  // namespace voda
