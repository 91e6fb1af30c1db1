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

// The name may be that of a job that has ended: it is another job.
struct JobArrived {
  Job job;  // its workers are ignored: `workers_on` says what it holds already, after a restart of Voda
  std::string category;
  std::vector<std::string> workers_on;
  // Totals of a job that an earlier run of Voda accepted.
  double waited = 0;
  double ran = 0;
  double gpu_seconds = 0;
  int starts = 0;
};
// `ran` of an end or of a failed action: the seconds that the workers of a start ran that was not confirmed,
// because they ended too soon.
struct JobCompleted {
  std::string job;
  double ran = 0;
};
inline constexpr int kNoExitCode = -1;
struct JobFailed {
  std::string job;
  std::string message;
  double ran = 0;
  int exit_code = kNoExitCode;
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
// A job's new priority or limits. New limits come with a new curve, for its sizes are the allowed ones.
struct JobChanged {
  std::string job;
  std::optional<int> priority;
  struct Sizes {
    Limits limits;
    CurvePtr curve;
  };
  std::optional<Sizes> sizes;
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
// What the collector knows of jobs now. The next round uses it; the event does not ask for a round.
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
    std::optional<double> total_seconds;
    bool reported = false;                         // from now on the job is not guessed any more
    std::shared_ptr<const FinishedWork> finished;  // null: unchanged
  };
  std::vector<Entry> entries;
};
// What the cluster says a job holds, where that differs from what the outcomes of actions imply, for example
// because a worker died.
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
  double ran = 0;
  // Its workers found no room on their nodes, for a reason that Voda does not count by. What it still holds
  // was observed before this; the rest of its GPUs are for others for a while.
  bool no_room = false;
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
