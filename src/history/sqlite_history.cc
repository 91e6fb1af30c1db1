#include "history/sqlite_history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "history/job_columns.h"

namespace voda {

namespace {

// The most rows of a kind, and jobs, that one Prune removes: it runs between rounds. The rest is for the
// next.
constexpr std::int64_t kPrunedRows = 10'000;
constexpr std::int64_t kPrunedJobs = 1'000;
// The most writes that wait for a store that fails.
constexpr std::size_t kMostWaiting = 10'000;

// The index jobs_ended is over exactly these.
constexpr std::string_view kEnded = "status IN ('Completed', 'Failed', 'Canceled')";

std::string PutSql() {
  std::string columns = "id";
  std::string values = "?";
  std::string updates;
  const JobRecord none;
  EachJobColumn(none, [&](const char* column, const auto&) {
    columns += fmt::format(", {}", column);
    values += ", ?";
    updates += fmt::format("{}{} = excluded.{}", updates.empty() ? "" : ", ", column, column);
  });
  return fmt::format("INSERT INTO jobs ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}", columns, values,
                     updates);
}

std::string SelectSql() {
  std::string columns = "id";
  const JobRecord none;
  EachJobColumn(none, [&](const char* column, const auto&) { columns += fmt::format(", {}", column); });
  return fmt::format("SELECT {} FROM jobs ORDER BY id", columns);
}

// Enums are kept by their names.
void Parse(std::string_view name, JobStatus& status) {
  status = ParseJobStatus(name).value_or(status);
}
void Parse(std::string_view name, JobKind& kind) {
  kind = ParseJobKind(name).value_or(kind);
}

void ReadJob(SqliteQuery& row, JobRecord& job) {
  row.Read(job.id);
  EachJobColumn(job, [&](const char*, auto& field) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(field)>>) {
      std::string name;
      row.Read(name);
      Parse(name, field);
    } else {
      row.Read(field);
    }
  });
  job.reported = job.progress_time || job.epoch > 0;
}

}  // namespace

SqliteHistory::SqliteHistory(Store& store) : store_(store) {
  store.Add(*this);
}

void SqliteHistory::Put(const JobRecord& job) {
  jobs_[job.id] = job;
}

void SqliteHistory::Later(std::function<void()> write) {
  later_.push_back(std::move(write));
}

void SqliteHistory::PutDocument(std::int64_t job, std::string document) {
  Later([this, job, document = std::move(document)] {
    store_.Write("INSERT OR REPLACE INTO documents (job, document) VALUES (?, ?)", job, document);
  });
}

void SqliteHistory::AddSize(std::int64_t job, SizeRecord size) {
  Later([this, job, size = std::move(size)] {
    store_.Write(
        "INSERT INTO sizes (job, number, time, round, before, after, reason, cause, nodes) VALUES "
        "(?1, (SELECT coalesce(max(number), 0) + 1 FROM sizes WHERE job = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        job, size.time, size.round, size.from, size.to, size.reason, size.trigger,
        fmt::format("{}", fmt::join(size.nodes, ",")));
    resized_.insert(job);
  });
}

void SqliteHistory::AddRound(RoundRecord round) {
  Later([this, round = std::move(round)] {
    store_.Write(
        "INSERT INTO rounds (gpu_type, round, time, algorithm, cause, note, seconds, changes) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?)",
        round.gpu_type, round.round, round.time, round.algorithm, round.trigger, round.note, round.seconds,
        round.changes);
  });
}

void SqliteHistory::PutMean(const MeanRecord& mean) {
  Later([this, mean] {
    store_.Write(
        "INSERT INTO means (gpu_type, category, kind, workers, nodes, value, count, written) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(written), 0) + 1 FROM means)) "
        "ON CONFLICT (gpu_type, category, kind, workers, nodes) DO UPDATE SET "
        "value = excluded.value, count = excluded.count, written = excluded.written",
        mean.gpu_type, mean.category, mean.kind, mean.workers, mean.nodes, mean.value, mean.count);
  });
}

void SqliteHistory::Remove(std::int64_t job, std::function<void(const Status&)> done) {
  removing_.insert(job);
  store_.OnCommit([this, job, done = std::move(done)](const Status& committed) {
    removing_.erase(job);
    if (committed) jobs_.erase(job);
    done(committed);
  });
}

void SqliteHistory::Prune(const Retention& retention, double now,
                          std::function<void(const std::vector<std::int64_t>&)> removed) {
  std::vector<std::int64_t> gone = PruneJobs(retention, now);
  std::vector<JobRecord> unsaved;
  for (const std::int64_t id : gone) {
    if (auto pending = jobs_.extract(id); !pending.empty()) unsaved.push_back(std::move(pending.mapped()));
  }
  PruneSizes(std::max(0, retention.sizes_per_job));
  store_.Write(
      "DELETE FROM rounds WHERE id <= (SELECT max(id) FROM rounds) - ?1 AND id < (SELECT min(id) FROM "
      "rounds) + ?2",
      std::max(0, retention.rounds), kPrunedRows);
  // Busy categories finish so many jobs that they would push out what was learned of quiet ones.
  for (const auto& [finished, kept] : {std::pair{true, retention.finished}, {false, retention.means}}) {
    store_.Write(
        "DELETE FROM means WHERE id IN (SELECT id FROM means WHERE (kind = ?3) = ?4 ORDER BY written LIMIT "
        "min(?2, max(0, (SELECT count(*) FROM means WHERE (kind = ?3) = ?4) - ?1)))",
        std::max(0, kept), kPrunedRows, kWorkMean, finished);
  }
  store_.OnCommit([this, gone = std::move(gone), unsaved = std::move(unsaved),
                   removed = std::move(removed)](const Status& committed) {
    if (committed) return removed(gone);
    // What was undone is done by the next.
    sizes_kept_ = -1;
    for (const JobRecord& job : unsaved) jobs_.emplace(job.id, job);
  });
}

void SqliteHistory::WriteJob(const JobRecord& job) {
  static const std::string sql = PutSql();
  if (!store_.Begin()) return;
  SqliteQuery query = store_.Query(sql);
  query.Bind(job.id);
  EachJobColumn(job, [&](const char*, const auto& field) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(field)>>) {
      query.Bind(Name(field));
    } else {
      query.Bind(field);
    }
  });
  store_.Keep(query.Run());
}

void SqliteHistory::Write() {
  for (const auto& [id, job] : jobs_) WriteJob(job);
  for (const auto& write : later_) write();
  for (const std::int64_t id : removing_) Erase(id);  // after what was left to write of it
}

void SqliteHistory::Failed() {
  if (later_.size() <= kMostWaiting) return;
  Log(LogLevel::kWarn, "history was dropped because the store cannot be written",
      {{"entries", later_.size() - kMostWaiting}});
  later_.erase(later_.begin(), later_.end() - static_cast<std::ptrdiff_t>(kMostWaiting));
}

void SqliteHistory::Written() {
  jobs_.clear();
  later_.clear();
}

Result<std::vector<JobRecord>> SqliteHistory::Jobs() {
  static const std::string sql = SelectSql();
  SqliteQuery query = store_.Query(sql);
  return Store::Rows<JobRecord>(query, ReadJob);
}

Result<std::int64_t> SqliteHistory::LastId() {
  return store_.connection().Number(
      "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'jobs'), 0)");
}

Result<std::optional<std::string>> SqliteHistory::Document(std::int64_t job) {
  SqliteQuery query = store_.Query("SELECT document FROM documents WHERE job = ?");
  query.Bind(job);
  std::optional<std::string> document;
  if (query.Step()) query.Read(document.emplace());
  if (const Status status = query.status(); !status) return status.error();
  return document;
}

Result<std::vector<SizeRecord>> SqliteHistory::Sizes(std::int64_t job) {
  SqliteQuery query = store_.Query(
      "SELECT time, round, before, after, reason, cause, nodes FROM sizes WHERE job = ? ORDER BY number");
  query.Bind(job);
  return Store::Rows<SizeRecord>(query, [](SqliteQuery& row, SizeRecord& size) {
    row.ReadAll(size.time, size.round, size.from, size.to, size.reason, size.trigger);
    std::string nodes;
    row.Read(nodes);
    if (nodes.empty()) return;
    for (const std::string_view node : Split(nodes, ',')) size.nodes.emplace_back(node);
  });
}

Result<std::vector<RoundRecord>> SqliteHistory::Rounds(const std::string& gpu_type, std::int64_t before,
                                                       int limit) {
  std::string sql =
      "SELECT gpu_type, round, time, algorithm, cause, note, seconds, changes FROM rounds WHERE true";
  if (!gpu_type.empty()) sql += " AND gpu_type = ?";
  if (before > 0) sql += " AND round < ?";
  sql += gpu_type.empty() ? " ORDER BY id DESC LIMIT ?" : " ORDER BY round DESC, id DESC LIMIT ?";
  SqliteQuery query = store_.Query(sql);
  if (!gpu_type.empty()) query.Bind(gpu_type);
  if (before > 0) query.Bind(before);
  query.Bind(std::max(0, limit));
  return Store::Rows<RoundRecord>(query, [](SqliteQuery& row, RoundRecord& round) {
    row.ReadAll(round.gpu_type, round.round, round.time, round.algorithm, round.trigger, round.note,
                round.seconds, round.changes);
  });
}

Result<std::vector<MeanRecord>> SqliteHistory::Means() {
  SqliteQuery query = store_.Query(
      "SELECT gpu_type, category, kind, workers, nodes, value, count FROM means "
      "ORDER BY gpu_type, category, kind, workers, nodes");
  return Store::Rows<MeanRecord>(query, [](SqliteQuery& row, MeanRecord& mean) {
    row.ReadAll(mean.gpu_type, mean.category, mean.kind, mean.workers, mean.nodes, mean.value, mean.count);
  });
}

// How many sizes it had. Its document goes with the job.
std::int64_t SqliteHistory::Erase(std::int64_t job) {
  store_.Write("DELETE FROM sizes WHERE job = ?", job);
  const std::int64_t sizes = store_.connection().changed();
  store_.Write("DELETE FROM jobs WHERE id = ?", job);
  resized_.erase(job);
  return sizes;
}

// Those that ended first go first.
std::vector<std::int64_t> SqliteHistory::PruneJobs(const Retention& retention, double now) {
  static const std::string count_ended = fmt::format("SELECT count(*) FROM jobs WHERE {}", kEnded);
  static const std::string oldest_ended = fmt::format(
      "SELECT id, coalesce(ended, submitted) FROM jobs WHERE {} ORDER BY coalesce(ended, submitted), id "
      "LIMIT ?",
      kEnded);
  std::vector<std::int64_t> past;
  if (!store_.Begin()) return past;
  const auto ended = store_.connection().Number(count_ended);
  if (!ended) {
    store_.Keep(ended.error());
    return past;
  }
  std::int64_t surplus = *ended - std::max(0, retention.ended_jobs);
  {
    SqliteQuery query = store_.Query(oldest_ended);
    query.Bind(kPrunedJobs);
    while (query.Step()) {
      std::int64_t id = 0;
      double time = 0;
      query.ReadAll(id, time);
      if (surplus <= 0 && time >= now - retention.ended_seconds) break;
      past.push_back(id);
      --surplus;
    }
    store_.Keep(query.status());
  }
  std::int64_t rows = 0;
  std::vector<std::int64_t> removed;
  for (const std::int64_t id : past) {
    if (store_.failed() || rows >= kPrunedRows) break;
    rows += Erase(id) + 1;
    removed.push_back(id);
  }
  std::sort(removed.begin(), removed.end());
  return removed;
}

// Only jobs that were given a size since the last time can have too many, so only those are looked at.
void SqliteHistory::PruneSizes(int kept) {
  if (sizes_kept_ != kept && !store_.failed()) {
    SqliteQuery query = store_.Query("SELECT id FROM jobs");
    while (query.Step()) {
      std::int64_t id = 0;
      query.Read(id);
      resized_.insert(id);
    }
    store_.Keep(query.status());
    sizes_kept_ = kept;
  }
  for (std::int64_t rows = 0; !store_.failed() && !resized_.empty() && rows < kPrunedRows; ++rows) {
    const std::int64_t id = *resized_.begin();
    store_.Write(
        "DELETE FROM sizes WHERE job = ?1 AND number <= (SELECT max(number) FROM sizes WHERE job = ?1) - ?2",
        id, kept);
    rows += store_.connection().changed();
    resized_.erase(resized_.begin());
  }
}

}  // namespace voda
