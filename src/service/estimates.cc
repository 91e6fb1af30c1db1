// What jobs report, what is learned from it, and what the schedulers are told of it.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "api/auth.h"
#include "base/log.h"
#include "codec/json_writer.h"
#include "service/service.h"

namespace voda {

namespace {

// A job that does not say how many epochs it has.
constexpr int kUnknownEpochs = 100;

const char* KindName(StallKind kind) {
  switch (kind) {
    case StallKind::kStart:
      return "start";
    case StallKind::kRescale:
      return "rescale";
    case StallKind::kMigration:
      return "migration";
  }
  return "";
}

int NodesOf(const JobEntry& job) {
  std::set<std::string> nodes(job.nodes.begin(), job.nodes.end());
  nodes.erase("");
  return static_cast<int>(nodes.size());
}

}  // namespace

double Service::RemainingWork(const Lane& lane, const JobRecord& record) const {
  const int total =
      record.total_epochs > 0 ? record.total_epochs : std::max(kUnknownEpochs, record.epoch + 1);
  return std::max(0, total - record.epoch) * lane.collector.EpochSeconds(record.category);
}

std::optional<Refusal> Service::Progress(const std::string& name, std::string_view token,
                                         const ProgressReport& report, double now) {
  const auto at = by_name_.find(name);
  const auto job = at == by_name_.end() ? jobs_.end() : jobs_.find(at->second);
  if (job == jobs_.end()) return NotFound(fmt::format("no job is named \"{:.80}\"", name));
  if (!SameSecret(job->second.record.token, token)) {
    metrics_.Add(Series::kProgressRejected, {"token"});
    return Refusal{403, "forbidden",
                   "the token is not this job's; a job finds its own in VODA_PROGRESS_TOKEN"};
  }
  if (job->second.record.ended) return Conflict(name + " has ended");
  if (const auto fault = Report(job->second, report, now)) {
    return Invalid(fmt::format("{}: nothing of the report could be used", *fault));
  }
  return std::nullopt;
}

std::optional<std::string> Service::Report(JobEntry& job, const ProgressReport& report, double now) {
  Lane& lane = *FindLane(job.record.gpu_type);
  metrics_.Add(Series::kProgressReports, {lane.gpu_type});
  for (const std::string& fault : report.faults) {
    metrics_.Add(Series::kProgressRejected, {"value"});
    Log(LogLevel::kWarn, "progress ignored", {{"job", job.record.name}, {"why", fault}});
  }
  // A worker may speak before its start is confirmed.
  auto held = job.nodes.size();
  const State& state = lane.scheduler->state();
  if (const JobIndex index = FindJob(state, job.record.name); held == 0 && index != kNoJob) {
    const auto& in_flight = state.active[static_cast<std::size_t>(index)].in_flight;
    if (in_flight) held = in_flight->action.workers.size();
  }
  // Horovod counts processes.
  ProgressReport counted = report;
  const int slots = job.spec ? job.spec->slots_per_worker : 1;
  if (counted.workers && slots > 1) counted.workers = *counted.workers / slots;
  const JobProgress::Outcome outcome = job.progress.Report(counted, static_cast<int>(held), now);
  if (!outcome.fault.empty()) {
    metrics_.Add(Series::kProgressRejected, {outcome.fault});
    Log(LogLevel::kWarn, "progress ignored",
        {{"job", job.record.name}, {"epoch", report.epoch}, {"why", outcome.fault}});
    return outcome.fault;
  }
  Learn(lane, job, report, outcome, now);
  return std::nullopt;
}

void Service::Learn(Lane& lane, JobEntry& job, const ProgressReport& report,
                    const JobProgress::Outcome& outcome, double now) {
  JobRecord& record = job.record;
  record.epoch = job.progress.done();
  job.partly = report.partly.value_or(0);
  if (report.total_epochs) record.total_epochs = *report.total_epochs;
  if (report.loss) record.loss = report.loss;
  record.progress_time = now;
  Touch(job);

  bool news = false;
  if (outcome.epoch) {
    const int nodes = NodesOf(job);
    news = lane.collector.Epoch(record.category, outcome.epoch->workers, nodes, outcome.epoch->seconds);
    KeepMean(lane, record.category, "epoch", outcome.epoch->workers, nodes,
             lane.collector.EpochMean(record.category, outcome.epoch->workers, nodes));
  }
  if (outcome.stall) {
    news = lane.collector.Stall(record.category, outcome.stall->kind, outcome.stall->seconds) || news;
    KeepMean(lane, record.category, KindName(outcome.stall->kind), 0, 0,
             lane.collector.StallMean(record.category, outcome.stall->kind));
  }

  // The others of the category learn with it.
  MetricsUpdated update;
  const auto measured = lane.collector.MeasuredOf(record.category);
  const auto spans = lane.collector.SpansOf(record.category);
  const Stalls stalls = lane.collector.StallsOf(record.category);
  const State& state = lane.scheduler->state();
  const auto entry_for = [&](const JobRecord& of) {
    MetricsUpdated::Entry entry;
    entry.job = of.name;
    entry.remaining_seconds = RemainingWork(lane, of);
    if (news) {
      entry.curve = lane.collector.CurveFor(of.category, *Curve::Linear(of.min, of.max));
      entry.measured = measured;
      entry.spans = spans;
      entry.costs = {stalls.start, stalls.rescale, stalls.migration};
    }
    return entry;
  };
  if (news) {
    for (std::size_t i = 0; i < state.active.size(); ++i) {
      if (state.active[i].category != record.category) continue;
      const JobEntry* other = Find(state.world.jobs[i].name);
      if (other != nullptr) update.entries.push_back(entry_for(other->record));
    }
  } else {
    update.entries.push_back(entry_for(record));
  }
  Handle(lane, update, now);

  JsonWriter fields;
  fields.Field("epoch", record.epoch).Field("total_epochs", record.total_epochs).Field("loss", record.loss);
  Publish("job.progress", lane, record.name, fields.Take());
}

void Service::KeepMean(const Lane& lane, const std::string& category, const char* kind, int workers,
                       int nodes, Collector::Mean mean) {
  if (mean.count == 0) return;
  pending_.push_back([record = MeanRecord{lane.gpu_type, category, kind, workers, nodes, mean.value,
                                          mean.count}](Database& database) { database.PutMean(record); });
}

void Service::RestoreMeans(Lane& lane, const std::vector<MeanRecord>& means) {
  for (const MeanRecord& mean : means) {
    if (mean.gpu_type != lane.gpu_type) continue;
    const Collector::Mean value{mean.value, mean.count};
    bool restored = false;
    if (mean.kind == "epoch") {
      restored = lane.collector.RestoreEpoch(mean.category, mean.workers, mean.nodes, value);
    } else {
      for (const StallKind kind : {StallKind::kStart, StallKind::kRescale, StallKind::kMigration}) {
        if (mean.kind == KindName(kind)) restored = lane.collector.RestoreStall(mean.category, kind, value);
      }
    }
    if (!restored) {
      Log(LogLevel::kWarn, "stored estimate ignored",
          {{"category", mean.category}, {"kind", mean.kind}, {"value", mean.value}});
    }
  }
}

}  // namespace voda
