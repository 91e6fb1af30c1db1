// What users ask of jobs that are there: an end, a hold, other limits.
//
// Requests that share a transaction, or come while the cluster still writes the one before, build on each
// other: what was asked and is not durable yet (asked_) counts for those behind it, and everything that is
// written of the job meanwhile carries it. A job's entry changes when it is durable, by what was given only.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "codec/json_writer.h"
#include "service/kept_state.h"
#include "service/service.h"

namespace voda {

namespace {

void Apply(const Changes& changes, JobRecord& record) {
  record.priority = changes.priority.value_or(record.priority);
  record.min = changes.min.value_or(record.min);
  record.num = changes.num.value_or(record.num);
  record.max = changes.max.value_or(record.max);
  record.held = changes.held.value_or(record.held);
  record.deleting = changes.deleting.value_or(record.deleting);
}

void Add(const Changes& later, Changes& changes) {
  const auto take = [](const auto& from, auto& into) {
    if (from) into = from;
  };
  take(later.priority, changes.priority);
  take(later.min, changes.min);
  take(later.num, changes.num);
  take(later.max, changes.max);
  take(later.held, changes.held);
  take(later.deleting, changes.deleting);
}

}  // namespace

Answer<JobEntry*> Service::Active(const std::string& name) {
  const auto at = by_name_.find(name);
  const auto job = at == by_name_.end() ? jobs_.end() : jobs_.find(at->second);
  if (job == jobs_.end())
    return NotFound(fmt::format("no job is named \"{:.80}\"; `voda get jobs` lists them", name));
  if (job->second.record.ended) {
    return Conflict(fmt::format("{} has ended ({})", name, job->second.record.status));
  }
  return &job->second;
}

JobRecord Service::WithAsked(const JobRecord& record) const {
  JobRecord with = record;
  const auto asked = asked_.find(record.id);
  if (asked != asked_.end() && !record.ended) Apply(asked->second, with);
  return with;
}

bool Service::WaitsForWrite(std::int64_t id, std::function<void()> again) {
  const auto writing = remembering_.find(id);
  if (writing == remembering_.end()) return false;
  writing->second.push_back(std::move(again));
  return true;
}

void Service::Write(const JobRecord& record, const Changes& changes, Done done, Then then) {
  const std::int64_t id = record.id;
  Add(changes, asked_[id]);
  const auto take_effect = [this, id, changes, then = std::move(then)] {
    // It may have ended between the request and the commit; then there is nothing left to change.
    const auto job = jobs_.find(id);
    if (job == jobs_.end() || job->second.record.ended) return;
    const JobRecord before = job->second.record;
    Apply(changes, job->second.record);
    if (cluster_.KeepsJobs()) Touch(job->second);
    then(job->second, before);
  };
  if (!cluster_.KeepsJobs()) {
    Writing();  // Settle writes the record
    OnCommit([id, take_effect, done = std::move(done)](const std::optional<Refusal>& failed) {
      if (failed) return done(*failed);
      take_effect();
      done(std::vector<std::int64_t>{id});
    });
    return;
  }
  // One write of a job at a time: of two that overlap, one may fail and the other hold what it asked for.
  remembering_[id];
  const std::string state = WriteKeptState(WithAsked(record));
  cluster_.Note(record.name, state);  // what else is written of the job meanwhile carries it
  cluster_.Remember(record.name, state,
                    [this, id, take_effect, done = std::move(done)](const std::optional<Refusal>& refused) {
                      asked_.erase(id);
                      const auto waiting = std::move(remembering_.extract(id).mapped());
                      if (refused) {
                        // What was noted meanwhile carries it.
                        if (const auto job = jobs_.find(id); job != jobs_.end())
                          cluster_.Note(job->second.record.name, WriteKeptState(job->second.record));
                        done(*refused);
                      } else {
                        take_effect();
                        done(std::vector<std::int64_t>{id});
                      }
                      for (const auto& again : waiting) again();
                    });
}

void Service::Delete(const std::string& name, Done done) {
  if (cluster_.KeepsJobs()) {
    // Also of a job that has ended: its object goes, its history stays.
    const JobEntry* job = Find(name);
    if (job == nullptr)
      return done(NotFound(fmt::format("no job is named \"{:.80}\"; `voda get jobs` lists them", name)));
    cluster_.Remove(
        name, [this, id = job->record.id, done = std::move(done)](const std::optional<Refusal>& refused) {
          if (refused) return done(*refused);
          if (const auto at = jobs_.find(id); at != jobs_.end()) at->second.record.deleting = true;
          done(std::vector<std::int64_t>{id});
        });
    return;
  }
  if (const JobEntry* job = Find(name); job != nullptr && job->record.ended) {
    return done(Conflict(fmt::format("{} has ended ({}); `voda delete --erase` removes it with all its files",
                                     name, job->record.status)));
  }
  auto found = Active(name);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return done(*refusal);
  Changes changes;
  changes.deleting = true;
  Write(std::get<0>(found)->record, changes, std::move(done), [this](JobEntry& job, const JobRecord&) {
    Handle(*FindLane(job.record.gpu_type), JobDeleted{job.record.name}, WallNow());
  });
}

void Service::Erase(const std::string& name, Done done) {
  const JobEntry* job = Find(name);
  if (job == nullptr)
    return done(NotFound(fmt::format("no job is named \"{:.80}\"; `voda get jobs` lists them", name)));
  if (!job->record.ended)
    return done(Conflict(fmt::format("{} has not ended; delete it first, then erase it", name)));
  if (cluster_.KeepsJobs()) return Delete(name, std::move(done));
  const std::int64_t id = job->record.id;
  Writing();
  erasing_.insert(id);  // Settle removes it
  OnCommit([this, id, name, done = std::move(done)](const std::optional<Refusal>& failed) {
    const bool first = erasing_.erase(id) > 0;
    if (failed) return done(*failed);
    if (first) {
      Log(LogLevel::kInfo, "job.removed", {{"job", name}});
      Drop(id);
    }
    done(std::vector<std::int64_t>{id});
  });
}

void Service::Hold(const std::string& name, bool held, Done done) {
  auto found = Active(name);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return done(*refusal);
  const JobRecord& now = std::get<0>(found)->record;
  if (WaitsForWrite(now.id, [this, name, held, done] { Hold(name, held, done); })) return;
  const JobRecord record = WithAsked(now);
  if (record.deleting) return done(Conflict(name + " is being stopped"));
  Changes changes;
  changes.held = held;
  Write(record, changes, std::move(done), [this, held](JobEntry& job, const JobRecord& before) {
    if (before.held == held) return;
    Lane& lane = *FindLane(job.record.gpu_type);
    Publish(held ? "job.held" : "job.resumed", lane, job.record.name);
    const Event event = held ? Event(JobHeld{job.record.name}) : Event(JobResumed{job.record.name});
    Handle(lane, event, WallNow());
  });
}

void Service::Change(const std::string& name, const Changes& asked, Done done) {
  auto found = Active(name);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return done(*refusal);
  const JobEntry& job = *std::get<0>(found);
  const std::int64_t id = job.record.id;
  if (WaitsForWrite(id, [this, name, asked, done] { Change(name, asked, done); })) return;
  const bool limits = asked.min || asked.num || asked.max;
  if (limits && job.spec && job.spec->master) {
    return done(Conflict(name + " has a Master and runs at one size only"));
  }
  const JobRecord before = WithAsked(job.record);
  JobRecord record = before;
  Apply(asked, record);
  if (!asked.num) record.num = std::clamp(record.num, record.min, std::max(record.min, record.max));
  if (record.min < 1 || record.min > record.num || record.num > record.max || record.max > kMaxWorkers) {
    return done(Invalid(
        fmt::format("min {} <= num {} <= max {} does not hold; give numbers from 1 to {} in that order",
                    record.min, record.num, record.max, kMaxWorkers)));
  }
  Changes changes = asked;
  if (limits) changes.num = record.num;  // it follows the others
  Write(before, changes, std::move(done), [this, limits](JobEntry& entry, const JobRecord&) {
    const JobRecord& changed = entry.record;
    if (limits && entry.spec) {
      JobSpec spec = *entry.spec;
      spec.min = changed.min;
      spec.num = changed.num;
      spec.max = changed.max;
      entry.spec = std::make_shared<const JobSpec>(std::move(spec));
      cluster_.AddJob({changed.id, changed.name, changed.gpu_type, changed.token, *entry.spec, {}}, false);
    }
    Lane& lane = *FindLane(changed.gpu_type);
    JobChanged event{changed.name, changed.priority, std::nullopt};
    if (limits) {
      event.limits = {changed.min, changed.num, changed.max,
                      lane.collector.CurveFor(changed.category, *Curve::Linear(changed.min, changed.max))};
    }
    JsonWriter fields;
    fields.Field("priority", changed.priority).Field("min", changed.min).Field("max", changed.max);
    Publish("job.changed", lane, changed.name, fields.Take());
    Handle(lane, event, WallNow());
  });
}

}  // namespace voda
