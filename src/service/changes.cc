#include "service/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "document/json_writer.h"
#include "service/estimates.h"

namespace voda {

Answer<JobEntry*> JobChanges::Active(const std::string& name) {
  JobEntry* job = parts_.jobs.Find(name);
  if (job == nullptr) return NoJob(name);
  if (job->record.ended) return Conflict(fmt::format("{} has ended ({})", name, Name(job->record.status)));
  return job;
}

bool JobChanges::Waits(std::int64_t id, std::function<void()> again) {
  const auto pending = pending_.find(id);
  if (pending == pending_.end()) return false;
  pending->second.waiting.push_back(std::move(again));
  return true;
}

// Whoever waits goes on after the one who is answered now.
std::vector<std::function<void()>> JobChanges::Release(std::int64_t id) {
  return std::move(pending_.extract(id).mapped().waiting);
}

JobState JobChanges::WithAsked(const JobRecord& record) const {
  JobState state = record;
  const auto pending = pending_.find(record.id);
  if (pending == pending_.end() || !pending->second.asked || record.ended) return state;
  const Asked& asked = *pending->second.asked;
  state.held = asked.held;
  state.priority = asked.priority;
  state.limits = asked.limits;
  return state;
}

void JobChanges::Write(const JobEntry& job, const Asked& asked, Done done, Then then) {
  const std::int64_t id = job.record.id;
  const std::string name = job.record.name;
  pending_[id].asked = asked;
  const JobState state = WithAsked(job.record);
  parts_.ledger.Note(name, state);  // what else is written of the job meanwhile carries it
  parts_.ledger.Change(name, state,
                       [this, id, name, asked, done = std::move(done),
                        then = std::move(then)](const std::optional<Refusal>& refused) {
                         const auto waiting = Release(id);
                         // It may have ended meanwhile; then there is nothing left to change.
                         JobEntry* entry = parts_.jobs.Find(id);
                         if (entry != nullptr && entry->record.ended) entry = nullptr;
                         if (refused) {
                           if (entry != nullptr) parts_.ledger.Note(name, entry->record);
                           done(*refused);
                         } else {
                           if (entry != nullptr) {
                             JobRecord& record = entry->record;
                             const JobState before = record;
                             record.held = asked.held;
                             record.priority = asked.priority;
                             record.limits = asked.limits;
                             parts_.jobs.Touch(*entry);
                             then(*entry, before);
                           }
                           done(id);
                         }
                         for (const auto& again : waiting) again();
                       });
}

void JobChanges::NoteBefore(const Action& action, const Pool& pool) {
  JobEntry* job = parts_.jobs.Find(action.job);
  if (job == nullptr) return;
  Account(pool, job->record);
  JobState state = WithAsked(job->record);
  state.last_change = state.accounted;
  if (action.kind == ActionKind::kStart) {
    ++state.starts;
    state.last_start = state.accounted;
    if (!state.first_started) state.first_started = state.accounted;
  }
  parts_.ledger.Note(action.job, state);
}

void JobChanges::Delete(const std::string& name, Done done) {
  JobEntry* job = parts_.jobs.Find(name);
  if (job == nullptr) return done(NoJob(name));
  if (job->record.ended && !parts_.ledger.KeepsEnded()) {
    return done(Conflict(fmt::format("{} has ended ({}); `voda delete --erase` removes it with all its files",
                                     name, Name(job->record.status))));
  }
  const std::int64_t id = job->record.id;
  if (Waits(id, [this, name, done] { Delete(name, done); })) return;
  pending_[id];
  parts_.ledger.Remove(name, [this, id, done = std::move(done)](const Answer<Ledger::Removal>& removed) {
    const auto waiting = Release(id);
    JobEntry* entry = parts_.jobs.Find(id);
    if (removed && entry != nullptr) {
      entry->record.deleting = true;
      parts_.jobs.Touch(*entry);
      if (*removed == Ledger::Removal::kMarked && !entry->record.ended) {
        const std::string job_name = entry->record.name;
        parts_.events.Handle(parts_.pools.At(entry->record.gpu_type), JobDeleted{job_name}, SteadyWallNow());
      }
    }
    removed ? done(id) : done(removed.error());
    for (const auto& again : waiting) again();
  });
}

void JobChanges::Erase(const std::string& name, Done done) {
  const JobEntry* job = parts_.jobs.Find(name);
  if (job == nullptr) return done(NoJob(name));
  if (!job->record.ended)
    return done(Conflict(fmt::format("{} has not ended; delete it first, then erase it", name)));
  if (parts_.ledger.KeepsEnded()) return Delete(name, std::move(done));
  // On a full disk its files go first: they may be what fills it, and its record cannot go before there is
  // room.
  if (parts_.history.DiskFailed()) parts_.cluster.EraseJob(job->record.id, job->record.token);
  parts_.history.Remove(job->record.id,
                        [this, id = job->record.id, name, done = std::move(done)](const Status& removed) {
                          if (!removed)
                            return done(Unavailable("nothing was accepted: " + removed.error().message));
                          if (parts_.jobs.Find(id) != nullptr) {
                            Log(LogLevel::kInfo, "job.removed", {{"job", name}});
                            Drop(id);
                          }
                          done(id);
                        });
}

void JobChanges::Drop(std::int64_t id) {
  const JobEntry* job = parts_.jobs.Find(id);
  if (job == nullptr) return;
  const std::string token = job->record.token;
  parts_.jobs.Remove(id);
  parts_.cluster.EraseJob(id, token);
}

void JobChanges::Hold(const std::string& name, bool held, Done done) {
  const auto job = Active(name);
  if (!job) return done(job.error());
  const JobRecord& record = (*job)->record;
  if (Waits(record.id, [this, name, held, done] { Hold(name, held, done); })) return;
  if (record.deleting) return done(Conflict(name + " is being stopped"));
  Write(**job, {held, record.priority, record.limits}, std::move(done),
        [this, held](JobEntry& entry, const JobState& before) {
          if (before.held == held) return;
          Pool& pool = parts_.pools.At(entry.record.gpu_type);
          const std::string job_name = entry.record.name;
          parts_.announcer.Publish(held ? "job.held" : "job.resumed", pool.gpu_type, job_name);
          parts_.events.Handle(pool, held ? Event(JobHeld{job_name}) : Event(JobResumed{job_name}),
                               SteadyWallNow());
        });
}

void JobChanges::Change(const std::string& name, const Wish& wish, Done done) {
  const auto job = Active(name);
  if (!job) return done(job.error());
  const JobRecord& record = (*job)->record;
  if (Waits(record.id, [this, name, wish, done] { Change(name, wish, done); })) return;
  const bool resizes = wish.min || wish.num || wish.max;
  if (resizes && (*job)->spec && (*job)->spec->master)
    return done(Conflict(name + " has a Master and runs at one size only"));
  Limits limits{wish.min.value_or(record.limits.min), record.limits.num,
                wish.max.value_or(record.limits.max)};
  limits.num = wish.num.value_or(std::clamp(limits.num, limits.min, std::max(limits.min, limits.max)));
  if (limits.min < 1 || limits.min > limits.num || limits.num > limits.max || limits.max > kMaxWorkers) {
    return done(Invalid(
        fmt::format("min {} <= num {} <= max {} does not hold; give numbers from 1 to {} in that order",
                    limits.min, limits.num, limits.max, kMaxWorkers)));
  }
  Write(**job, {record.held, wish.priority.value_or(record.priority), limits}, std::move(done),
        [this, resizes](JobEntry& entry, const JobState&) {
          const JobRecord& changed = entry.record;
          Pool& pool = parts_.pools.At(changed.gpu_type);
          const auto [min, num, max] = changed.limits;
          JobChanged event{changed.name, changed.priority, std::nullopt};
          if (resizes) {
            if (entry.spec) {
              JobSpec spec = *entry.spec;
              spec.limits = changed.limits;
              entry.spec = std::make_shared<const JobSpec>(std::move(spec));
              parts_.cluster.AddJob(Accepted(entry), false);
            }
            event.sizes = {changed.limits, CurveFor(pool, changed)};
          }
          JsonWriter fields;
          fields.Field("priority", changed.priority).Field("min", min).Field("max", max);
          parts_.announcer.Publish("job.changed", pool.gpu_type, changed.name, fields.Take());
          parts_.events.Handle(pool, event, SteadyWallNow());
        });
}

}  // namespace voda
