#include "store/schema.h"

#include <fmt/format.h>

namespace voda {

namespace {

// Documents stand apart: a job is written every round, and its document, which may be a megabyte,
// never changes. Sizes are numbered within their job, so the newest n are found without counting.
constexpr std::string_view kFirst = R"sql(
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  token TEXT NOT NULL,
  category TEXT NOT NULL,
  gpu_type TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  message TEXT NOT NULL,
  warnings TEXT NOT NULL,
  held INTEGER NOT NULL,
  deleting INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  min INTEGER NOT NULL,
  num INTEGER NOT NULL,
  max INTEGER NOT NULL,
  gpus_per_worker INTEGER NOT NULL,
  submitted REAL NOT NULL,
  first_started REAL,
  ended REAL,
  waited REAL NOT NULL,
  ran REAL NOT NULL,
  gpu_seconds REAL NOT NULL,
  attained REAL NOT NULL,
  waiting REAL NOT NULL,
  running REAL NOT NULL,
  last_change REAL,
  last_start REAL,
  accounted REAL NOT NULL,
  starts INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  total_epochs INTEGER NOT NULL,
  loss REAL,
  progress_time REAL
) STRICT;
CREATE INDEX jobs_status ON jobs (status);
CREATE INDEX jobs_ended ON jobs (coalesce(ended, submitted)) WHERE status IN ('Completed', 'Failed', 'Canceled');

CREATE TABLE documents (
  job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
  document TEXT NOT NULL
) STRICT;

CREATE TABLE sizes (
  job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  time REAL NOT NULL,
  round INTEGER NOT NULL,
  before INTEGER NOT NULL,
  after INTEGER NOT NULL,
  reason TEXT NOT NULL,
  cause TEXT NOT NULL,
  PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE rounds (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  gpu_type TEXT NOT NULL,
  round INTEGER NOT NULL,
  time REAL NOT NULL,
  algorithm TEXT NOT NULL,
  cause TEXT NOT NULL,
  note TEXT NOT NULL,
  seconds REAL NOT NULL,
  changes TEXT NOT NULL
) STRICT;
CREATE INDEX rounds_type ON rounds (gpu_type, round);

CREATE TABLE nodes (
  name TEXT PRIMARY KEY NOT NULL,
  gpu_type TEXT NOT NULL,
  state TEXT NOT NULL,
  gpus INTEGER NOT NULL,
  devices TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
  key TEXT PRIMARY KEY NOT NULL,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE means (
  id INTEGER PRIMARY KEY,
  gpu_type TEXT NOT NULL,
  category TEXT NOT NULL,
  kind TEXT NOT NULL,
  workers INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  value REAL NOT NULL,
  count INTEGER NOT NULL,
  written INTEGER NOT NULL,
  UNIQUE (gpu_type, category, kind, workers, nodes)
) STRICT;
CREATE INDEX means_written ON means (written);

CREATE TABLE idempotency (
  key TEXT PRIMARY KEY NOT NULL,
  body_hash TEXT NOT NULL,
  time REAL NOT NULL,
  status INTEGER NOT NULL,
  content_type TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE INDEX idempotency_time ON idempotency (time);
)sql";

// The ledger stands apart from the history: what was promised to users is a table of its own, which holds the
// jobs that have not ended with their documents. What users asked for is the text that every ledger keeps
// (ledger/job_state.h); the totals of these jobs are in the history. Requests that were carried out name
// their jobs instead of an answer.
constexpr std::string_view kLedger = R"sql(
CREATE TABLE ledger (
  name TEXT PRIMARY KEY NOT NULL,
  id INTEGER NOT NULL UNIQUE,
  gpu_type TEXT NOT NULL,
  token TEXT NOT NULL,
  submitted REAL NOT NULL,
  deleting INTEGER NOT NULL,
  state TEXT NOT NULL,
  document TEXT NOT NULL
) STRICT;
INSERT INTO ledger (name, id, gpu_type, token, submitted, deleting, state, document)
  SELECT name, id, gpu_type, token, submitted, deleting,
         json_object('job', name, 'min', min, 'num', num, 'max', max, 'priority', priority, 'held',
                     json(iif(held, 'true', 'false'))),
         coalesce(document, '')
  FROM jobs LEFT JOIN documents ON documents.job = jobs.id
  WHERE status NOT IN ('Completed', 'Failed', 'Canceled')
    AND instr(name, '/') = 0;  -- where there are namespaces, the ledger is the cluster's objects

CREATE TABLE requests (
  key TEXT PRIMARY KEY NOT NULL,
  body_hash TEXT NOT NULL,
  time REAL NOT NULL,
  jobs TEXT NOT NULL
) STRICT;
INSERT INTO requests (key, body_hash, time, jobs)
  SELECT key, body_hash, time,
         coalesce((SELECT group_concat(name, ' ') FROM
                    (SELECT jobs.name FROM json_each(iif(json_valid('[' || body || ']'), '[' || body || ']', '[]')) ids
                     JOIN jobs ON jobs.id = ids.value ORDER BY ids.key)), '')
  FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE requests RENAME TO idempotency;
CREATE INDEX idempotency_time ON idempotency (time);

ALTER TABLE nodes DROP COLUMN devices;
ALTER TABLE sizes ADD COLUMN nodes TEXT NOT NULL DEFAULT '';
)sql";

constexpr std::string_view kWorkDone = "ALTER TABLE jobs ADD COLUMN work_done REAL NOT NULL DEFAULT 0";

constexpr std::string_view kExitCode = "ALTER TABLE jobs ADD COLUMN exit_code INTEGER NOT NULL DEFAULT -1";

Status RunMigration(SqliteConnection& connection, std::string_view sql, std::size_t to) {
  // What a migration changes and the number that says so become durable together.
  Status status = connection.Run("BEGIN IMMEDIATE");
  if (status) status = connection.Run(std::string(sql));
  if (status) status = connection.Run(fmt::format("PRAGMA application_id = {}", kApplicationId));
  if (status) status = connection.Run(fmt::format("PRAGMA user_version = {}", to));
  if (status) status = connection.Run("COMMIT");
  if (status) return Ok{};
  if (connection.in_transaction()) {
    if (const Status undone = connection.Run("ROLLBACK"); !undone) return undone.error();
  }
  return Error{fmt::format("cannot bring the database to version {}: {}", to, status.error().message)};
}

}  // namespace

const std::vector<std::string_view>& Migrations() {
  static const std::vector<std::string_view> all = {kFirst, kLedger, kWorkDone, kExitCode};
  return all;
}

Status CheckSchema(SqliteConnection& connection, std::size_t newest) {
  const auto application = connection.Number("PRAGMA application_id");
  if (!application) return application.error();
  const auto version = connection.Number("PRAGMA user_version");
  if (!version) return version.error();
  const auto tables = connection.Number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tables.error();
  const bool fresh = *application == 0 && *version == 0 && *tables == 0;
  if (!fresh && *application != kApplicationId) {
    return Error{fmt::format(
        "'{}' is a database of another program: nothing was changed; choose another folder with --data",
        connection.path())};
  }
  if (*version < 0 || static_cast<std::size_t>(*version) > newest) {
    return Error{fmt::format(
        "the database '{}' has version {}, and this Voda knows versions up to {}: nothing was changed; "
        "use the newer Voda that wrote it, or choose another folder with --data",
        connection.path(), *version, newest)};
  }
  return Ok{};
}

Status Migrate(SqliteConnection& connection, const std::vector<std::string_view>& migrations) {
  const auto version = connection.Number("PRAGMA user_version");
  if (!version) return version.error();
  for (auto at = static_cast<std::size_t>(*version); at < migrations.size(); ++at) {
    if (Status status = RunMigration(connection, migrations[at], at + 1); !status) return status;
  }
  return Ok{};
}

}  // namespace voda
