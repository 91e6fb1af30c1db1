#include "service/estimates.h"

#include <algorithm>
#include <memory>

#include "model/guess.h"

namespace voda {

namespace {

bool Guessed(const JobRecord& record) {
  return !record.reported;
}

// What jobs like this one took. A job that says how many epochs it has is the best witness, where it is known
// how long they take.
std::shared_ptr<const FinishedWork> UsualWork(const Pool& pool, const JobRecord& record) {
  const Collector& collector = pool.collector;
  if (record.total_epochs > 0 && collector.Measured(record.category)) {
    return std::make_shared<const FinishedWork>(
        FinishedWork{record.total_epochs * collector.EpochSeconds(record.category, record.name)});
  }
  return collector.FinishedOf(record.category);
}

// Of a job that reports.
struct Work {
  double left = 0;
  double total = 0;
};
Work ReportedWork(const Pool& pool, const JobRecord& record, double partly) {
  const double epoch = pool.collector.EpochSeconds(record.category, record.name);
  const double done = (record.epoch + partly) * epoch;
  const double left = record.total_epochs > 0
                          ? std::max(0.0, record.total_epochs * epoch - done)
                          : GuessedWorkLeft(done, pool.collector.FinishedOf(record.category).get());
  return {left, done + left};
}

}  // namespace

CurvePtr CurveFor(const Pool& pool, const JobRecord& record) {
  const CurvePtr sizes = Curve::Linear(record.limits.min, record.limits.max);
  return Guessed(record) ? pool.collector.GuessedCurveFor(record.category, *sizes)
                         : pool.collector.CurveFor(record.category, *sizes);
}

Job JobFor(const Pool& pool, const JobRecord& record, bool preemptible) {
  const Collector& collector = pool.collector;
  Job job;
  job.name = record.name;
  job.submit_time = record.submitted;
  job.SetLimits(record.limits);
  job.gpus_per_worker = record.gpus_per_worker;
  job.priority = record.priority;
  job.preemptible = preemptible;
  job.curve = CurveFor(pool, record);
  job.measured = collector.MeasuredOf(record.category);
  job.spans = collector.SpansOf(record.category);
  const Stalls stalls = collector.StallsOf(record.category);
  job.start_cost = stalls.start;
  job.rescale_cost = stalls.rescale;
  job.migration_cost = stalls.migration;
  job.guessed = Guessed(record);
  job.work_done = record.work_done;
  if (job.guessed) {
    job.finished = UsualWork(pool, record);
    GuessAnew(job);
  } else {
    const Work work = ReportedWork(pool, record, 0);
    job.remaining_seconds = work.left;
    job.total_seconds = work.total;
  }
  return job;
}

MetricsUpdated::Entry NewsOf(const Pool& pool, const JobEntry& job, bool all) {
  const Collector& collector = pool.collector;
  const JobRecord& record = job.record;
  MetricsUpdated::Entry entry;
  entry.job = record.name;
  entry.reported = !Guessed(record);
  if (entry.reported) {
    const Work work = ReportedWork(pool, record, job.progress.partly());
    entry.remaining_seconds = work.left;
    entry.total_seconds = work.total;
  } else {
    entry.finished = UsualWork(pool, record);
  }
  if (all) {
    entry.curve = CurveFor(pool, record);
    entry.measured = collector.MeasuredOf(record.category);
    entry.spans = collector.SpansOf(record.category);
    const Stalls stalls = collector.StallsOf(record.category);
    entry.costs = {stalls.start, stalls.rescale, stalls.migration};
  }
  return entry;
}

MetricsUpdated NewsOfCategory(const Pool& pool, const Jobs& jobs, const std::string& category, bool all) {
  MetricsUpdated update;
  const State& state = pool.state();
  for (const JobIndex i : state.active.indices()) {
    if (state.active[i].category != category) continue;
    const JobEntry* job = jobs.Find(state.world.jobs[i].name);
    if (job != nullptr && (all || Guessed(job->record))) update.entries.push_back(NewsOf(pool, *job, all));
  }
  return update;
}

double WorkOf(const Pool& pool, const JobRecord& record, const EndedJob& ended) {
  const bool measured = record.epoch > 0 && pool.collector.Measured(record.category);
  return measured ? record.epoch * pool.collector.EpochSeconds(record.category, record.name)
                  : ended.work_done;
}

}  // namespace voda
