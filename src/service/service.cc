#include "service/service.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace voda {

namespace {

constexpr double kFilesEvery = 2;
constexpr double kPruneEvery = 60;
// How long a clock that is far ahead of all that was written down may be wrong before anything is forgotten
// by it.
constexpr double kClockOnTrial = 86400;
constexpr double kBeatEvery = 15;
constexpr double kAccountEvery = 30;
constexpr double kRetryEvery = 1;

}  // namespace

Service::Service(ServiceConfig config, Ledger& ledger, History& history, JobCluster& cluster,
                 EventHub& events, Metrics& metrics)
    : config_(std::move(config)),
      ledger_(ledger),
      history_(history),
      cluster_(cluster),
      hub_(events),
      metrics_(metrics),
      announcer_(events, metrics, config_.namespaces),
      pools_(config_, cluster, history,
             [this](const Action& action, const Pool& pool) { changes_.NoteBefore(action, pool); }),
      job_events_({jobs_, pools_, ledger, history, cluster, announcer_, metrics}),
      rounds_(config_, jobs_, pools_, job_events_, history, announcer_, metrics),
      nodes_(config_, pools_, job_events_, ledger, cluster, announcer_),
      settings_(pools_, ledger, announcer_, metrics),
      submitter_(
          {config_, jobs_, pools_, nodes_, job_events_, ledger, history, cluster, announcer_, metrics}),
      changes_({jobs_, pools_, job_events_, ledger, history, cluster, announcer_}),
      takeover_({config_, jobs_, pools_, nodes_, job_events_, ledger, history, cluster, announcer_, metrics},
                submitter_),
      reports_(jobs_, pools_, job_events_, history, announcer_, metrics),
      views_(config_, jobs_, pools_, nodes_, history, metrics),
      gauges_(pools_, nodes_, events, metrics) {}

Status Service::Restore(const LedgerContents& contents, const std::vector<TypedEvent>& nodes, double now) {
  views_.StartedAt(now);
  next_files_ = next_prune_ = next_beat_ = next_account_ = now;
  if (Status restored = takeover_.Restore(contents, nodes, now); !restored) return restored;
  for (const auto& [id, job] : jobs_.all())
    newest_before_ = std::max(newest_before_, job.record.ended.value_or(job.record.submitted));
  restored_at_ = now;
  restored_ = true;
  return Ok{};
}

double Service::Step(double now) {
  if (!restored_) return now + kRetryEvery;
  // What the tasks asked for becomes durable and takes effect.
  if (ledger_.Waiting()) Timed([this] { ledger_.Flush(); });
  rounds_.Advance(now);
  Periodic(now);
  // What happened is written down. Nobody waits for it: a store that fails is tried again later.
  WriteTouched();
  if (now >= next_prune_) {
    Prune(now);  // after what is left to write of the jobs that go
    next_prune_ = now + kPruneEvery;
  }
  if (history_.Waiting() && now >= retry_history_at_) {
    Timed([this] { history_.Flush(); });
    retry_history_at_ = history_.Error().empty() ? 0 : now + kRetryEvery;
  }
  if (ledger_.Waiting()) return now;  // those who were answered asked for more
  double next = std::min({next_files_, next_account_, next_prune_, next_beat_, rounds_.NextWake(now)});
  if (history_.Waiting()) next = std::min(next, std::max(now, retry_history_at_));
  return next;
}

void Service::Deliver(const TypedEvent& event, double now) {
  if (AboutNode(event.event)) return nodes_.Reported(event, now);
  if (Pool* pool = pools_.Find(event.gpu_type)) job_events_.Handle(*pool, event.event, now);
}

std::string Service::Trouble() const {
  if (!store_error().empty()) return "the store cannot be written: " + store_error();
  const Status able = cluster_.CanStart();
  return able ? std::string() : able.error().message;
}

template <class Flush>
void Service::Timed(const Flush& flush) {
  const auto began = std::chrono::steady_clock::now();
  flush();
  metrics_.Observe(Series::kStoreCommitDuration, {},
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  if (!history_.Error().empty()) metrics_.Add(Series::kStoreErrors);
}

void Service::Periodic(double now) {
  if (now >= next_files_) {
    reports_.LookAtFiles(now);
    next_files_ = now + kFilesEvery;
  }
  if (now >= next_account_) {
    for (const auto& [id, job] : jobs_.all()) {
      if (job.record.status == JobStatus::kRunning) jobs_.Touch(job);
    }
    next_account_ = now + kAccountEvery;
  }
  if (now >= next_beat_) {
    hub_.Beat();
    next_beat_ = now + kBeatEvery;
  }
}

void Service::Prune(double now) {
  if (!history_.Error().empty()) return;
  const double trusted = TrustedTime(now);
  ledger_.ForgetBefore(trusted - config_.keys_kept_seconds);
  history_.Prune(config_.retention, trusted, [this](const std::vector<std::int64_t>& gone) {
    for (const std::int64_t id : gone) changes_.Drop(id);
  });
}

// The time by which things are old. Under a clock that was set ahead by mistake, everything would be: on the
// first day of a run, only what passed since the last that was written down counts.
double Service::TrustedTime(double now) const {
  const double passed = now - restored_at_;
  if (newest_before_ == 0 || passed >= kClockOnTrial) return now;
  return std::min(now, newest_before_ + passed);
}

void Service::WriteTouched() {
  for (const std::int64_t id : jobs_.TakeTouched()) {
    JobEntry* job = jobs_.Find(id);
    if (job == nullptr) continue;
    if (const Pool* pool = pools_.Find(job->record.gpu_type)) Account(*pool, job->record);
    history_.Put(job->record);
  }
}

}  // namespace voda
