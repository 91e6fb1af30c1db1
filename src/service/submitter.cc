#include "service/submitter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "api/auth.h"
#include "base/log.h"
#include "base/text.h"
#include "document/json_writer.h"
#include "service/estimates.h"
#include "service/job_names.h"

namespace voda {

namespace {

constexpr std::size_t kActiveJobsMax = 100'000;

std::string Plural(int count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

Answer<std::vector<JobRecord>> Submitter::Admit(const std::vector<JobSpec>& specs, double now) const {
  std::size_t active = specs.size();
  for (const auto& [gpu_type, pool] : parts_.pools.all()) active += pool.state().active.size();
  if (active > kActiveJobsMax) {
    return Refusal{
        429, "too_many",
        fmt::format("there are {} jobs that have not ended; at most {} are kept", active, kActiveJobsMax)};
  }
  std::vector<JobRecord> records;
  std::set<std::string> names;
  for (const JobSpec& spec : specs) {
    auto record = RecordFor(spec, {}, now);
    if (!record) return record.error();
    const std::string before = parts_.config.namespaces ? spec.name_space + "/" : std::string();
    record->name = before;
    record->name += UniqueJobName(spec.name, now, [&](const std::string& name) {
      return parts_.jobs.Taken(before + name) || names.contains(before + name);
    });
    names.insert(record->name);
    records.push_back(std::move(*record));
  }
  return records;
}

Answer<std::string> Submitter::TypeFor(const JobSpec& spec) const {
  if (!spec.gpu_type.empty()) return spec.gpu_type;
  std::set<std::string> types = parts_.nodes.Types();
  // Where jobs may name types freely, one that no node has yet is nobody's default.
  const auto& pools = parts_.pools.all();
  if (types.empty() && !parts_.config.reports_nodes && pools.size() == 1) types.insert(pools.begin()->first);
  if (types.size() == 1) return *types.begin();
  return Invalid(fmt::format(
      "{}: no GPU type is named and there {}; add the nodeSelector vodascheduler/accelerator to the worker "
      "template",
      spec.name, types.empty() ? "is no node yet" : fmt::format("are several ({})", fmt::join(types, ", "))));
}

Answer<JobRecord> Submitter::RecordFor(const JobSpec& spec, const std::string& gpu_type, double now) const {
  auto type = gpu_type.empty() ? TypeFor(spec) : Answer<std::string>(gpu_type);
  if (!type) return type.error();
  const Pool* pool = parts_.pools.Find(*type);
  if (pool == nullptr) {
    return Invalid(fmt::format("{}: nodeSelector vodascheduler/accelerator: {}", spec.name,
                               parts_.pools.NoSuchType(*type)));
  }
  const auto gpus = parts_.cluster.GpusPerWorker(spec, *type);
  if (!gpus) return Invalid(gpus.error().message);
  JobRecord record;
  record.gpu_type = *type;
  record.category = spec.category;
  record.kind = spec.kind;
  record.token = NewToken();
  record.priority = spec.priority;
  record.limits = spec.limits;
  record.gpus_per_worker = *gpus;
  record.submitted = now;
  record.total_epochs = spec.epochs;
  std::vector<std::string> warnings = spec.warnings;
  int room = 0;
  int room_of_all = 0;
  for (const Node& node : pool->state().world.nodes) {
    if (node.state == NodeState::kReady) room += node.gpus / *gpus;
    room_of_all += node.gpus / *gpus;
  }
  if (spec.limits.min > room) {
    warnings.push_back(fmt::format(
        "its minimum of {} workers with {} each does not fit the {} nodes there are (room for {}); it waits "
        "until nodes are {}",
        spec.limits.min, Plural(*gpus, "GPU"), *type, room,
        spec.limits.min > room_of_all ? "added" : "uncordoned or added"));
  }
  record.warnings = fmt::format("{}", fmt::join(warnings, "\n"));
  return record;
}

void Submitter::Submit(std::vector<JobSpec> specs, const std::optional<SubmissionKey>& key, double now,
                       const Done& done) {
  if (key) {
    // The first request with this key is still on its way: this one is answered after it.
    if (const auto first = accepting_.find(key->key); first != accepting_.end()) {
      first->second.push_back([this, specs = std::move(specs), key, now, done]() mutable {
        Submit(std::move(specs), key, now, done);
      });
      return;
    }
    const auto known = parts_.ledger.Find(key->key);
    if (!known) return done(Unavailable(known.error().message));
    if (*known && (*known)->body_hash != key->body_hash) {
      return done(
          Conflict("Idempotency-Key: the key was used with another body; use a new key for a new job"));
    }
    if (*known) {
      std::vector<std::int64_t> ids;
      for (const std::string& name : (*known)->jobs) {
        if (const JobEntry* job = parts_.jobs.Find(name)) ids.push_back(job->record.id);
      }
      return done(std::move(ids));
    }
  }
  if (const Status able = parts_.cluster.CanStart(); !able)
    return done(Unavailable("nothing was accepted: " + able.error().message));
  auto records = Admit(specs, now);
  if (!records) return done(records.error());
  DropWarningsTold(*records);
  std::vector<LedgerJob> jobs;
  Specs shared;
  for (std::size_t i = 0; i < records->size(); ++i) {
    JobRecord& record = (*records)[i];
    record.id = parts_.jobs.NewId();
    parts_.jobs.Reserve(record.name);
    shared.push_back(std::make_shared<const JobSpec>(std::move(specs[i])));
    jobs.push_back(
        {{record.id, record.name, record.gpu_type, record.token, shared.back()}, record.submitted, record});
  }
  if (key) accepting_[key->key];
  parts_.ledger.Accept(std::move(jobs), key,
                       [this, records = std::move(*records), specs = std::move(shared), key, now,
                        done](const std::optional<Refusal>& refused) mutable {
                         std::vector<std::function<void()>> waiting;
                         if (key) waiting = std::move(accepting_.extract(key->key).mapped());
                         if (refused) {
                           for (const JobRecord& record : records) {
                             parts_.jobs.Free(record.name);
                             parts_.events.WentEarly(record.name);
                           }
                           done(*refused);
                         } else {
                           done(StartAll(std::move(records), std::move(specs), now));
                         }
                         for (const auto& again : waiting) again();
                       });
}

// What is ignored here is the same for most jobs: it is told once.
void Submitter::DropWarningsTold(std::vector<JobRecord>& records) {
  constexpr std::size_t kMostTold = 1000;
  if (told_ignored_.size() > kMostTold) told_ignored_.clear();
  for (JobRecord& record : records) {
    std::vector<std::string> kept;
    for (const std::string_view line : SplitEnded(record.warnings)) {
      if (!line.starts_with(kIgnoredHere) || told_ignored_.emplace(line).second) kept.emplace_back(line);
    }
    record.warnings = fmt::format("{}", fmt::join(kept, "\n"));
  }
}

std::vector<std::int64_t> Submitter::StartAll(std::vector<JobRecord> records, Specs specs, double now) {
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::string name = records[i].name;
    ids.push_back(records[i].id);
    Start(std::move(records[i]), std::move(specs[i]), now);
    if (parts_.events.WentEarly(name)) parts_.events.Gone(name, now);
  }
  return ids;
}

std::string Submitter::CsvPath(const JobRecord& record) const {
  const ServiceConfig& config = parts_.config;
  if (!config.jobs_folder.empty())
    return fmt::format("{}/{}/metrics/{}.csv", config.jobs_folder, record.id, record.name);
  return config.csv_folder.empty() ? std::string() : fmt::format("{}/{}.csv", config.csv_folder, record.name);
}

void Submitter::Start(JobRecord record, std::shared_ptr<const JobSpec> spec, double now) {
  record.status = JobStatus::kWaiting;
  parts_.history.Put(record);
  parts_.history.PutDocument(record.id, spec->document);
  Pool& pool = parts_.pools.At(record.gpu_type);
  JobEntry& job = parts_.jobs.Add(std::move(record));
  job.spec = std::move(spec);
  const auto& [min, num, max] = job.record.limits;
  const std::string& name = job.record.name;
  if (std::string path = CsvPath(job.record); !path.empty())
    job.csv = std::make_shared<ProgressFile>(std::move(path));
  parts_.cluster.AddJob(Accepted(job), false);
  parts_.metrics.Add(Series::kJobsCreated, {pool.gpu_type});
  Log(LogLevel::kInfo, "job.submitted",
      {{"job", name}, {"gpu_type", pool.gpu_type}, {"min", min}, {"max", max}});
  JsonWriter fields;
  fields.Field("min", min).Field("num", num).Field("max", max);
  parts_.announcer.Publish("job.submitted", pool.gpu_type, name, fields.Take());
  parts_.ledger.Tell(name, {"Queued",
                            fmt::format("Voda schedules this job among the {} GPUs with {}: {} to {} workers",
                                        pool.gpu_type, pool.algorithm, min, max),
                            false});
  JobArrived arrived;
  arrived.job = JobFor(pool, job.record, job.spec->preemptible);
  arrived.category = job.record.category;
  parts_.events.Handle(pool, arrived, now);
}

}  // namespace voda
