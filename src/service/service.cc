#include "service/service.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"

namespace voda {

namespace {

constexpr double kFilesEvery = 2;
constexpr double kPruneEvery = 60;
constexpr double kBeatEvery = 15;
constexpr double kAccountEvery = 30;
constexpr double kStoreRetryEvery = 1;
constexpr std::size_t kPendingMax = 10'000;

}  // namespace

double WallNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Service::Service(ServiceConfig config, Database& database, JobCluster& cluster, EventHub& events,
                 Metrics& metrics)
    : config_(std::move(config)),
      database_(database),
      cluster_(cluster),
      events_(events),
      metrics_(metrics) {}

double Service::Step(double now) {
  if (!restored_) return now + kStoreRetryEvery;

  // 1. What the tasks wrote becomes durable and takes effect.
  Settle();

  // 2. Rounds.
  for (auto& [gpu_type, lane] : lanes_) Advance(lane, now);

  // 3. What is periodic.
  if (now >= next_files_) {
    LookAtProgressFiles(now);
    next_files_ = now + kFilesEvery;
  }
  if (now >= next_account_) {
    for (auto& [id, job] : jobs_) {
      if (job.record.status == "Running") Touch(job);
    }
    next_account_ = now + kAccountEvery;
  }
  if (now >= next_prune_) {
    Prune(now);
    next_prune_ = now + kPruneEvery;
  }
  if (now >= next_beat_) {
    events_.Beat();
    next_beat_ = now + kBeatEvery;
  }

  // 4. What the rounds left to be remembered. Nobody waits for it: a store that fails is tried again later.
  const bool due = !dirty_.empty() || !pending_.empty();
  if (due && now >= retry_store_at_) {
    Settle();
    retry_store_at_ = store_error_.empty() ? 0 : now + kStoreRetryEvery;
  }

  double next = std::min({next_files_, next_account_, next_prune_, next_beat_});
  if (!dirty_.empty() || !pending_.empty()) next = std::min(next, std::max(now, retry_store_at_));
  for (const auto& [gpu_type, lane] : lanes_) next = std::min(next, lane.scheduler->NextWake(now));
  return next;
}

Database& Service::Writing() {
  if (!writing_) {
    writing_ = true;
    if (const Status begun = database_.Begin(); !begun) store_error_ = begun.error().message;
  }
  return database_;
}

void Service::OnCommit(AtCommit then) {
  at_commit_.push_back(std::move(then));
}

void Service::Settle() {
  if (!writing_ && at_commit_.empty() && dirty_.empty() && pending_.empty()) return;
  const auto began = std::chrono::steady_clock::now();
  Database& database = Writing();
  std::set<std::int64_t> due = dirty_;
  if (!cluster_.KeepsJobs()) {
    for (const auto& [id, asked] : asked_) due.insert(id);
  }
  for (const std::int64_t id : erasing_) due.erase(id);
  for (const std::int64_t id : due) {
    if (const auto at = jobs_.find(id); at != jobs_.end() && id > 0) {
      if (const Lane* lane = FindLane(at->second.record.gpu_type)) Account(at->second, *lane);
      database.UpdateJob(cluster_.KeepsJobs() ? at->second.record : WithAsked(at->second.record));
    }
  }
  for (const auto& write : pending_) write(database);
  for (const std::int64_t id : erasing_) database.RemoveJob(id);  // after what was left to write of it
  const Status committed = database.Commit();
  writing_ = false;
  metrics_.Observe(Series::kStoreCommitDuration, {},
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  std::optional<Refusal> failed;
  if (committed) {
    if (!store_error_.empty()) Log(LogLevel::kInfo, "store takes writes again");
    store_error_.clear();
    dirty_.clear();
    pending_.clear();
  } else {
    metrics_.Add(Series::kStoreErrors);
    if (store_error_ != committed.error().message) {
      Log(LogLevel::kError, "store cannot be written", {{"error", committed.error().message}});
    }
    store_error_ = committed.error().message;
    failed = Unavailable("nothing was accepted: " + store_error_);
    if (pending_.size() > kPendingMax) {
      Log(LogLevel::kWarn, "history was dropped because the store cannot be written",
          {{"entries", pending_.size() - kPendingMax}});
      pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(kPendingMax));
    }
  }
  // Durable, or refused with all the others of the transaction.
  if (!cluster_.KeepsJobs()) asked_.clear();
  // Continuations may write again: that is the next transaction.
  std::vector<AtCommit> then;
  then.swap(at_commit_);
  for (const AtCommit& go_on : then) go_on(failed);
}

void Service::LookAtProgressFiles(double now) {
  for (auto& [id, job] : jobs_) {
    if (job.record.status != "Running" || !job.csv) continue;
    const CsvProgress::News news = job.csv->Take(readers_);
    for (const ProgressReport& report : news.reports) Report(job, report, now);
    for (const std::string& fault : news.faults) {
      metrics_.Add(Series::kProgressRejected, {"csv"});
      Log(LogLevel::kWarn, "progress ignored", {{"job", job.record.name}, {"file", "csv"}, {"why", fault}});
    }
  }
}

void Service::Prune(double now) {
  if (!store_error_.empty()) return;
  std::vector<std::int64_t> gone = Writing().Prune(config_.retention, now);
  for (const std::int64_t id : gone) dirty_.erase(id);
  OnCommit([this, gone = std::move(gone)](const std::optional<Refusal>& failed) {
    if (failed) return;
    for (const std::int64_t id : gone) Drop(id);
  });
}

void Service::Drop(std::int64_t id) {
  const auto at = jobs_.find(id);
  if (at == jobs_.end()) return;
  // Another job may have the name by now.
  const auto named = by_name_.find(at->second.record.name);
  if (named != by_name_.end() && named->second == id) by_name_.erase(named);
  jobs_.erase(at);
  cluster_.EraseJob(id);
}

}  // namespace voda
