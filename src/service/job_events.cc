#include "service/job_events.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "base/log.h"
#include "document/json_writer.h"
#include "service/estimates.h"
#include "service/means.h"

namespace voda {

namespace {

// The job an event is about, empty for others.
std::string JobOf(const State& state, const Event& event) {
  const auto owner = [&](ActionId id) -> std::string {
    const auto at = state.action_owner.find(id);
    if (at == state.action_owner.end()) return {};
    return state.world.job(state.slot_of[at->second]).name;
  };
  return std::visit(
      [&](const auto& one) -> std::string {
        if constexpr (requires { one.job.name; }) {
          return one.job.name;
        } else if constexpr (requires { one.job; }) {
          return one.job;
        } else if constexpr (requires { one.id; }) {
          return owner(one.id);
        } else {
          return {};
        }
      },
      event);
}

std::string_view OutcomeOf(const Event& event) {
  if (std::holds_alternative<ActionDone>(event)) return "done";
  if (std::holds_alternative<ActionFailed>(event)) return "failed";
  if (std::holds_alternative<ActionTimedOut>(event)) return "timed_out";
  return {};
}

// "a: 2, b: 1"
std::string NodeCounts(const std::vector<std::string>& nodes) {
  std::map<std::string, int> counts;
  for (const std::string& node : nodes) ++counts[node.empty() ? "no node yet" : node];
  std::string text;
  for (const auto& [node, count] : counts)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", node, count);
  return text;
}

// What a change of workers is called: as a label of metrics, as an event, and on the job's object.
struct Change {
  std::string_view direction;
  const char* event;
  const char* word;
};
constexpr Change kStart{"start", "job.started", "Started"};
constexpr Change kHalt{"halt", "job.halted", "Suspended"};
constexpr Change kMove{"move", "job.moved", "Moved"};
constexpr Change kUp{"up", "job.resized", "Resized"};
constexpr Change kDown{"down", "job.resized", "Resized"};

const Change& ChangeOf(std::size_t from, std::size_t to) {
  if (from == 0) return kStart;
  if (to == 0) return kHalt;
  if (to > from) return kUp;
  return to < from ? kDown : kMove;
}

// What an end is called, and where it is counted.
struct EndName {
  const char* event;
  Series series;
};
EndName NameOf(JobStatus status) {
  switch (status) {
    case JobStatus::kCompleted:
      return {"job.completed", Series::kJobsCompleted};
    case JobStatus::kFailed:
      return {"job.failed", Series::kJobsFailed};
    default:
      return {"job.canceled", Series::kJobsDeleted};
  }
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

void JobEvents::Handle(Pool& pool, const Event& event, double now) {
  const State& state = pool.state();
  const std::string name = JobOf(state, event);
  std::vector<NodeIndex> before;
  if (const JobIndex index = FindJob(state, name); index != kNoJob) {
    before = state.active[index].observed;
    const auto& in_flight = state.active[index].in_flight;
    if (const std::string_view outcome = OutcomeOf(event); !outcome.empty() && in_flight) {
      parts_.metrics.Add(Series::kActions, {pool.gpu_type, Name(in_flight->action.kind), outcome});
      if (const auto* failed = std::get_if<ActionFailed>(&event)) {
        Log(LogLevel::kWarn, "action failed",
            {{"job", name}, {"action", Name(in_flight->action.kind)}, {"why", failed->message}});
      }
    }
  }
  const std::vector<EndedJob> ended = pool.scheduler->Handle(event, now);
  if (!name.empty()) Follow(pool, name, before, now);
  Ended(pool, ended, now);
}

void JobEvents::Follow(const Pool& pool, const std::string& name, const std::vector<NodeIndex>& before,
                       double now) {
  JobEntry* job = parts_.jobs.Find(name);
  const State& state = pool.state();
  const JobIndex index = FindJob(state, name);
  if (job == nullptr || index == kNoJob) return;
  const ActiveJob& active = state.active[index];
  JobRecord& record = job->record;
  record.status = active.status;
  const Job& seen = state.world.job(index);
  if (record.starts != active.starts) {
    record.starts = active.starts;
    if (!record.first_started) record.first_started = seen.first_start;
    record.last_start = seen.last_start;
    parts_.jobs.Touch(*job);
  }
  if (active.observed == before) return;
  job->stuck.clear();

  const auto from = before.size();
  const auto to = active.observed.size();
  job->nodes.clear();
  for (const NodeIndex node : active.observed)
    job->nodes.push_back(node == kNoNode ? std::string() : state.world.node(node).name);
  record.last_change = now;
  parts_.jobs.Touch(*job);
  double migrated = 0;
  for (std::size_t i = 0; i < std::min(from, to); ++i) migrated += before[i] != active.observed[i] ? 1 : 0;
  if (migrated > 0) parts_.metrics.Add(Series::kWorkersMigrated, {pool.gpu_type}, migrated);
  if (to == 0 && record.kind == JobKind::kMpiJob)
    parts_.metrics.Add(Series::kLaunchersDeleted, {pool.gpu_type});
  TellChange(pool, *job, from, active);
}

void JobEvents::TellChange(const Pool& pool, const JobEntry& job, std::size_t from, const ActiveJob& active) {
  const std::string& name = job.record.name;
  const auto to = job.nodes.size();
  const Change& change = ChangeOf(from, to);
  parts_.metrics.Add(Series::kJobResizes, {pool.gpu_type, change.direction});
  JsonWriter fields;
  fields.Field("from", from).Field("to", to).Key("nodes").Array();
  for (const std::string& node : job.nodes) fields.Value(node);
  fields.EndArray();
  // A change that a user made, as holding it, has no decision behind it.
  const bool decided = active.last_change && active.last_change->to == static_cast<int>(to);
  const std::string reason =
      decided ? parts_.announcer.ToldOf(name, active.last_change->reason) : std::string();
  if (!reason.empty()) fields.Field("reason", reason);
  Log(LogLevel::kInfo, change.event,
      {{"job", name}, {"from", from}, {"to", to}, {"nodes", fmt::format("{}", fmt::join(job.nodes, ","))}});
  parts_.announcer.Publish(change.event, pool.gpu_type, name, fields.Take());

  std::string message =
      to == 0
          ? fmt::format("stopped, {} worker{} gave back their GPUs", from, from == 1 ? "" : "s")
          : fmt::format("{} worker{}{} on {}", to, to == 1 ? "" : "s",
                        from == 0 ? std::string() : fmt::format(" after {}", from), NodeCounts(job.nodes));
  if (!reason.empty()) message += ": " + reason;
  if (to > active.claimed)
    message += "; this size is not Voda's and is taken back: `voda set size` changes the limits of a job";
  parts_.ledger.Tell(name, {change.word, std::move(message), false});
}

void JobEvents::Ended(Pool& pool, const std::vector<EndedJob>& ended, double now) {
  for (const EndedJob& one : ended) {
    if (JobEntry* job = parts_.jobs.Find(one.name)) Finish(pool, *job, one, now);
  }
}

// How much work the job took is what is guessed of the others of its category.
void JobEvents::Learn(Pool& pool, const JobRecord& record, const EndedJob& ended, double now) {
  const double work = WorkOf(pool, record, ended);
  if (!pool.collector.Finished(record.category, work)) return;
  MeanRecord mean = FinishedMean(pool.collector, record.category, work);
  mean.gpu_type = pool.gpu_type;
  parts_.history.PutMean(mean);
  Handle(pool, NewsOfCategory(pool, parts_.jobs, record.category, /*all=*/false), now);
}

void JobEvents::Finish(Pool& pool, JobEntry& job, const EndedJob& ended, double now) {
  JobRecord& record = job.record;
  record.starts = ended.starts;
  if (!record.first_started) record.first_started = ended.first_start;
  record.ran = ended.ran;
  record.gpu_seconds = ended.gpu_seconds;
  // Before the scheduler knew of it, it waited.
  record.waited = std::max(ended.waited, now - record.submitted - ended.ran);
  const double total = record.waited + record.ran;
  record.status = ended.status;
  record.ended = now;
  record.message = ended.message;
  record.exit_code = ended.exit_code;
  job.nodes.clear();
  job.csv.reset();
  job.spec.reset();
  if (ended.status == JobStatus::kCompleted) Learn(pool, record, ended, now);
  pool.collector.Ended(record.category, record.name);
  // The history first: whoever finds the job in neither would say that it was canceled.
  parts_.history.Put(record);
  const std::string name = record.name;
  parts_.ledger.End(name, [&cluster = parts_.cluster, name] { cluster.ForgetJob(name); });
  const EndName end = NameOf(ended.status);
  parts_.metrics.Add(end.series, {pool.gpu_type});
  Log(ended.status == JobStatus::kFailed ? LogLevel::kWarn : LogLevel::kInfo, end.event,
      {{"job", name}, {"seconds", fmt::format("{:.1f}", total)}, {"message", FirstLine(ended.message)}});
  parts_.metrics.Observe(Series::kJobWaiting, {pool.gpu_type}, record.waited);
  if (ended.status == JobStatus::kCompleted)
    parts_.metrics.Observe(Series::kJobCompletion, {pool.gpu_type}, total);
  JsonWriter fields;
  fields.Field("message", ended.message).Field("total_seconds", total);
  if (ended.exit_code != kNoExitCode) fields.Field("exit_code", ended.exit_code);
  parts_.announcer.Publish(end.event, pool.gpu_type, name, fields.Take());
}

void JobEvents::Notice(const JobNotice& notice) {
  JobEntry* job = parts_.jobs.Find(notice.job);
  if (job == nullptr || parts_.pools.Find(notice.gpu_type) == nullptr) return;
  if (notice.kind == JobNotice::Kind::kStuck) {
    job->stuck = notice.message;
    return;
  }
  const bool failed = notice.kind == JobNotice::Kind::kWorkerFailed;
  if (failed) parts_.metrics.Add(Series::kWorkerFailures, {notice.gpu_type});
  job->record.failures = notice.failures;
  if (job->spec) job->record.message = notice.message;
  parts_.jobs.Touch(*job);
  Log(failed ? LogLevel::kWarn : LogLevel::kInfo, failed ? "worker failed" : "workers started again",
      {{"job", notice.job}, {"failures", notice.failures}, {"message", FirstLine(notice.message)}});
  JsonWriter fields;
  fields.Field("message", notice.message).Field("failures", notice.failures);
  parts_.announcer.Publish("job.restarted", notice.gpu_type, notice.job, fields.Take());
}

void JobEvents::Gone(const std::string& name, double now) {
  JobEntry* job = parts_.jobs.Find(name);
  if (job == nullptr && parts_.jobs.Taken(name)) gone_early_.insert(name);  // before it could be started
  if (job == nullptr || job->record.ended) return;
  Pool& pool = parts_.pools.At(job->record.gpu_type);
  // Until its pods are gone, the cluster counts their GPUs as taken. Nobody stopped them: without its label
  // the job runs on, and nothing else is told.
  Ended(pool, pool.scheduler->Handle(WorkersObserved{name, {}}, now), now);
  Handle(pool, JobDeleted{name}, now);
}

}  // namespace voda
