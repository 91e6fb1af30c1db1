// State: all that the scheduler of one GPU type knows. One thread owns it; only Reduce and RunRound change
// it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/action.h"
#include "model/allocation.h"
#include "model/snapshot.h"
#include "placement/place.h"

namespace voda {

enum class JobStatus : std::uint8_t { kSubmitted, kWaiting, kRunning, kCompleted, kFailed, kCanceled };

std::string_view Name(JobStatus status);
constexpr bool Terminal(JobStatus status) {
  return status == JobStatus::kCompleted || status == JobStatus::kFailed || status == JobStatus::kCanceled;
}

struct CoreConfig {
  PlacementMode placement = PlacementMode::kCost;
  double rate_limit = 30;       // seconds between rounds; delays a round, never loses one
  double action_timeout = 300;  // seconds until an action without an outcome counts as failed
  // Against churn, off by default.
  double min_runtime = 0;  // a running job is not shrunk or stopped before
  double cooldown = 0;     // no second change of a job's size within
};

// Why a job's size last changed.
struct SizeChange {
  std::int64_t round = 0;
  double time = 0;
  int from = 0;
  int to = 0;
  std::string reason;   // Describe()d when it was decided
  std::string trigger;  // the events that led to the round
};

struct InFlight {
  Action action;
  double deadline = 0;
};

// What the core keeps of an active job beside what policies see of it; same position as in State::world.jobs.
struct ActiveJob {
  std::uint32_t id = 0;
  std::string category;
  JobStatus status = JobStatus::kWaiting;
  JobStatus ending =
      JobStatus::kCanceled;        // the terminal status of a job that is being stopped (Aside::kEnding)
  std::vector<NodeIndex> desired;  // seats of the latest plan
  std::optional<InFlight> in_flight;
  int failures = 0;     // actions that failed in a row
  double retry_at = 0;  // no action of this job before
  double accrued_at = 0;
  double stalled_until = 0;  // by its costs, a change of size or seats is over then
  double waited = 0;         // totals since submission, for people; policies see those of Job
  double ran = 0;
  double gpu_seconds = 0;
  std::optional<SizeChange> last_change;
};

struct EndedJob {
  std::string name;
  JobStatus status = JobStatus::kCompleted;
  double end = 0;
  std::string message;
};

struct State {
  CoreConfig config;
  Snapshot world;                 // active jobs and nodes, as observed
  std::vector<ActiveJob> active;  // parallel to world.jobs
  // Nodes that were removed, or are only heard of through workers. A Tick drops those that nothing names any
  // more, and the positions of the others change.
  std::set<std::string> removed;

  std::deque<EndedJob> ended;  // latest last, at most kEndedMax
  static constexpr std::size_t kEndedMax = 100'000;

  // Rounds.
  bool dirty = false;         // something happened that the latest plan does not know
  bool undispatched = false;  // the latest plan may have actions to send
  double last_round = -kNever;
  double wake_at = kNever;
  std::int64_t rounds = 0;
  std::vector<std::string> triggers;  // since the latest round, the first few
  std::int64_t trigger_count = 0;
  std::int64_t ignored_events = 0;  // about jobs, nodes or actions that are not known (any more)
  std::string note;                 // of the latest decision

  ActionId next_action = 1;
  std::unordered_map<ActionId, std::uint32_t> action_owner;  // in flight -> job id

  // Look-up; never iterated, so that its order cannot reach a decision.
  std::unordered_map<std::string, std::uint32_t> job_ids;
  std::vector<JobIndex> slot_of;  // job id -> position, kNoJob once it has ended
  std::unordered_map<std::string, NodeIndex> node_index;
  std::unordered_map<std::string, JobStatus> ended_status;
};

// Position of an active job by name, kNoJob when there is none.
JobIndex FindJob(const State& state, const std::string& name);

// Brings the waiting and running times of one job, or of all, up to now.
void Accrue(State& state, JobIndex job, double now);
void AccrueAll(State& state, double now);

// Whether an action of the job failed and there still is one to send.
bool RetryPending(const State& state, JobIndex job);

// Checks what must hold in every state; stops the process where it does not. For tests and simulation.
void CheckInvariants(const State& state);

}  // namespace voda
