#include "service/reports.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "api/auth.h"
#include "base/log.h"
#include "document/json_writer.h"
#include "service/estimates.h"
#include "service/means.h"

namespace voda {

namespace {

int NodesOf(const JobEntry& job) {
  std::set<std::string> nodes(job.nodes.begin(), job.nodes.end());
  nodes.erase("");
  return static_cast<int>(nodes.size());
}

}  // namespace

std::optional<Refusal> Reports::Take(const std::string& name, std::string_view token,
                                     const ProgressReport& report, double now) {
  JobEntry* job = jobs_.Find(name);
  // Anybody may knock here, so a job that does not exist is answered like a wrong token.
  if (job == nullptr || !SameSecret(job->record.token, token)) {
    metrics_.Add(Series::kProgressRejected, {"token"});
    return Refusal{403, "forbidden",
                   "the token is not this job's; a job finds its own in VODA_PROGRESS_TOKEN"};
  }
  if (job->record.ended) return Conflict(name + " has ended");
  if (const auto fault = Use(*job, report, now))
    return Invalid(fmt::format("{}: nothing of the report could be used", *fault));
  return std::nullopt;
}

void Reports::LookAtFiles(double now) {
  for (const auto& [id, entry] : jobs_.all()) {
    if (entry.record.status != JobStatus::kRunning || !entry.csv) continue;
    JobEntry& job = *jobs_.Find(id);
    const CsvProgress::News news = job.csv->Take(readers_);
    for (const ProgressReport& report : news.reports) Use(job, report, now);
    for (const std::string& fault : news.faults) {
      metrics_.Add(Series::kProgressRejected, {"csv"});
      Log(LogLevel::kWarn, "progress ignored", {{"job", job.record.name}, {"file", "csv"}, {"why", fault}});
    }
  }
}

std::optional<std::string> Reports::Use(JobEntry& job, const ProgressReport& report, double now) {
  Pool& pool = pools_.At(job.record.gpu_type);
  metrics_.Add(Series::kProgressReports, {pool.gpu_type});
  for (const std::string& fault : report.faults) {
    metrics_.Add(Series::kProgressRejected, {"value"});
    Log(LogLevel::kWarn, "progress ignored", {{"job", job.record.name}, {"why", fault}});
  }
  // A worker may speak before its start is confirmed.
  auto held = job.nodes.size();
  const State& state = pool.state();
  if (const JobIndex index = FindJob(state, job.record.name); held == 0 && index != kNoJob) {
    const auto& in_flight = state.active[index].in_flight;
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
  Learn(pool, job, report, outcome, now);
  return std::nullopt;
}

void Reports::Keep(const Pool& pool, MeanRecord mean) {
  if (mean.count == 0) return;
  mean.gpu_type = pool.gpu_type;
  history_.PutMean(mean);
}

void Reports::Learn(Pool& pool, JobEntry& job, const ProgressReport& report,
                    const JobProgress::Outcome& outcome, double now) {
  JobRecord& record = job.record;
  const bool first = !std::exchange(record.reported, true);
  record.epoch = job.progress.done();
  if (report.total_epochs) record.total_epochs = *report.total_epochs;
  if (report.loss) record.loss = report.loss;
  record.progress_time = now;
  jobs_.Touch(job);

  Collector& collector = pool.collector;
  bool news = false;
  if (outcome.epoch) {
    const int nodes = NodesOf(job);
    const bool was_uneven = collector.Uneven(record.category);
    news =
        collector.Epoch(record.category, record.name, outcome.epoch->workers, nodes, outcome.epoch->seconds);
    Keep(pool, EpochMean(collector, record.category, outcome.epoch->workers, nodes));
    if (news && (was_uneven || collector.Uneven(record.category))) {
      for (MeanRecord& mean : FitMeans(collector, record.category)) {
        mean.gpu_type = pool.gpu_type;
        history_.PutMean(mean);
      }
    }
  }
  if (outcome.stall) {
    news = collector.Stall(record.category, outcome.stall->kind, outcome.stall->seconds) || news;
    Keep(pool, StallMean(collector, record.category, outcome.stall->kind));
  }

  // The others of the category learn with it.
  events_.Handle(pool,
                 news ? NewsOfCategory(pool, jobs_, record.category, /*all=*/true)
                      : MetricsUpdated{{NewsOf(pool, job, first)}},
                 now);

  JsonWriter fields;
  fields.Field("epoch", record.epoch).Field("total_epochs", record.total_epochs).Field("loss", record.loss);
  announcer_.Publish("job.progress", pool.gpu_type, record.name, fields.Take());
}

}  // namespace voda
