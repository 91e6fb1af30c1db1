#include "store/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "store/open_file.h"
#include "store/records.h"
#include "store/sqlite.h"

namespace voda {

namespace {

// The most rows of a kind, and jobs, that one Prune removes: it runs between rounds. The rest is for the
// next.
constexpr std::int64_t kPrunedRows = 10'000;
constexpr std::int64_t kPrunedJobs = 1'000;
constexpr std::size_t kMostStatuses = 100;

// The index jobs_ended is over exactly these.
constexpr std::string_view kEnded = "status IN ('Completed', 'Failed', 'Canceled')";

std::string InsertSql() {
  std::string columns = "name, token";
  std::string values = "?, ?";
  const JobRecord none;
  EachJobField(none, [&](const char* column, const auto&) {
    columns += fmt::format(", {}", column);
    values += ", ?";
  });
  return fmt::format("INSERT INTO jobs ({}) VALUES ({})", columns, values);
}

std::string UpdateSql() {
  std::string columns;
  const JobRecord none;
  EachJobField(none, [&](const char* column, const auto&) {
    columns += fmt::format("{}{} = ?", columns.empty() ? "" : ", ", column);
  });
  return fmt::format("UPDATE jobs SET {} WHERE id = ?", columns);
}

std::string SelectSql(bool documents) {
  std::string columns = "jobs.id, jobs.name, jobs.token";
  const JobRecord none;
  EachJobField(none, [&](const char* column, const auto&) { columns += fmt::format(", jobs.{}", column); });
  if (!documents) return fmt::format("SELECT {}, '' FROM jobs", columns);
  return fmt::format("SELECT {}, documents.document FROM jobs LEFT JOIN documents ON documents.job = jobs.id",
                     columns);
}

void ReadJob(SqliteQuery& query, JobRecord& job) {
  query.Read(job.id);
  query.Read(job.name);
  query.Read(job.token);
  EachJobField(job, [&](const char*, auto& field) { query.Read(field); });
  query.Read(job.document);
}

// The least text above all that begin with `prefix`; empty where there is none.
std::string AbovePrefix(std::string prefix) {
  while (!prefix.empty() && prefix.back() == '\xff') prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

class SqliteDatabase final : public Database {
 public:
  explicit SqliteDatabase(std::unique_ptr<SqliteConnection> connection)
      : connection_(std::move(connection)) {}

  Status Begin() override {
    VODA_CHECK(!begun_ || failed_);
    if (begun_) Rollback();
    begun_ = true;
    Keep(connection_->Query("BEGIN IMMEDIATE").Run());
    return Outcome();
  }

  Status Commit() override {
    VODA_CHECK(begun_);
    if (!failed_) Keep(connection_->Query("COMMIT").Run());
    Status outcome = Outcome();
    if (!outcome) {
      Rollback();
    } else {
      begun_ = false;
    }
    return outcome;
  }

  void Rollback() override {
    // Where SQLite undid it already, as on a full disk, there is nothing left to undo. Where undoing fails,
    // the next Begin reports it.
    if (connection_->in_transaction()) (void)connection_->Query("ROLLBACK").Run();
    begun_ = false;
    failed_.reset();
    sizes_kept_ = -1;
  }

  std::int64_t InsertJob(const JobRecord& job) override {
    if (!Writes()) return 0;
    {
      SqliteQuery query = connection_->Query(insert_);
      query.Bind(job.name).Bind(job.token);
      EachJobField(job, [&](const char*, const auto& field) { query.Bind(field); });
      Keep(query.Run());
    }
    if (failed_) return 0;
    const std::int64_t id = connection_->last_id();
    Write("INSERT INTO documents (job, document) VALUES (?, ?)", id, job.document);
    return failed_ ? 0 : id;
  }

  void UpdateJob(const JobRecord& job) override {
    if (!Writes()) return;
    SqliteQuery query = connection_->Query(update_);
    EachJobField(job, [&](const char*, const auto& field) { query.Bind(field); });
    Keep(query.Bind(job.id).Run());
    if (!failed_ && connection_->changed() != 1) {
      failed_ = Error{fmt::format("the database '{}' has no job {} ('{}') to update", connection_->path(),
                                  job.id, job.name)};
    }
  }

  void RenameJob(std::int64_t job, const std::string& name) override {
    Write("UPDATE jobs SET name = ? WHERE id = ?", name, job);
  }

  void AddSize(std::int64_t job, const SizeRecord& size) override {
    Write(
        "INSERT INTO sizes (job, number, time, round, before, after, reason, cause) VALUES "
        "(?1, (SELECT coalesce(max(number), 0) + 1 FROM sizes WHERE job = ?1), ?2, ?3, ?4, ?5, ?6, ?7)",
        job, size.time, size.round, size.from, size.to, size.reason, size.trigger);
    resized_.insert(job);
  }

  void RemoveJob(std::int64_t job) override {
    if (Writes()) Remove(job);
  }

  void AddRound(const RoundRecord& round) override {
    Write(
        "INSERT INTO rounds (gpu_type, round, time, algorithm, cause, note, seconds, changes) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, ?)",
        round.gpu_type, round.round, round.time, round.algorithm, round.trigger, round.note, round.seconds,
        round.changes);
  }

  void PutNode(const NodeRecord& node) override {
    Write("INSERT OR REPLACE INTO nodes (name, gpu_type, state, gpus, devices) VALUES (?, ?, ?, ?, ?)",
          node.name, node.gpu_type, node.state, node.gpus, node.devices);
  }

  void RemoveNode(const std::string& name) override { Write("DELETE FROM nodes WHERE name = ?", name); }

  void PutSetting(const std::string& key, const std::string& value) override {
    Write("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", key, value);
  }

  void PutMean(const MeanRecord& mean) override {
    Write(
        "INSERT INTO means (gpu_type, category, kind, workers, nodes, value, count, written) VALUES "
        "(?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(written), 0) + 1 FROM means)) "
        "ON CONFLICT (gpu_type, category, kind, workers, nodes) DO UPDATE SET "
        "value = excluded.value, count = excluded.count, written = excluded.written",
        mean.gpu_type, mean.category, mean.kind, mean.workers, mean.nodes, mean.value, mean.count);
  }

  void PutIdempotency(const IdempotencyRecord& record) override {
    Write(
        "INSERT OR REPLACE INTO idempotency (key, body_hash, time, status, content_type, body) VALUES "
        "(?, ?, ?, ?, ?, ?)",
        record.key, record.body_hash, record.time, record.status, record.content_type, record.body);
  }

  std::vector<std::int64_t> Prune(const Retention& retention, double now) override {
    if (!Writes()) return {};
    auto removed = PruneJobs(retention, now);
    PruneSizes(std::max(0, retention.sizes_per_job));
    Write(
        "DELETE FROM rounds WHERE id <= (SELECT max(id) FROM rounds) - ?1 AND id < (SELECT min(id) FROM "
        "rounds) + ?2",
        std::max(0, retention.rounds), kPrunedRows);
    Write(
        "DELETE FROM means WHERE id IN (SELECT id FROM means ORDER BY written LIMIT "
        "min(?2, max(0, (SELECT count(*) FROM means) - ?1)))",
        std::max(0, retention.means), kPrunedRows);
    Write(
        "DELETE FROM idempotency WHERE key IN (SELECT key FROM idempotency WHERE time < ? ORDER BY time "
        "LIMIT ?)",
        now - retention.idempotency_seconds, kPrunedRows);
    if (failed_) return {};
    return removed;
  }

  Result<std::vector<JobRecord>> Jobs(const JobFilter& filter) override {
    const std::set<std::string_view> statuses(filter.statuses.begin(), filter.statuses.end());
    if (statuses.size() > kMostStatuses) {
      return Error{fmt::format("{} statuses to look for; at most {} can be asked for", statuses.size(),
                               kMostStatuses)};
    }
    const std::string above = AbovePrefix(filter.name_prefix);
    // The ids first: sorting whole rows would take longer than reading them.
    std::string sql = filter.documents ? select_ : select_brief_;
    sql += " WHERE jobs.id IN (SELECT id FROM jobs WHERE id > ?";
    if (!statuses.empty()) {
      sql += " AND status IN (?";
      for (std::size_t i = 1; i < statuses.size(); ++i) sql += ", ?";
      sql += ")";
    }
    if (!filter.gpu_type.empty()) sql += " AND gpu_type = ?";
    if (!filter.category.empty()) sql += " AND category = ?";
    if (!filter.name_prefix.empty()) sql += " AND name >= ?";
    if (!above.empty()) sql += " AND name < ?";
    sql += " ORDER BY id LIMIT ?)";

    SqliteQuery query = connection_->Query(sql);
    query.Bind(filter.after);
    for (const std::string_view status : statuses) query.Bind(status);
    if (!filter.gpu_type.empty()) query.Bind(filter.gpu_type);
    if (!filter.category.empty()) query.Bind(filter.category);
    if (!filter.name_prefix.empty()) query.Bind(filter.name_prefix);
    if (!above.empty()) query.Bind(above);
    query.Bind(std::max(0, filter.limit));
    auto jobs = Rows<JobRecord>(query, ReadJob);
    const auto by_id = [](const JobRecord& a, const JobRecord& b) { return a.id < b.id; };
    if (jobs && !std::is_sorted(jobs->begin(), jobs->end(), by_id)) {
      std::sort(jobs->begin(), jobs->end(), by_id);
    }
    return jobs;
  }

  Result<std::optional<JobRecord>> Job(const std::string& name) override {
    SqliteQuery query = connection_->Query(select_one_);
    query.Bind(name);
    return First(Rows<JobRecord>(query, ReadJob));
  }

  Result<std::vector<SizeRecord>> Sizes(std::int64_t job) override {
    SqliteQuery query = connection_->Query(
        "SELECT time, round, before, after, reason, cause FROM sizes WHERE job = ? ORDER BY number");
    query.Bind(job);
    return Rows<SizeRecord>(query, [](SqliteQuery& row, SizeRecord& size) {
      row.Read(size.time);
      row.Read(size.round);
      row.Read(size.from);
      row.Read(size.to);
      row.Read(size.reason);
      row.Read(size.trigger);
    });
  }

  Result<std::vector<RoundRecord>> Rounds(const std::string& gpu_type, std::int64_t before,
                                          int limit) override {
    std::string sql =
        "SELECT gpu_type, round, time, algorithm, cause, note, seconds, changes FROM rounds WHERE true";
    if (!gpu_type.empty()) sql += " AND gpu_type = ?";
    if (before > 0) sql += " AND round < ?";
    sql += gpu_type.empty() ? " ORDER BY id DESC LIMIT ?" : " ORDER BY round DESC, id DESC LIMIT ?";
    SqliteQuery query = connection_->Query(sql);
    if (!gpu_type.empty()) query.Bind(gpu_type);
    if (before > 0) query.Bind(before);
    query.Bind(std::max(0, limit));
    return Rows<RoundRecord>(query, [](SqliteQuery& row, RoundRecord& round) {
      row.Read(round.gpu_type);
      row.Read(round.round);
      row.Read(round.time);
      row.Read(round.algorithm);
      row.Read(round.trigger);
      row.Read(round.note);
      row.Read(round.seconds);
      row.Read(round.changes);
    });
  }

  Result<std::vector<NodeRecord>> Nodes() override {
    SqliteQuery query =
        connection_->Query("SELECT name, gpu_type, state, gpus, devices FROM nodes ORDER BY name");
    return Rows<NodeRecord>(query, [](SqliteQuery& row, NodeRecord& node) {
      row.Read(node.name);
      row.Read(node.gpu_type);
      row.Read(node.state);
      row.Read(node.gpus);
      row.Read(node.devices);
    });
  }

  Result<std::map<std::string, std::string>> Settings() override {
    SqliteQuery query = connection_->Query("SELECT key, value FROM settings");
    std::map<std::string, std::string> settings;
    while (query.Step()) {
      std::string key;
      query.Read(key);
      query.Read(settings[key]);
    }
    if (const Status status = query.status(); !status) return status.error();
    return settings;
  }

  Result<std::vector<MeanRecord>> Means() override {
    SqliteQuery query = connection_->Query(
        "SELECT gpu_type, category, kind, workers, nodes, value, count FROM means "
        "ORDER BY gpu_type, category, kind, workers, nodes");
    return Rows<MeanRecord>(query, [](SqliteQuery& row, MeanRecord& mean) {
      row.Read(mean.gpu_type);
      row.Read(mean.category);
      row.Read(mean.kind);
      row.Read(mean.workers);
      row.Read(mean.nodes);
      row.Read(mean.value);
      row.Read(mean.count);
    });
  }

  Result<std::optional<IdempotencyRecord>> Idempotency(const std::string& key) override {
    SqliteQuery query = connection_->Query(
        "SELECT key, body_hash, time, status, content_type, body FROM idempotency WHERE key = ?");
    query.Bind(key);
    return First(Rows<IdempotencyRecord>(query, [](SqliteQuery& row, IdempotencyRecord& record) {
      row.Read(record.key);
      row.Read(record.body_hash);
      row.Read(record.time);
      row.Read(record.status);
      row.Read(record.content_type);
      row.Read(record.body);
    }));
  }

 private:
  // Whether there is a transaction that can still succeed.
  bool Writes() const {
    VODA_CHECK(begun_);
    return !failed_;
  }
  void Keep(const Status& status) {
    if (!status && !failed_) failed_ = status.error();
  }
  Status Outcome() const {
    if (failed_) return *failed_;
    return Ok{};
  }

  template <class... Values>
  void Write(std::string_view sql, const Values&... values) {
    if (!Writes()) return;
    SqliteQuery query = connection_->Query(sql);
    (query.Bind(values), ...);
    Keep(query.Run());
  }

  template <class Record, class ReadRow>
  static Result<std::vector<Record>> Rows(SqliteQuery& query, ReadRow&& read) {
    std::vector<Record> rows;
    while (query.Step()) read(query, rows.emplace_back());
    if (const Status status = query.status(); !status) return status.error();
    return rows;
  }
  template <class Record>
  static Result<std::optional<Record>> First(Result<std::vector<Record>> rows) {
    if (!rows) return rows.error();
    if (rows->empty()) return std::optional<Record>();
    return std::optional<Record>(std::move(rows->front()));
  }

  // How many sizes it had.
  std::int64_t Remove(std::int64_t job) {
    Write("DELETE FROM sizes WHERE job = ?", job);
    const std::int64_t sizes = connection_->changed();
    Write("DELETE FROM jobs WHERE id = ?", job);
    resized_.erase(job);
    return sizes;
  }

  // Those that ended first go first.
  std::vector<std::int64_t> PruneJobs(const Retention& retention, double now) {
    const auto ended = connection_->Number(count_ended_);
    if (!ended) {
      failed_ = ended.error();
      return {};
    }
    std::int64_t surplus = *ended - std::max(0, retention.ended_jobs);
    std::vector<std::int64_t> past;
    {
      SqliteQuery query = connection_->Query(oldest_ended_);
      query.Bind(kPrunedJobs);
      while (query.Step()) {
        std::int64_t id = 0;
        double time = 0;
        query.Read(id);
        query.Read(time);
        if (surplus <= 0 && time >= now - retention.ended_seconds) break;
        past.push_back(id);
        --surplus;
      }
      Keep(query.status());
    }
    std::int64_t rows = 0;
    std::vector<std::int64_t> removed;
    for (const std::int64_t id : past) {
      if (failed_ || rows >= kPrunedRows) break;
      rows += Remove(id) + 1;
      removed.push_back(id);
    }
    std::sort(removed.begin(), removed.end());
    return removed;
  }

  // Only jobs that were given a size since the last time can have too many, so only those are looked at.
  void PruneSizes(int kept) {
    if (sizes_kept_ != kept && !failed_) {
      SqliteQuery query = connection_->Query("SELECT id FROM jobs");
      while (query.Step()) {
        std::int64_t id = 0;
        query.Read(id);
        resized_.insert(id);
      }
      Keep(query.status());
      sizes_kept_ = kept;
    }
    for (std::int64_t rows = 0; !failed_ && !resized_.empty() && rows < kPrunedRows; ++rows) {
      const std::int64_t id = *resized_.begin();
      Write(
          "DELETE FROM sizes WHERE job = ?1 AND number <= (SELECT max(number) FROM sizes WHERE job = ?1) - "
          "?2",
          id, kept);
      rows += connection_->changed();
      resized_.erase(resized_.begin());
    }
  }

  std::unique_ptr<SqliteConnection> connection_;
  bool begun_ = false;
  std::optional<Error> failed_;  // of a write since Begin
  std::set<std::int64_t> resized_;
  int sizes_kept_ = -1;  // what the last Prune kept; another number makes all jobs candidates again

  const std::string insert_ = InsertSql();
  const std::string update_ = UpdateSql();
  const std::string select_ = SelectSql(true);
  const std::string select_brief_ = SelectSql(false);
  const std::string select_one_ = select_ + " WHERE jobs.name = ?";
  const std::string count_ended_ = fmt::format("SELECT count(*) FROM jobs WHERE {}", kEnded);
  const std::string oldest_ended_ = fmt::format(
      "SELECT id, coalesce(ended, submitted) FROM jobs WHERE {} ORDER BY coalesce(ended, submitted), id "
      "LIMIT ?",
      kEnded);
};

}  // namespace

Result<std::unique_ptr<Database>> Database::Open(const std::string& path) {
  auto connection = OpenDatabaseFile(path);
  if (!connection) return connection.error();
  return std::unique_ptr<Database>(std::make_unique<SqliteDatabase>(std::move(*connection)));
}

}  // namespace voda
