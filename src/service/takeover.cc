#include "service/takeover.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "service/estimates.h"

namespace voda {

namespace {

constexpr const char* kDeletedMeanwhile = "its object was deleted while Voda was away";

bool SameJob(const JobRecord& record, const FoundJob& found) {
  return found.token.empty() ? record.submitted == found.created : record.token == found.token;
}

}  // namespace

Status Takeover::Restore(const LedgerContents& contents, const std::vector<TypedEvent>& nodes, double now) {
  parts_.pools.UseSettings(contents.settings);
  if (Status restored = parts_.nodes.Restore(contents, nodes, now); !restored) return restored;
  for (const FoundJob& found : contents.jobs) {
    if (found.gpu_type.empty()) continue;
    // A job whose nodes are not declared any more waits for them to come back.
    if (const auto pool = parts_.pools.For(found.gpu_type); !pool) return pool.error();
  }
  if (Status restored = RestoreHistory(contents); !restored) return restored;
  ahead_ = 0;
  for (const FoundJob& found : contents.jobs) ahead_ = std::max(ahead_, found.created - now);
  restoring_ = true;
  for (const FoundJob& found : contents.jobs) Found(found, now);
  restoring_ = false;
  for (auto& [name, record] : absent_) Lose(std::move(record), kDeletedMeanwhile, now);
  absent_.clear();
  const auto& jobs = parts_.jobs.all();
  const auto active =
      std::count_if(jobs.begin(), jobs.end(), [](const auto& job) { return !job.second.record.ended; });
  Log(LogLevel::kInfo, "restored",
      {{"jobs", jobs.size()}, {"active", active}, {"nodes", parts_.nodes.all().size()}});
  return Ok{};
}

Status Takeover::RestoreHistory(const LedgerContents& contents) {
  auto records = parts_.history.Jobs();
  if (!records) return records.error();
  for (JobRecord& record : *records) {
    if (record.ended) {
      parts_.jobs.Add(std::move(record));
    } else {
      parts_.jobs.Reserve(record.name);
      const std::string name = record.name;
      absent_.emplace(name, std::move(record));
    }
  }
  const auto last = parts_.history.LastId();
  if (!last) return last.error();
  std::int64_t known = *last;
  for (const FoundJob& found : contents.jobs) known = std::max(known, found.id);
  const std::int64_t on_disk = parts_.cluster.LastId();
  // A job is in the store before its folder is made.
  if (on_disk > known) {
    Log(LogLevel::kError,
        "the store was lost or is an older copy: there are folders of jobs that it does not know, and what "
        "runs of these jobs is stopped",
        {{"last_known", known},
         {"last_folder", on_disk},
         {"fix", "stop Voda, run `voda store rebuild` on the data folder, and start Voda again"}});
  }
  parts_.jobs.StartIdsAfter(std::max(known, on_disk));
  return Ok{};
}

// The name belongs to the job that has it now; what had it before stays in the history under another. False:
// the job is known already.
bool Takeover::MakeRoom(const FoundJob& found) {
  if (!parts_.jobs.Taken(found.name)) return true;
  JobEntry* job = parts_.jobs.Find(found.name);
  if (job == nullptr) return absent_.contains(found.name);  // else it is being accepted by us
  // The same one again, running: it was deleted and made anew from what had been read of it.
  const bool known = SameJob(job->record, found) && found.end != FoundJob::End::kNone;
  if (!job->record.ended || known) return false;
  parts_.jobs.Rename(*job, fmt::format("{}@{}", job->record.name, job->record.id));
  parts_.history.Put(job->record);
  return true;
}

void Takeover::Refuse(const FoundJob& found, const std::string& why, double now) {
  Log(LogLevel::kWarn, "job refused", {{"job", found.name}, {"why", why.substr(0, why.find('\n'))}});
  parts_.ledger.Refuse(found.name, why);
  if (auto absent = absent_.extract(found.name); !absent.empty()) {
    Lose(std::move(absent.mapped()), "Voda cannot schedule it any more: " + why, now);
  } else if (found.id != 0) {  // it was accepted, and the history has not heard of it yet
    JobRecord record;
    record.id = found.id;
    record.name = found.name;
    record.gpu_type = found.gpu_type;
    record.token = found.token;
    record.submitted = found.created;
    Lose(std::move(record), "Voda cannot schedule it any more: " + why, now);
  }
}

void Takeover::Found(const FoundJob& found, double now) {
  if (!MakeRoom(found)) return;
  if (!found.refusal.empty()) return Refuse(found, found.refusal, now);
  const std::string& type = found.gpu_type.empty() ? found.spec->gpu_type : found.gpu_type;
  // Nodes may come back for a job that was accepted. Any other may mean a type that never was: it is refused,
  // and looked at again when nodes of its type come.
  if (restoring_ && !type.empty() && (found.state || absent_.contains(found.name))) {
    if (const auto pool = parts_.pools.For(type); !pool) return Refuse(found, pool.error().message, now);
  }
  auto made = submitter_.RecordFor(*found.spec, found.gpu_type, now);
  if (!made) return Refuse(found, made.error().message, now);
  JobRecord record = std::move(*made);
  record.name = found.name;
  record.id = found.id;
  record.submitted = found.created;
  if (!found.token.empty()) record.token = found.token;
  bool known = !found.token.empty() || found.state;
  bool remembered = false;
  bool halted = false;
  if (auto absent = absent_.extract(found.name); !absent.empty()) {
    if (SameJob(absent.mapped(), found)) {
      const std::string gpu_type = std::move(record.gpu_type);  // nodes and selector may have changed
      record = std::move(absent.mapped());
      record.gpu_type = gpu_type;
      known = remembered = true;
      halted = record.status == JobStatus::kWaiting && record.first_started;
    } else {
      Lose(std::move(absent.mapped()), kDeletedMeanwhile, now);
      MakeRoom(found);
    }
  }
  const int starts = record.starts;
  if (found.state) TakeKept(*found.state, record);
  halted = halted && record.starts == starts;               // else the ledger knows of a later start
  if (!known && found.end != FoundJob::End::kNone) return;  // it ended before Voda knew it
  if (record.id == 0) record.id = parts_.jobs.NewId();
  known ? Welcome(std::move(record), remembered, halted, found, now)
        : submitter_.Start(std::move(record), found.spec, now);
}

// A job that an earlier run took in, here or elsewhere.
void Takeover::Welcome(JobRecord record, bool remembered, bool halted, const FoundJob& found, double now) {
  record.deleting = found.deleting;
  if (!remembered) parts_.history.PutDocument(record.id, found.spec->document);
  if (!remembered && found.end != FoundJob::End::kNone) {
    record.status = found.end == FoundJob::End::kCompleted ? JobStatus::kCompleted : JobStatus::kFailed;
    record.message = found.message;
    record.ended = found.ended > 0 ? found.ended : now;
    parts_.history.Put(record);
    parts_.jobs.Add(std::move(record));
    return;
  }
  Pool& pool = parts_.pools.At(record.gpu_type);
  Resume(std::move(record), halted, found, now);
  // It ended while Voda was away: before anything is decided with it.
  if (found.end == FoundJob::End::kCompleted) parts_.events.Handle(pool, JobCompleted{found.name}, now);
  if (found.end == FoundJob::End::kFailed)
    parts_.events.Handle(pool, JobFailed{found.name, found.message}, now);
}

void Takeover::Resume(JobRecord kept, bool halted, const FoundJob& found, double now) {
  Pool& pool = parts_.pools.At(kept.gpu_type);
  JobEntry& job = parts_.jobs.Add(std::move(kept));
  JobRecord& record = job.record;
  job.spec = found.spec;
  if (job.spec->limits != record.limits) {
    JobSpec changed = *job.spec;
    changed.limits = record.limits;
    job.spec = std::make_shared<const JobSpec>(std::move(changed));
  }
  if (std::string path = submitter_.CsvPath(record); !path.empty())
    job.csv = std::make_shared<ProgressFile>(std::move(path));
  job.progress.Restore(record.epoch);
  job.nodes = parts_.cluster.AddJob(Accepted(job), true);

  // The time since the totals were written down counts for what the job does now.
  const bool running = !job.nodes.empty();
  const double since = std::max(0.0, now - std::max(record.accounted, record.submitted));
  const double unheard = running ? 0 : std::clamp(parts_.cluster.RanUnheard(record.name), 0.0, since);
  // It was started right before the end of the earlier run, which had not heard of that yet.
  const bool uncounted = (running || unheard > 0) && (!record.first_started || halted);
  if (uncounted) {
    record.last_start = now - unheard;
    if (!record.first_started) record.first_started = record.last_start;
    ++record.starts;
  }
  const double ran = running ? since : uncounted ? unheard : 0;
  const double workers = running ? static_cast<double>(job.nodes.size()) : record.limits.min;
  const double gpu_seconds = ran * workers * record.gpus_per_worker;
  JobArrived arrived;
  arrived.job = JobFor(pool, record, job.spec->preemptible);
  arrived.category = record.category;
  arrived.workers_on = job.nodes;
  arrived.waited = record.waited + since - ran;
  arrived.ran = record.ran + ran;
  arrived.gpu_seconds = record.gpu_seconds + gpu_seconds;
  arrived.starts = record.starts;
  arrived.job.attained_gpu_seconds = record.attained + gpu_seconds;
  arrived.job.waiting_seconds = record.waiting + since - ran;
  arrived.job.running_seconds = record.running + ran;
  if (running) arrived.job.work_done += since * GuessedSpeedup(static_cast<int>(job.nodes.size()));
  // The clock may be earlier than it was: nothing of the past may lie ahead and be waited for.
  const auto past = [now](double time) { return std::min(time, now); };
  arrived.job.submit_time -= ahead_;
  if (record.first_started) arrived.job.first_start = past(*record.first_started);
  if (record.last_change) arrived.job.last_change = past(*record.last_change);
  if (record.last_start) arrived.job.last_start = past(*record.last_start);
  record.failures = parts_.cluster.Failures(record.name);
  pool.scheduler->Handle(arrived, now);  // not news to anybody: it was there before
  record.status = running ? JobStatus::kRunning : JobStatus::kWaiting;
  if (running) {
    Log(LogLevel::kInfo, "job.adopted",
        {{"job", record.name}, {"nodes", fmt::format("{}", fmt::join(job.nodes, ","))}});
  }
  parts_.history.Put(record);
  const std::string name = record.name;
  if (record.held) parts_.events.Handle(pool, JobHeld{name}, now);
  if (found.deleting) parts_.events.Handle(pool, JobDeleted{name}, now);
}

// A job of the history that is in the ledger no more.
void Takeover::Lose(JobRecord record, const std::string& why, double now) {
  record.status = JobStatus::kCanceled;
  record.ended = now;
  record.message = why;
  parts_.history.Put(record);
  parts_.jobs.Add(std::move(record));
}

}  // namespace voda
