// State: all that the scheduler of one GPU type knows of what is there now. One thread owns it; only Reduce
// and the functions of round.h change it. Jobs that have ended are not in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/action.h"
#include "model/allocation.h"
#include "model/job_status.h"
#include "model/snapshot.h"
#include "placement/place.h"

namespace voda {

struct CoreConfig {
  PlacementMode placement = PlacementMode::kCost;
  double rate_limit = 30;       // seconds between rounds (NextAllowed); delays a round, never loses one
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

// A round that has begun and waits for its plan.
struct RoundUnderWay {
  std::uint64_t number = 0;  // of all that were begun
  bool after_quiet = false;  // none began for twice the rate limit: it was not the limit that kept it
  std::string trigger;       // the events that led to it
};

struct InFlight {
  Action action;
  double deadline = 0;
};

// A job found room for some of its workers only. Until it is tried again, larger sizes are not among its
// own; these are all of them.
struct AllSizes {
  double retry_at = 0;
  Limits limits;
  CurvePtr curve;
  std::shared_ptr<const std::vector<int>> measured;
};

// What the core keeps of an active job beside what policies see of it; same position as in State::world.jobs.
struct ActiveJob {
  std::uint32_t id = 0;
  std::string category;
  std::string failure;  // why the last action failed; empty: it did not
  std::optional<SizeChange> last_change;
  std::optional<InFlight> in_flight;
  std::optional<AllSizes> all_sizes;
  std::vector<NodeIndex> desired;   // seats of the latest plan
  std::vector<NodeIndex> observed;  // what the cluster holds: the node of worker 0, 1, …
  JobStatus status = JobStatus::kWaiting;
  // The terminal status of a job that is being stopped (Aside::kEnding).
  JobStatus ending = JobStatus::kCanceled;
  // How many of the workers observed are there by a decision. Others can write a size, too: what is observed
  // beyond this is no decision's business, except that it is taken back.
  std::size_t claimed = 0;
  int failures = 0;     // actions that failed in a row
  double retry_at = 0;  // no action of this job before
  double accrued_at = 0;
  double stalled_until = 0;  // by its costs, a change of size or seats is over then
  double waited = 0;         // totals since submission, for people; policies see those of Job
  double ran = 0;
  double gpu_seconds = 0;
  int starts = 0;
};

// How a job ended: what Reduce says when it drops one.
struct EndedJob {
  std::string name;
  JobStatus status = JobStatus::kCompleted;
  double end = 0;
  std::string message;
  bool guessed = false;  // it never reported anything (Job)
  double work_done = 0;
  double waited = 0;  // totals since submission (ActiveJob)
  double ran = 0;
  double gpu_seconds = 0;
  int starts = 0;
  std::optional<double> first_start;
  int exit_code = kNoExitCode;
};

struct State {
  CoreConfig config;
  // Active jobs and nodes as a decision sees them: a job with an action in flight holds what that leads to,
  // any other what it has claimed.
  Snapshot world;
  PerJob<ActiveJob> active;  // parallel to world.jobs
  // Nodes that were removed, or are only heard of through workers. A Tick drops those that nothing names any
  // more, and the positions of the others change.
  std::set<std::string> removed;

  // Rounds.
  bool dirty = false;           // something happened that the latest round does not know
  bool undispatched = false;    // the latest plan may have actions to send
  double last_round = -kNever;  // when it began
  int rests = 0;                // rounds in a row, up to it, that changed nothing and followed closely
  double wake_at = kNever;
  std::optional<RoundUnderWay> under_way;
  std::uint64_t rounds_begun = 0;
  std::int64_t rounds = 0;            // that were finished
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
};

// Position of an active job by name, kNoJob when there is none.
JobIndex FindJob(const State& state, const std::string& name);

// Brings the waiting and running times that policies see of a job up to now; the seconds that passed.
double AccrueSeen(Job& job, const ActiveJob& active, double now);
// The same with the totals, for one job of the state or for all.
void Accrue(State& state, JobIndex job, double now);
void AccrueAll(State& state, double now);

// When the rate limit allows the next round. It keeps changes apart: a round that changed nothing delays the
// next one by a second, and further ones by 2, 4, … s up to the limit, so that events which change nothing
// make few rounds, too. After a quiet time nothing is delayed.
double NextAllowed(const State& state, double now);

// What a decision sees of it while nothing is in flight: what is observed, as far as it was decided.
std::vector<NodeIndex> Claimed(const ActiveJob& active);

// Whether an action of the job failed and there still is one to send.
bool RetryPending(const State& state, JobIndex job);

// Checks what must hold in every state; stops the process where it does not. For tests and simulation.
void CheckInvariants(const State& state);

}  // namespace voda
