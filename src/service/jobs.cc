// Jobs: submission; nodes and settings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/auth.h"
#include "base/log.h"
#include "codec/json_writer.h"
#include "service/job_names.h"
#include "service/kept_state.h"
#include "service/service.h"

namespace voda {

namespace {

constexpr const char* kOtherBody =
    "Idempotency-Key: the key was used with another body; use a new key for a new job";

constexpr int kActiveJobsMax = 100'000;
constexpr int kNodesMax = 10'000;
constexpr int kNodeGpusMax = 1024;
constexpr double kRateLimitMax = 86400;

std::string Listed(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

bool ValidNodeName(const std::string& name) {
  if (name.empty() || name.size() > 253) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           (c >= 'A' && c <= 'Z');
  });
}

std::string JoinLines(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string JoinIds(const std::vector<std::int64_t>& ids) {
  return fmt::format("{}", fmt::join(ids, ","));
}

std::vector<std::int64_t> SplitIds(std::string_view text) {
  std::vector<std::int64_t> ids;
  while (!text.empty()) {
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
    if (error != std::errc()) break;
    ids.push_back(id);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (!text.empty()) text.remove_prefix(1);
  }
  return ids;
}

}  // namespace

std::vector<std::string> Service::GpuTypes() const {
  std::vector<std::string> types;
  for (const auto& [gpu_type, lane] : lanes_) types.push_back(gpu_type);
  return types;
}

std::set<std::string> Service::TypesWithNodes() const {
  std::set<std::string> types;
  for (const auto& [name, node] : nodes_) types.insert(node.declared.gpu_type);
  return types;
}

Answer<std::vector<JobRecord>> Service::Admit(const std::vector<JobSpec>& specs, double now) {
  std::size_t active = specs.size();
  for (const auto& [gpu_type, lane] : lanes_) active += lane.scheduler->state().active.size();
  if (active > kActiveJobsMax) {
    return Refusal{
        429, "too_many",
        fmt::format("there are {} jobs that have not ended; at most {} are kept", active, kActiveJobsMax)};
  }
  std::vector<JobRecord> records;
  std::set<std::string> names;
  for (const JobSpec& spec : specs) {
    auto made = RecordFor(spec, now);
    if (const auto* refusal = std::get_if<Refusal>(&made)) return *refusal;
    JobRecord& record = std::get<0>(made);
    const std::string before = cluster_.KeepsJobs() ? spec.name_space + "/" : std::string();
    const auto taken = [&](const std::string& name) {
      const std::string whole = before + name;
      return by_name_.contains(whole) || names.contains(whole);
    };
    record.name = before + UniqueJobName(spec.name, now, taken);
    names.insert(record.name);
    records.push_back(std::move(record));
  }
  return records;
}

Answer<JobRecord> Service::RecordFor(const JobSpec& spec, double now) const {
  JobRecord record;
  record.gpu_type = spec.gpu_type;
  if (record.gpu_type.empty()) {
    // Where jobs may name types freely, one that no node has yet is nobody's default.
    std::set<std::string> types = TypesWithNodes();
    if (types.empty() && !cluster_.KeepsJobs() && lanes_.size() == 1) types.insert(lanes_.begin()->first);
    if (types.size() != 1) {
      return Invalid(fmt::format(
          "{}: no GPU type is named and there {}; add the nodeSelector vodascheduler/accelerator "
          "to the worker template",
          spec.name,
          types.empty() ? "is no node yet" : fmt::format("are several ({})", fmt::join(types, ", "))));
    }
    record.gpu_type = *types.begin();
  }
  const Lane* lane = FindLane(record.gpu_type);
  if (lane == nullptr) {
    return Invalid(fmt::format(
        "{}: nodeSelector vodascheduler/accelerator: \"{}\" is not a GPU type of this cluster; there is {}",
        spec.name, record.gpu_type, lanes_.empty() ? "no node yet" : Listed(GpuTypes())));
  }
  record.category = spec.category;
  record.kind = std::string(Name(spec.kind));
  record.document = spec.document;
  record.token = NewToken();
  record.priority = spec.priority;
  record.min = spec.min;
  record.num = spec.num;
  record.max = spec.max;
  const auto gpus = cluster_.GpusPerWorker(spec, record.gpu_type);
  if (!gpus) return Invalid(gpus.error().message);
  record.gpus_per_worker = *gpus;
  record.submitted = now;
  record.total_epochs = spec.epochs;
  std::vector<std::string> warnings = spec.warnings;
  int most = 0;
  for (const Node& node : lane->scheduler->state().world.nodes) {
    if (node.state == NodeState::kReady) most += node.gpus / record.gpus_per_worker;
  }
  if (spec.min > most) {
    warnings.push_back(fmt::format(
        "its minimum of {} workers with {} GPU{} each does not fit the {} nodes there are (room for {}); "
        "it waits until "
        "nodes are added",
        spec.min, record.gpus_per_worker, record.gpus_per_worker == 1 ? "" : "s", record.gpu_type, most));
  }
  record.warnings = JoinLines(warnings);
  return record;
}

void Service::Submit(std::vector<JobSpec> specs, std::optional<Idempotency> idempotency, double now,
                     const Done& done) {
  if (idempotency) {
    auto known = database_.Idempotency(idempotency->key);
    if (!known) return done(Unavailable(known.error().message));
    if (*known) {
      if ((*known)->body_hash != idempotency->body_hash) {
        return done(Conflict(kOtherBody));
      }
      // Its own commit may still be ahead: answer after it.
      Writing();
      return OnCommit([ids = SplitIds((*known)->body), done](const std::optional<Refusal>& failed) {
        failed ? done(*failed) : done(ids);
      });
    }
  }
  if (idempotency) {
    // The first request with this key is still on its way: this one is answered after it.
    const auto [at, first] = accepting_.try_emplace(idempotency->key);
    if (!first) {
      at->second.push_back([this, specs = std::move(specs), idempotency, now, done]() mutable {
        Submit(std::move(specs), idempotency, now, done);
      });
      return;
    }
  }
  // What an earlier run made of it stays, and the rest is made now.
  std::map<std::size_t, std::int64_t> made;  // by the place in the request
  if (const auto* known = idempotency ? submissions_.Find(idempotency->key) : nullptr) {
    if (known->body_hash != idempotency->body_hash) {
      accepting_.erase(idempotency->key);
      return done(Conflict(kOtherBody));
    }
    for (const auto& [place, name] : known->jobs) {
      if (const auto at = by_name_.find(name); at != by_name_.end() && at->second != 0)
        made[place] = at->second;
    }
  }
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < specs.size(); ++place) {
    if (made.contains(place)) continue;
    if (places.size() < place) specs[places.size()] = std::move(specs[place]);
    places.push_back(place);
  }
  specs.resize(places.size());
  const auto answer = [this, idempotency, made, places, done](Answer<std::vector<std::int64_t>> ids) {
    std::vector<std::function<void()>> waiting;
    if (idempotency) waiting = std::move(accepting_.extract(idempotency->key).mapped());
    if (auto* now_made = std::get_if<0>(&ids)) {
      std::map<std::size_t, std::int64_t> all = made;
      for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = (*now_made)[i];
      now_made->clear();
      for (const auto& [place, id] : all) now_made->push_back(id);
    }
    done(std::move(ids));
    for (const auto& again : waiting) again();
  };
  if (specs.empty()) return answer(std::vector<std::int64_t>());
  auto admitted = Admit(specs, now);
  if (const auto* refusal = std::get_if<Refusal>(&admitted)) return answer(*refusal);
  auto records = std::move(std::get<0>(admitted));
  std::vector<ClusterJob> jobs;
  for (std::size_t i = 0; i < records.size(); ++i) {
    by_name_.emplace(records[i].name, 0);
    jobs.push_back({0, records[i].name, records[i].gpu_type, records[i].token, specs[i],
                    cluster_.KeepsJobs() ? WriteKeptState(records[i]) : std::string(),
                    idempotency ? Submissions::Text(idempotency->key, idempotency->body_hash, places[i])
                                : std::string()});
  }
  cluster_.Accept(jobs, [this, records = std::move(records), specs = std::move(specs), idempotency, made,
                         places, now, answer](const std::optional<Refusal>& refused) mutable {
    if (refused) {
      for (const JobRecord& record : records) by_name_.erase(record.name);
      return answer(*refused);
    }
    if (made.empty()) return Insert(std::move(records), std::move(specs), idempotency, now, answer);
    for (std::size_t i = 0; i < records.size(); ++i) {
      submissions_.Add(Submissions::Text(idempotency->key, idempotency->body_hash, places[i]),
                       records[i].name);
    }
    Insert(std::move(records), std::move(specs), std::nullopt, now, answer);
  });
}

void Service::Insert(std::vector<JobRecord> records, std::vector<JobSpec> specs,
                     const std::optional<Idempotency>& idempotency, double now, const Done& done) {
  std::vector<std::int64_t> ids;
  for (JobRecord& record : records) {
    record.id = Writing().InsertJob(record);
    ids.push_back(record.id);
    by_name_[record.name] = record.id;
  }
  if (idempotency) {
    Writing().PutIdempotency({idempotency->key, idempotency->body_hash, now, 201, "ids", JoinIds(ids)});
  }
  OnCommit([this, ids, records = std::move(records), specs = std::move(specs), now,
            done](const std::optional<Refusal>& failed) mutable {
    if (failed && !cluster_.KeepsJobs()) {
      for (const JobRecord& record : records) by_name_.erase(record.name);
      return done(*failed);
    }
    for (std::size_t i = 0; i < records.size(); ++i) {
      // The job is there whatever the store says; it has no history until the store takes it.
      if (failed) ids[i] = records[i].id = by_name_[records[i].name] = --unstored_;
      Start(ids[i], records[i], std::move(specs[i]), now);
      if (gone_early_.erase(records[i].name) > 0) Gone(records[i].name, now);
    }
    done(ids);
  });
}

void Service::Start(std::int64_t id, const JobRecord& record, JobSpec spec, double now) {
  Lane& lane = *FindLane(record.gpu_type);
  JobEntry& job = jobs_[id];
  job.record = record;
  job.record.status = "Waiting";
  job.record.document.clear();  // the store has it
  if (std::string path = CsvPath(record); !path.empty())
    job.csv = std::make_shared<ProgressFile>(std::move(path));
  job.spec = std::make_shared<const JobSpec>(std::move(spec));
  cluster_.AddJob({id, record.name, record.gpu_type, record.token, *job.spec, {}}, false);
  metrics_.Add(Series::kJobsCreated, {lane.gpu_type});
  Log(LogLevel::kInfo, "job.submitted",
      {{"job", record.name}, {"gpu_type", lane.gpu_type}, {"min", record.min}, {"max", record.max}});
  JsonWriter fields;
  fields.Field("min", record.min).Field("num", record.num).Field("max", record.max);
  Publish("job.submitted", lane, record.name, fields.Take());
  JobArrived arrived;
  arrived.job = JobFor(lane, job.record, *job.spec);
  arrived.category = record.category;
  arrived.anew = cluster_.KeepsJobs();
  cluster_.Say(record.name,
               {"Queued",
                fmt::format("Voda schedules this job among the {} GPUs with {}: {} to {} workers",
                            lane.gpu_type, lane.algorithm, record.min, record.max),
                false});
  Handle(lane, arrived, now);
}

Job Service::JobFor(const Lane& lane, const JobRecord& record, const JobSpec& spec) const {
  Job job;
  job.name = record.name;
  job.submit_time = record.submitted;
  job.min = record.min;
  job.num = record.num;
  job.max = record.max;
  job.gpus_per_worker = record.gpus_per_worker;
  job.priority = record.priority;
  job.preemptible = spec.preemptible;
  const auto shape = Curve::Linear(record.min, record.max);
  job.curve = lane.collector.CurveFor(record.category, *shape);
  job.measured = lane.collector.MeasuredOf(record.category);
  job.spans = lane.collector.SpansOf(record.category);
  const Stalls stalls = lane.collector.StallsOf(record.category);
  job.start_cost = stalls.start;
  job.rescale_cost = stalls.rescale;
  job.migration_cost = stalls.migration;
  job.remaining_seconds = RemainingWork(lane, record);
  job.total_seconds = job.remaining_seconds;
  return job;
}

Answer<std::string> Service::DryRun(const std::vector<JobSpec>& specs, double now) {
  auto admitted = Admit(specs, now);
  if (const auto* refusal = std::get_if<Refusal>(&admitted)) return *refusal;
  const auto& records = std::get<0>(admitted);
  JsonWriter out;
  out.Object().Key("jobs").Array();
  for (std::size_t i = 0; i < records.size(); ++i) {
    JobEntry entry;
    entry.record = records[i];
    entry.record.token.clear();
    // What a round would give it if it came now.
    const Lane& lane = *FindLane(records[i].gpu_type);
    State copy = lane.scheduler->state();
    Job job = JobFor(lane, records[i], specs[i]);
    int planned = 0;
    copy.world.now = now;
    ActiveJob active;
    active.id = static_cast<std::uint32_t>(copy.slot_of.size());
    copy.slot_of.push_back(static_cast<JobIndex>(copy.active.size()));
    copy.world.jobs.push_back(std::move(job));
    copy.active.push_back(std::move(active));
    const Plan plan = DecideNow(copy, lane.scheduler->policy());
    planned = plan.allocation.workers.back();
    const std::string reason = Describe(plan.allocation.reasons.back(), copy.world,
                                        static_cast<JobIndex>(copy.world.jobs.size()) - 1, planned);
    out.Object();
    WriteJob(out, entry, now, false);
    out.Field("would_get", planned).Field("because", ToldOf(records[i].name, reason)).End();
  }
  return out.EndArray().Field("dry_run", true).End().Take();
}

// What speaks against the request is not durable yet.
void Service::RefuseAfterCommit(const Refusal& refusal, NodeDone done) {
  OnCommit([refusal, done = std::move(done)](const std::optional<Refusal>& failed) {
    done(failed ? *failed : refusal);
  });
}

void Service::AddNode(const DeclaredNode& node, NodeDone done) {
  if (cluster_.KeepsJobs())
    return done(
        Conflict("nodes are those of the Kubernetes cluster: label a node with "
                 "vodascheduler/accelerator=TYPE to add it"));
  if (!ValidNodeName(node.name)) {
    return done(Invalid("name: give 1 to 253 letters, digits, '-', '.' or '_'"));
  }
  if (node.gpus < 1 || node.gpus > kNodeGpusMax) {
    return done(Invalid(fmt::format("gpus: {} is not from 1 to {}", node.gpus, kNodeGpusMax)));
  }
  if (!ValidNodeName(node.gpu_type) || node.gpu_type.size() > 63) {
    return done(Invalid("gpu_type: give at most 63 letters, digits, '-', '.' or '_'"));
  }
  const Refusal exists = Conflict("node " + node.name + " exists");
  if (adding_.contains(node.name)) return RefuseAfterCommit(exists, std::move(done));
  if (nodes_.contains(node.name)) return done(exists);
  if (nodes_.size() + adding_.size() >= kNodesMax)
    return done(Invalid(fmt::format("at most {} nodes", kNodesMax)));
  adding_.insert(node.name);
  Writing().PutNode({node.name, node.gpu_type, "ready", node.gpus, {}});
  OnCommit([this, node, done = std::move(done)](const std::optional<Refusal>& failed) {
    adding_.erase(node.name);
    if (failed) return done(failed);
    const auto lane = LaneFor(node.gpu_type);
    if (!lane) return done(Unavailable(lane.error().message));
    NodeEntry& entry = nodes_[node.name];
    entry = {node, "ready", true};
    TellScheduler(**lane, entry, true, WallNow());
    done(std::nullopt);
  });
}

void Service::RemoveNode(const std::string& name, NodeDone done) {
  if (cluster_.KeepsJobs())
    return done(
        Conflict("nodes are those of the Kubernetes cluster: take the label vodascheduler/accelerator away "
                 "from the node"));
  const Refusal none = NotFound(fmt::format("no node is named \"{:.80}\"", name));
  if (removing_.contains(name)) return RefuseAfterCommit(none, std::move(done));
  if (!nodes_.contains(name)) return done(none);
  removing_.insert(name);
  Writing().RemoveNode(name);
  OnCommit([this, name, done = std::move(done)](const std::optional<Refusal>& failed) {
    removing_.erase(name);
    if (failed) return done(failed);
    const auto node = nodes_.find(name);
    if (node != nodes_.end()) {
      Lane& lane = *FindLane(node->second.declared.gpu_type);
      nodes_.erase(node);
      Handle(lane, NodeRemoved{name}, WallNow());
      JsonWriter fields;
      fields.Field("node", name);
      Publish("node.removed", lane, {}, fields.Take());
    }
    done(std::nullopt);
  });
}

void Service::SetNodeState(const std::string& name, const std::string& state, NodeDone done) {
  if (cluster_.KeepsJobs())
    return done(Conflict("nodes are those of the Kubernetes cluster: use kubectl cordon, uncordon or drain"));
  const Refusal none = NotFound(fmt::format("no node is named \"{:.80}\"", name));
  if (removing_.contains(name)) return RefuseAfterCommit(none, std::move(done));
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return done(none);
  const DeclaredNode& node = at->second.declared;
  if (at->second.kept) {
    Writing().PutNode({node.name, node.gpu_type, state, node.gpus, {}});
  } else {
    Writing().PutSetting("node/" + name, state);
  }
  OnCommit([this, name, state, done = std::move(done)](const std::optional<Refusal>& failed) {
    if (failed) return done(failed);
    const auto entry = nodes_.find(name);
    if (entry != nodes_.end() && entry->second.state != state) {
      entry->second.state = state;
      TellScheduler(*FindLane(entry->second.declared.gpu_type), entry->second, false, WallNow());
    }
    done(std::nullopt);
  });
}

void Service::Set(const std::string& gpu_type, const Settings& settings, NodeDone done) {
  if (!gpu_type.empty() && FindLane(gpu_type) == nullptr) {
    return done(NotFound(fmt::format("gpu_type: \"{:.80}\" is not a GPU type of this cluster; there is {}",
                                     gpu_type, Listed(GpuTypes()))));
  }
  if (settings.rate_limit && !(*settings.rate_limit >= 0 && *settings.rate_limit <= kRateLimitMax)) {
    return done(Invalid(
        fmt::format("rate_limit_seconds: {} is not from 0 to {}", *settings.rate_limit, kRateLimitMax)));
  }
  std::vector<std::string> types = gpu_type.empty() ? GpuTypes() : std::vector<std::string>{gpu_type};
  // Everything is tried before anything is changed.
  struct Next {
    std::string gpu_type, algorithm;
    PolicyOptions options;
  };
  std::vector<Next> next;
  if (settings.algorithm || settings.options) {
    for (const std::string& type : types) {
      const Lane& lane = *FindLane(type);
      Next one{type, settings.algorithm.value_or(lane.algorithm), settings.options.value_or(PolicyOptions())};
      const auto policy = MakePolicy(one.algorithm, one.options);
      if (!policy) return done(Invalid(policy.error().message));
      next.push_back(std::move(one));
    }
  }
  std::map<std::string, std::string> kept;
  for (const Next& one : next) {
    std::string text = one.algorithm;
    for (const auto& [key, value] : one.options) text += fmt::format(" {}={}", key, value);
    kept["algorithm/" + one.gpu_type] = text;
  }
  if (settings.rate_limit) {
    for (const std::string& type : types) kept["ratelimit/" + type] = fmt::format("{}", *settings.rate_limit);
  }
  const auto apply = [this, types, next = std::move(next), rate_limit = settings.rate_limit,
                      done = std::move(done)](const std::optional<Refusal>& failed) {
    if (failed) return done(failed);
    for (const Next& one : next) {
      Lane& lane = *FindLane(one.gpu_type);
      auto timed = std::make_unique<TimedPolicy>(std::move(*MakePolicy(one.algorithm, one.options)));
      lane.policy = timed.get();
      lane.scheduler->SetPolicy(std::move(timed));
      metrics_.Remove(Series::kSchedulerInfo, {one.gpu_type, lane.algorithm});
      lane.algorithm = one.algorithm;
      lane.options = one.options;
    }
    for (const std::string& type : types) {
      Lane& lane = *FindLane(type);
      if (rate_limit) lane.scheduler->SetRateLimit(*rate_limit);
      Log(LogLevel::kInfo, "settings.changed",
          {{"gpu_type", type},
           {"algorithm", lane.algorithm},
           {"rate_limit", lane.scheduler->state().config.rate_limit}});
      JsonWriter fields;
      fields.Field("algorithm", lane.algorithm)
          .Field("rate_limit_seconds", lane.scheduler->state().config.rate_limit);
      Publish("settings.changed", lane, {}, fields.Take());
    }
    done(std::nullopt);
  };
  if (cluster_.KeepsJobs()) return cluster_.KeepSettings(kept, apply);
  Writing();
  for (const auto& [key, value] : kept) Writing().PutSetting(key, value);
  OnCommit(apply);
}

}  // namespace voda
