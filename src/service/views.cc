// What the API shows of the service's state.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "codec/json_writer.h"
#include "core/explain.h"
#include "service/duration_text.h"
#include "service/service.h"

namespace voda {

namespace {

void WriteSize(JsonWriter& out, const SizeRecord& size) {
  out.Object()
      .Field("time", size.time)
      .Field("round", size.round)
      .Field("from", size.from)
      .Field("to", size.to)
      .Field("reason", size.reason)
      .Field("trigger", size.trigger)
      .End();
}

void WriteSizes(JsonWriter& out, const std::vector<SizeRecord>& sizes) {
  out.Array();
  for (const SizeRecord& size : sizes) WriteSize(out, size);
  out.EndArray();
}

struct Totals {
  double waiting = 0;
  double running = 0;
  double gpu = 0;
};

// As of now, also for a job that nothing has happened to for long.
Totals TotalsOf(const JobEntry& job, const Lane* lane, double now) {
  Totals totals{job.record.waited, job.record.ran, job.record.gpu_seconds};
  if (job.record.ended || lane == nullptr) return totals;
  const State& state = lane->scheduler->state();
  const JobIndex index = FindJob(state, job.record.name);
  if (index == kNoJob) return totals;
  const ActiveJob& active = state.active[static_cast<std::size_t>(index)];
  const Job& observed = state.world.job(index);
  const double since = std::max(0.0, now - active.accrued_at);
  totals = {active.waited, active.ran, active.gpu_seconds};
  if (observed.workers.empty()) {
    totals.waiting += since;
  } else {
    totals.running += since;
    totals.gpu += since * observed.gpus(observed.held());
  }
  return totals;
}

// Seconds until it is done at the size it has; nothing while nothing is known.
std::optional<double> RemainingAtSize(const JobEntry& job, const Lane* lane) {
  if (job.record.ended || lane == nullptr || !job.record.progress_time || job.record.total_epochs == 0)
    return {};
  const State& state = lane->scheduler->state();
  const JobIndex index = FindJob(state, job.record.name);
  if (index == kNoJob) return {};
  const Job& observed = state.world.job(index);
  if (observed.workers.empty()) return {};
  const int at = observed.curve->FloorIndex(observed.held());
  return at < 0 ? std::optional<double>() : observed.remaining_seconds / observed.curve->speedup(at);
}

}  // namespace

const JobEntry* Service::Find(std::string_view name) const {
  const auto at = by_name_.find(std::string(name));
  return at == by_name_.end() ? nullptr : Find(at->second);
}

const JobEntry* Service::Find(std::int64_t id) const {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : &at->second;
}

void Service::WriteJob(JsonWriter& out, const JobEntry& job, double now, bool full) const {
  const JobRecord& record = job.record;
  const Lane* lane = FindLane(record.gpu_type);
  const Totals totals = TotalsOf(job, lane, now);
  int planned = 0;
  const Job* observed = nullptr;
  if (lane != nullptr) {
    const State& state = lane->scheduler->state();
    if (const JobIndex index = FindJob(state, record.name); index != kNoJob) {
      planned = static_cast<int>(state.active[static_cast<std::size_t>(index)].desired.size());
      observed = &state.world.job(index);
    }
  }
  out.Field("id", record.id)
      .Field("name", record.name)
      .Field("category", record.category)
      .Field("kind", record.kind)
      .Field("gpu_type", record.gpu_type)
      .Field("status", record.status)
      .Field("held", record.held)
      .Field("priority", record.priority)
      .Field("min", record.min)
      .Field("num", record.num)
      .Field("max", record.max)
      .Field("gpus_per_worker", record.gpus_per_worker)
      .Field("workers", job.nodes.size())
      .Field("planned", planned)
      .Key("nodes")
      .Array();
  for (const std::string& node : job.nodes) out.Value(node);
  out.EndArray()
      .Field("submitted", record.submitted)
      .Field("first_started", record.first_started)
      .Field("ended", record.ended)
      .Field("waiting_seconds", totals.waiting)
      .Field("running_seconds", totals.running)
      .Field("total_seconds", record.ended.value_or(std::max(now, record.submitted)) - record.submitted)
      .Field("gpu_seconds", totals.gpu);
  out.Key("progress");
  if (record.progress_time) {
    const double fraction =
        record.total_epochs > 0 ? std::min(1.0, (record.epoch + job.partly) / record.total_epochs) : 0;
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
  out.Field("remaining_seconds", RemainingAtSize(job, lane))
      .Field("starts", record.starts)
      .Field("failures", record.failures)
      .Field("message", record.message)
      .Key("warnings")
      .Array();
  for (std::string_view rest = record.warnings; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    out.Value(line);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  out.EndArray();
  if (!full) return;
  out.Key("sizes");
  const auto sizes = database_.Sizes(record.id);
  WriteSizes(out, sizes ? *sizes : std::vector<SizeRecord>());
  out.Key("speedup").Object();
  constexpr int kSizesShown = 256;
  if (observed != nullptr) {
    for (int i = 0; i < std::min(observed->curve->count(), kSizesShown); ++i) {
      out.Field(std::to_string(observed->curve->size(i)), observed->curve->speedup(i));
    }
  }
  out.End().Key("measured").Array();
  if (observed != nullptr && observed->measured) {
    for (const int size : *observed->measured) out.Value(size);
  }
  out.EndArray().Key("document");
  const auto stored = database_.Job(record.name);
  stored&&* stored && !(*stored)->document.empty() ? out.Raw((*stored)->document) : out.Null();
}

Answer<std::string> Service::JobJson(const std::string& name, double now) const {
  const JobEntry* job = Find(name);
  if (job == nullptr)
    return NotFound(fmt::format("no job is named \"{:.80}\"; `voda get jobs` lists them", name));
  JsonWriter out;
  out.Object();
  WriteJob(out, *job, now, true);
  return out.End().Take();
}

std::string Service::JobsJson(const JobFilter& filter, double now) const {
  JsonWriter out;
  out.Object().Key("jobs").Array();
  int written = 0;
  std::optional<std::int64_t> last, next;
  for (auto at = jobs_.upper_bound(filter.after); at != jobs_.end(); ++at) {
    const JobRecord& record = at->second.record;
    if (!filter.gpu_type.empty() && record.gpu_type != filter.gpu_type) continue;
    if (!filter.category.empty() && record.category != filter.category) continue;
    if (record.name.compare(0, filter.name_prefix.size(), filter.name_prefix) != 0) continue;
    if (!filter.statuses.empty() &&
        std::find(filter.statuses.begin(), filter.statuses.end(), record.status) == filter.statuses.end())
      continue;
    if (written == filter.limit) {
      next = last;
      break;
    }
    out.Object();
    WriteJob(out, at->second, now, false);
    out.End();
    ++written;
    last = at->first;
  }
  return out.EndArray().Field("next", next).End().Take();
}

std::string Service::JobTable(double now, const std::string& gpu_type) const {
  constexpr const char* kRow = "{:<60} {:<10} {:<10} {:<10} {:<10} {:<10} {:<10}\n";
  std::string table =
      fmt::format(kRow, "NAME", "STATUS", "WORKERS", "SCHEDULER", "WAITING", "RUNNING", "TOTAL");
  for (const auto& [id, job] : jobs_) {
    if (!gpu_type.empty() && job.record.gpu_type != gpu_type) continue;
    const Totals totals = TotalsOf(job, FindLane(job.record.gpu_type), now);
    const double total =
        job.record.ended.value_or(std::max(now, job.record.submitted)) - job.record.submitted;
    table += fmt::format(kRow, job.record.name, job.record.status, job.nodes.size(), job.record.gpu_type,
                         DurationText(totals.waiting), DurationText(totals.running), DurationText(total));
  }
  return table;
}

Answer<std::string> Service::ExplainJson(const std::string& name, std::optional<double> expected_start,
                                         double now) const {
  const JobEntry* job = Find(name);
  if (job == nullptr)
    return NotFound(fmt::format("no job is named \"{:.80}\"; `voda get jobs` lists them", name));
  const Lane* lane = FindLane(job->record.gpu_type);
  JsonWriter out;
  out.Object().Field("job", name).Field("status", job->record.status).Field("held", job->record.held);
  const auto sizes = database_.Sizes(job->record.id);
  const auto write_change = [&] {
    out.Key("last_change");
    if (!sizes || sizes->empty()) {
      out.Null();
      return;
    }
    WriteSize(out, sizes->back());
  };
  const State* state = lane == nullptr ? nullptr : &lane->scheduler->state();
  const JobIndex index = state == nullptr ? kNoJob : FindJob(*state, name);
  if (index == kNoJob) {
    const std::string text = job->record.message.empty() ? "it has ended" : job->record.message;
    out.Field("workers", 0)
        .Field("planned", 0)
        .Field("position", 0)
        .Field("waiting", 0)
        .Field("code", "ended");
    out.Field("text", text).Field("needs_gpus", 0).Field("free_gpus", 0).Key("ahead").Array().EndArray();
    out.Key("expected_start").Null();
    write_change();
    return out.Key("next_round").Null().End().Take();
  }

  // The decision made again on the state as it is.
  State copy = *state;
  AccrueAll(copy, now);
  copy.world.now = now;
  const Plan plan = DecideNow(copy, lane->scheduler->policy());
  const auto& order = plan.allocation.order;
  const Reason& reason = plan.allocation.reasons[static_cast<std::size_t>(index)];
  const int planned = plan.allocation.workers[static_cast<std::size_t>(index)];
  const auto at = std::find(order.begin(), order.end(), index);
  const Job& observed = state->world.job(index);
  int waiting = 0;
  int used = 0;
  for (const Job& other : copy.world.jobs) {
    waiting += other.workers.empty() && other.aside == Aside::kNo ? 1 : 0;
    for (const NodeIndex node : other.workers) used += node == kNoNode ? 0 : other.gpus_per_worker;
  }
  out.Field("workers", observed.held())
      .Field("planned", planned)
      .Field("position", at == order.end() ? 0 : static_cast<int>(at - order.begin()) + 1)
      .Field("waiting", waiting)
      .Field("code", Name(reason.code))
      .Field("text", ToldOf(name, Describe(reason, copy.world, index, planned)))
      .Field("needs_gpus", observed.gpus(observed.workers.empty() ? observed.min : observed.held()))
      .Field("free_gpus", std::max(0, Capacity(copy.world) - used))
      .Key("ahead")
      .Array();
  constexpr int kAheadShown = 10;
  int shown = 0;
  for (auto ahead = order.begin(); ahead != at && ahead != order.end() && shown < kAheadShown;
       ++ahead, ++shown) {
    const Job& other = copy.world.job(*ahead);
    const int workers = plan.allocation.workers[static_cast<std::size_t>(*ahead)];
    out.Object()
        .Field("name", ToldOf(name, other.name))
        .Field("status", Name(copy.active[static_cast<std::size_t>(*ahead)].status))
        .Field("workers", workers)
        .Field("gpus", other.gpus(workers))
        .End();
  }
  out.EndArray();
  write_change();
  const double next = std::max(now, state->last_round + state->config.rate_limit);
  state->dirty ? out.Field("next_round", next) : out.Key("next_round").Null();
  return out.Field("expected_start", expected_start).End().Take();
}

namespace {

void WriteNode(JsonWriter& out, const NodeEntry& node, const Lane* lane) {
  const DeclaredNode& declared = node.declared;
  std::map<std::string, int> workers;
  int used = 0;
  if (lane != nullptr) {
    const State& state = lane->scheduler->state();
    const auto at = state.node_index.find(declared.name);
    for (const Job& job : state.world.jobs) {
      for (const NodeIndex seat : job.workers) {
        if (at == state.node_index.end() || seat != at->second) continue;
        ++workers[job.name];
        used += job.gpus_per_worker;
      }
    }
  }
  out.Object()
      .Field("name", declared.name)
      .Field("gpu_type", declared.gpu_type)
      .Field("gpus", declared.gpus)
      .Field("used", used)
      .Field("state", node.state)
      .Key("devices")
      .Array();
  for (const int device : declared.devices) out.Value(device);
  out.EndArray().Key("jobs").Array();
  for (const auto& [name, count] : workers) out.Object().Field("name", name).Field("workers", count).End();
  out.EndArray().End();
}

}  // namespace

std::string Service::NodesJson() const {
  JsonWriter out;
  out.Object().Key("nodes").Array();
  for (const auto& [name, node] : nodes_) WriteNode(out, node, FindLane(node.declared.gpu_type));
  return out.EndArray().End().Take();
}

Answer<std::string> Service::NodeJson(const std::string& name) const {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return NotFound(fmt::format("no node is named \"{:.80}\"", name));
  JsonWriter out;
  WriteNode(out, at->second, FindLane(at->second.declared.gpu_type));
  return out.Take();
}

Answer<std::string> Service::PlanJson(const std::string& gpu_type, double now) const {
  const Lane* lane = gpu_type.empty() && lanes_.size() == 1 ? &lanes_.begin()->second : FindLane(gpu_type);
  if (lane == nullptr) {
    return gpu_type.empty()
               ? Invalid(fmt::format("gpu_type: give one of {}", fmt::join(GpuTypes(), ", ")))
               : NotFound(fmt::format("gpu_type: \"{:.80}\" is not a GPU type of this cluster; there is {}",
                                      gpu_type, fmt::join(GpuTypes(), ", ")));
  }
  State copy = lane->scheduler->state();
  AccrueAll(copy, now);
  copy.world.now = now;
  const Plan plan = DecideNow(copy, lane->scheduler->policy());
  JsonWriter out;
  out.Object()
      .Field("gpu_type", lane->gpu_type)
      .Field("round", copy.rounds)
      .Field("time", lane->last_round)
      .Field("algorithm", lane->algorithm)
      .Key("jobs")
      .Array();
  std::vector<std::size_t> by_name(copy.active.size());
  for (std::size_t i = 0; i < by_name.size(); ++i) by_name[i] = i;
  std::sort(by_name.begin(), by_name.end(),
            [&](std::size_t a, std::size_t b) { return copy.world.jobs[a].name < copy.world.jobs[b].name; });
  for (const std::size_t i : by_name) {
    const auto index = static_cast<JobIndex>(i);
    const Reason& reason = plan.allocation.reasons[i];
    out.Object().Field("name", copy.world.jobs[i].name).Field("workers", copy.active[i].desired.size());
    out.Key("nodes").Array();
    for (const NodeIndex node : copy.active[i].desired) out.Value(copy.world.node(node).name);
    out.EndArray()
        .Field("code", Name(reason.code))
        .Field("reason", Describe(reason, copy.world, index, plan.allocation.workers[i]))
        .End();
  }
  return out.EndArray().End().Take();
}

Answer<std::string> Service::RoundsJson(const std::string& gpu_type, std::int64_t before, int limit) {
  const auto rounds = ReadStore([&] { return database_.Rounds(gpu_type, before, limit); });
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

Answer<std::string> Service::SettingsJson(const std::string& gpu_type) const {
  const Lane* lane = gpu_type.empty() && !lanes_.empty() ? &lanes_.begin()->second : FindLane(gpu_type);
  if (lane == nullptr) {
    return NotFound(fmt::format("gpu_type: \"{:.80}\" is not a GPU type of this cluster; there is {}",
                                gpu_type, fmt::join(GpuTypes(), ", ")));
  }
  JsonWriter out;
  out.Object().Field("gpu_type", lane->gpu_type).Field("algorithm", lane->algorithm).Key("options").Object();
  for (const auto& [key, value] : lane->options) out.Field(key, value);
  return out.End().Field("rate_limit_seconds", lane->scheduler->state().config.rate_limit).End().Take();
}

std::string Service::InfoJson(double now) const {
  int gpus = 0;
  int used = 0;
  for (const auto& [name, node] : nodes_) gpus += node.declared.gpus;
  std::map<std::string, int> statuses;
  for (const auto& [id, job] : jobs_) {
    ++statuses[job.record.status];
    used += static_cast<int>(job.nodes.size()) * job.record.gpus_per_worker;
  }
  JsonWriter out;
  out.Object().Field("version", config_.version).Field("cluster", "local").Key("gpu_types").Array();
  for (const std::string& type : GpuTypes()) out.Value(type);
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

std::optional<Service::Copy> Service::CopyFor(const std::string& gpu_type) const {
  const Lane* lane = FindLane(gpu_type);
  if (lane == nullptr) return std::nullopt;
  auto policy = MakePolicy(lane->algorithm, lane->options);
  if (!policy) return std::nullopt;
  return Copy{lane->scheduler->state(), std::move(*policy)};
}

void Service::UpdateGauges() {
  for (const auto& [gpu_type, lane] : lanes_) {
    const State& state = lane.scheduler->state();
    std::map<std::string_view, int> statuses = {{"Waiting", 0}, {"Running", 0}};
    int divergence = 0;
    int cross_node = 0;
    std::vector<int> used(state.world.nodes.size(), 0);
    for (std::size_t i = 0; i < state.active.size(); ++i) {
      ++statuses[Name(state.active[i].status)];
      const Job& job = state.world.jobs[i];
      bool crosses = false;
      for (const NodeIndex seat : job.workers) {
        if (seat == kNoNode) continue;
        used[static_cast<std::size_t>(seat)] += job.gpus_per_worker;
        crosses = crosses || seat != job.workers.front();
      }
      cross_node += crosses ? 1 : 0;
      divergence += std::abs(static_cast<int>(state.active[i].desired.size()) - job.held());
    }
    for (const auto& [status, count] : statuses) metrics_.Set(Series::kJobs, {gpu_type, status}, count);
    metrics_.Set(Series::kPlanDivergence, {gpu_type}, divergence);
    metrics_.Set(Series::kJobsCrossNode, {gpu_type}, cross_node);
    metrics_.Set(Series::kSchedulerInfo, {gpu_type, lane.algorithm}, 1);
    metrics_.RemoveAll(Series::kGpus, gpu_type);
    metrics_.RemoveAll(Series::kGpusUsed, gpu_type);
    for (std::size_t i = 0; i < used.size(); ++i) {
      const Node& node = state.world.nodes[i];
      if (!nodes_.contains(node.name)) continue;
      metrics_.Set(Series::kGpus, {gpu_type, node.name}, node.gpus);
      metrics_.Set(Series::kGpusUsed, {gpu_type, node.name}, used[i]);
    }
  }
  const EventHub::Counters streams = events_.counters();
  metrics_.Set(Series::kEventStreams, static_cast<double>(streams.open));
  metrics_.Add(Series::kEventStreamsLagged, {}, static_cast<double>(streams.lagged - lagged_told_));
  lagged_told_ = streams.lagged;
}

std::string Service::NodeOfDevice(int device) const {
  for (const auto& [name, node] : nodes_) {
    const auto& devices = node.declared.devices;
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) return name;
  }
  return {};
}

}  // namespace voda
