#include "service/views.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/clock.h"
#include "base/duration.h"
#include "base/text.h"
#include "document/json_writer.h"
#include "model/guess.h"
#include "service/estimates.h"

namespace voda {

namespace {

constexpr int kSizesShown = 256;

// What the scheduler knows of a job that has not ended.
struct Seen {
  const ActiveJob* active = nullptr;  // null: nothing
  const Job* job = nullptr;
};

Seen SeenOf(const JobRecord& record, const Pool* pool) {
  if (record.ended || pool == nullptr) return {};
  const State& state = pool->state();
  const JobIndex index = FindJob(state, record.name);
  if (index == kNoJob) return {};
  return {&state.active[index], &state.world.job(index)};
}

struct Totals {
  double waiting = 0;
  double running = 0;
  double gpu = 0;
};

// As of now, also for a job that nothing has happened to for long.
Totals TotalsOf(const JobRecord& record, const Seen& seen, double now) {
  if (seen.active == nullptr) return {record.waited, record.ran, record.gpu_seconds};
  const ActiveJob& active = *seen.active;
  const double since = std::max(0.0, now - active.accrued_at);
  Totals totals{active.waited, active.ran, active.gpu_seconds};
  if (active.observed.empty()) {
    totals.waiting += since;
  } else {
    totals.running += since;
    totals.gpu += since * seen.job->gpus(static_cast<int>(active.observed.size()));
  }
  return totals;
}

// After a restart under an earlier clock, what was counted says more than the clock.
double TotalSeconds(const JobRecord& record, const Totals& totals, double now) {
  return std::max(record.ended.value_or(now) - record.submitted, totals.waiting + totals.running);
}

// Seconds until it is done at the size it has, by what is known or guessed.
std::optional<double> RemainingAtSize(const Seen& seen) {
  if (seen.active == nullptr) return {};
  const auto& observed = seen.active->observed;
  if (observed.empty()) return {};
  const int at = seen.job->curve->FloorIndex(static_cast<int>(observed.size()));
  return at < 0 ? std::optional<double>() : seen.job->remaining_seconds / seen.job->curve->speedup(at);
}

void WriteNode(JsonWriter& out, const NodeEntry& node, const Pool* pool) {
  const DeclaredNode& declared = node.declared;
  std::map<std::string, int> workers;
  int used = 0;
  if (pool != nullptr) {
    const State& state = pool->state();
    const auto at = state.node_index.find(declared.name);
    for (const JobIndex i : state.active.indices()) {
      for (const NodeIndex seat : state.active[i].observed) {
        if (at == state.node_index.end() || seat != at->second) continue;
        ++workers[state.world.jobs[i].name];
        used += state.world.jobs[i].gpus_per_worker;
      }
    }
  }
  out.Object()
      .Field("name", declared.name)
      .Field("gpu_type", declared.gpu_type)
      .Field("gpus", declared.gpus)
      .Field("used", used)
      .Field("state", ShownName(node.state))
      .Key("devices")
      .Array();
  for (const int device : declared.devices) out.Value(device);
  out.EndArray().Key("jobs").Array();
  for (const auto& [name, count] : workers) out.Object().Field("name", name).Field("workers", count).End();
  out.EndArray().End();
}

bool Matches(const JobFilter& filter, const JobRecord& record) {
  const auto& statuses = filter.statuses;
  return (filter.gpu_type.empty() || record.gpu_type == filter.gpu_type) &&
         (filter.category.empty() || record.category == filter.category) &&
         record.name.starts_with(filter.name_prefix) &&
         (statuses.empty() || std::find(statuses.begin(), statuses.end(), record.status) != statuses.end());
}

}  // namespace

template <class Read>
auto Views::Timed(const Read& read) const {
  const double began = SteadyWallNow();
  auto result = read();
  metrics_.Observe(Series::kStoreReadDuration, SteadyWallNow() - began);
  if (!result) metrics_.Add(Series::kStoreErrors);
  return result;
}

void Views::WriteJob(JsonWriter& out, const JobEntry& job, double now) const {
  const JobRecord& record = job.record;
  const Seen seen = SeenOf(record, pools_.Find(record.gpu_type));
  const Totals totals = TotalsOf(record, seen, now);
  out.Field("id", record.id)
      .Field("name", record.name)
      .Field("category", record.category)
      .Field("kind", Name(record.kind))
      .Field("gpu_type", record.gpu_type)
      .Field("status", Name(record.status))
      .Field("held", record.held)
      .Field("priority", record.priority)
      .Field("min", record.limits.min)
      .Field("num", record.limits.num)
      .Field("max", record.limits.max)
      .Field("gpus_per_worker", record.gpus_per_worker)
      .Field("workers", job.nodes.size())
      .Field("planned", seen.active == nullptr ? std::size_t{0} : seen.active->desired.size())
      .Key("nodes")
      .Array();
  for (const std::string& node : job.nodes) out.Value(node);
  out.EndArray()
      .Field("submitted", record.submitted)
      .Field("first_started", record.first_started)
      .Field("ended", record.ended)
      .Field("waiting_seconds", totals.waiting)
      .Field("running_seconds", totals.running)
      .Field("total_seconds", TotalSeconds(record, totals, now))
      .Field("gpu_seconds", totals.gpu)
      .Key("progress");
  if (record.progress_time) {
    const double fraction = record.total_epochs > 0
                                ? std::min(1.0, (record.epoch + job.progress.partly()) / record.total_epochs)
                                : 0;
    out.Object()
        .Field("epoch", record.epoch)
        .Field("total_epochs", record.total_epochs)
        .Field("fraction", fraction)
        .Field("loss", record.loss)
        .Field("updated", record.progress_time)
        .End();
  } else {
    out.Null();
  }
  out.Field("remaining_seconds", RemainingAtSize(seen))
      .Field("estimate",
             seen.job == nullptr ? std::optional<std::string_view>() : Name(EstimateOf(*seen.job)))
      .Field("starts", record.starts)
      .Field("failures", record.failures)
      .Field("exit_code", record.exit_code == kNoExitCode ? std::optional<std::int64_t>() : record.exit_code)
      .Field("message", record.message)
      .Key("warnings")
      .Array();
  for (const std::string_view line : SplitEnded(record.warnings)) out.Value(line);
  out.EndArray();
}

void Views::WriteDetails(JsonWriter& out, const JobEntry& job) const {
  out.Key("sizes").Array();
  if (const auto sizes = history_.Sizes(job.record.id)) {
    for (const SizeRecord& size : *sizes) WriteSize(out, size);
  }
  out.EndArray().Key("speedup").Object();
  const voda::Job* seen = SeenOf(job.record, pools_.Find(job.record.gpu_type)).job;
  for (int i = 0; seen != nullptr && i < std::min(seen->curve->count(), kSizesShown); ++i)
    out.Field(std::to_string(seen->curve->size(i)), seen->curve->speedup(i));
  out.End().Key("measured").Array();
  if (seen != nullptr && seen->measured) {
    for (const int size : *seen->measured) out.Value(size);
  }
  out.EndArray().Key("document");
  const auto document = history_.Document(job.record.id);
  document&&* document && !(*document)->empty() ? out.Raw(**document) : out.Null();
}

Answer<std::string> Views::Job(const std::string& name, double now) const {
  const JobEntry* job = jobs_.Find(name);
  if (job == nullptr) return NoJob(name);
  JsonWriter out;
  out.Object();
  WriteJob(out, *job, now);
  WriteDetails(out, *job);
  return out.End().Take();
}

std::string Views::Jobs(const JobFilter& filter, double now) const {
  JsonWriter out;
  out.Object().Key("jobs").Array();
  int written = 0;
  std::optional<std::int64_t> last, next;
  const auto& jobs = jobs_.all();
  for (auto at = jobs.upper_bound(filter.after); at != jobs.end(); ++at) {
    if (!Matches(filter, at->second.record)) continue;
    if (written == filter.limit) {
      next = last;
      break;
    }
    out.Object();
    WriteJob(out, at->second, now);
    out.End();
    ++written;
    last = at->first;
  }
  return out.EndArray().Field("next", next).End().Take();
}

std::string Views::JobTable(double now, const std::string& gpu_type) const {
  using Row = std::array<std::string, 7>;
  std::vector<Row> rows = {{"NAME", "STATUS", "WORKERS", "SCHEDULER", "WAITING", "RUNNING", "TOTAL"}};
  for (const auto& [id, job] : jobs_.all()) {
    const JobRecord& record = job.record;
    if (!gpu_type.empty() && record.gpu_type != gpu_type) continue;
    const Totals totals = TotalsOf(record, SeenOf(record, pools_.Find(record.gpu_type)), now);
    rows.push_back({record.name, std::string(Name(record.status)), std::to_string(job.nodes.size()),
                    record.gpu_type, GoDuration(totals.waiting), GoDuration(totals.running),
                    GoDuration(TotalSeconds(record, totals, now))});
  }
  std::array<std::size_t, 7> widths = {60, 10, 10, 10, 10, 10, 10};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      table += fmt::format("{:<{}}{}", row[i], widths[i], i + 1 == row.size() ? "\n" : " ");
  }
  return table;
}

std::string Views::Nodes() const {
  JsonWriter out;
  out.Object().Key("nodes").Array();
  for (const auto& [name, node] : nodes_.all()) WriteNode(out, node, pools_.Find(node.declared.gpu_type));
  return out.EndArray().End().Take();
}

Answer<std::string> Views::Node(const std::string& name) const {
  const auto at = nodes_.all().find(name);
  if (at == nodes_.all().end()) return NotFound(fmt::format("no node is named \"{:.80}\"", name));
  JsonWriter out;
  WriteNode(out, at->second, pools_.Find(at->second.declared.gpu_type));
  return out.Take();
}

Answer<std::string> Views::Rounds(const std::string& gpu_type, std::int64_t before, int limit) const {
  const auto rounds = Timed([&] { return history_.Rounds(gpu_type, before, limit); });
  if (!rounds) return Unavailable(rounds.error().message);
  JsonWriter out;
  out.Object().Key("rounds").Array();
  for (const RoundRecord& round : *rounds) {
    out.Object()
        .Field("gpu_type", round.gpu_type)
        .Field("round", round.round)
        .Field("time", round.time)
        .Field("algorithm", round.algorithm)
        .Field("trigger", round.trigger)
        .Field("seconds", round.seconds)
        .Field("note", round.note)
        .Key("changes")
        .Raw(round.changes)
        .End();
  }
  return out.EndArray().End().Take();
}

Answer<std::string> Views::Settings(const std::string& gpu_type) const {
  const auto& pools = pools_.all();
  const Pool* pool = gpu_type.empty() && !pools.empty() ? &pools.begin()->second : pools_.Find(gpu_type);
  if (pool == nullptr) return NotFound("gpu_type: " + pools_.NoSuchType(gpu_type));
  JsonWriter out;
  out.Object().Field("gpu_type", pool->gpu_type).Field("algorithm", pool->algorithm).Key("options").Object();
  for (const auto& [key, value] : pool->options) out.Field(key, value);
  return out.End().Field("rate_limit_seconds", pool->state().config.rate_limit).End().Take();
}

std::string Views::Info(double now) const {
  int gpus = 0;
  int used = 0;
  for (const auto& [name, node] : nodes_.all()) gpus += node.declared.gpus;
  std::map<std::string_view, int> statuses;
  for (const auto& [id, job] : jobs_.all()) {
    ++statuses[Name(job.record.status)];
    used += static_cast<int>(job.nodes.size()) * job.record.gpus_per_worker;
  }
  JsonWriter out;
  out.Object().Field("version", config_.version).Field("cluster", "local").Key("gpu_types").Array();
  for (const std::string& type : pools_.Types()) out.Value(type);
  out.EndArray()
      .Field("gpus", gpus)
      .Field("gpus_used", used)
      .Field("started", started_)
      .Field("now", now)
      .Key("jobs")
      .Object();
  for (const auto& [status, count] : statuses) out.Field(status, count);
  return out.End().End().Take();
}

Views::Asked Views::AskExplain(const std::string& name, double now) const {
  const JobEntry* job = jobs_.Find(name);
  if (job == nullptr) return NoJob(name);
  auto question = std::make_shared<ExplainQuestion>();
  question->job = name;
  question->status = job->record.status;
  question->held = job->record.held;
  question->message = job->record.message;
  question->stuck = job->stuck;
  if (const auto sizes = history_.Sizes(job->record.id); sizes && !sizes->empty())
    question->last_change = sizes->back();
  if (config_.namespaces) question->name_space = name.substr(0, name.find('/'));
  const Pool* pool = pools_.Find(job->record.gpu_type);
  if (pool != nullptr) question->index = FindJob(pool->state(), name);
  if (question->index != kNoJob) question->decider = DeciderOf(*pool, now);
  return Asked(std::move(question));
}

Views::Asked Views::AskPlan(const std::string& gpu_type, double now) const {
  const auto& pools = pools_.all();
  const Pool* pool = gpu_type.empty() && pools.size() == 1 ? &pools.begin()->second : pools_.Find(gpu_type);
  if (pool == nullptr) {
    return gpu_type.empty()
               ? Invalid(fmt::format("gpu_type: give one of {}", fmt::join(pools_.Types(), ", ")))
               : NotFound("gpu_type: " + pools_.NoSuchType(gpu_type));
  }
  auto question = std::make_shared<PlanQuestion>();
  question->gpu_type = pool->gpu_type;
  question->algorithm = pool->algorithm;
  question->last_round = pool->last_round;
  question->decider = DeciderOf(*pool, now);
  return Asked(std::move(question));
}

Views::Asked Views::AskDryRun(const std::vector<JobSpec>& specs, const Submitter& submitter,
                              double now) const {
  auto admitted = submitter.Admit(specs, now);
  if (!admitted) return admitted.error();
  auto question = std::make_shared<DryRunQuestion>();
  question->by_namespace = config_.namespaces;
  std::map<std::string, std::shared_ptr<const Decider>> deciders;  // by GPU type
  for (std::size_t i = 0; i < specs.size(); ++i) {
    JobEntry entry;
    entry.record = std::move((*admitted)[i]);
    const Pool& pool = *pools_.Find(entry.record.gpu_type);
    auto& decider = deciders[pool.gpu_type];
    if (!decider) decider = DeciderOf(pool, now);
    JsonWriter fields;
    WriteJob(fields, entry, now);
    question->submissions.push_back(
        {JobFor(pool, entry.record, specs[i].preemptible), fields.Take(), decider});
  }
  return Asked(std::move(question));
}

}  // namespace voda
