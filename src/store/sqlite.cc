#include "store/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

namespace voda {

namespace {

constexpr int kBusyMillis = 1000;
// The SQL of a filter differs with what it filters by; more than these are prepared anew.
constexpr std::size_t kMostStatements = 128;

}  // namespace

Error Damaged(const std::string& path, std::string_view what) {
  return Error{fmt::format(
      "the database '{0}' is damaged or not a database ({1}): move '{0}' and the files '{0}-*' away, "
      "then put back a copy you trust, or let `voda store rebuild` make one of the folders of jobs",
      path, what)};
}

void CloseSqlite::operator()(sqlite3* handle) const {
  sqlite3_close_v2(handle);
}

void FinalizeStatement::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteQuery::SqliteQuery(const SqliteConnection& connection, sqlite3_stmt* statement)
    : connection_(connection), statement_(statement) {
  if (statement_ == nullptr) error_ = connection_.Describe(SQLITE_ERROR);
}

SqliteQuery::~SqliteQuery() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void SqliteQuery::Check(int code) {
  if (code != SQLITE_OK && !error_) error_ = connection_.Describe(code);
}

SqliteQuery& SqliteQuery::Bind(std::int64_t value) {
  if (statement_ != nullptr) Check(sqlite3_bind_int64(statement_, ++parameter_, value));
  return *this;
}

SqliteQuery& SqliteQuery::Bind(double value) {
  if (statement_ != nullptr) Check(sqlite3_bind_double(statement_, ++parameter_, value));
  return *this;
}

SqliteQuery& SqliteQuery::Bind(std::string_view value) {
  if (statement_ == nullptr) return *this;
  const char* text = value.data() != nullptr ? value.data() : "";  // a null pointer would bind NULL
  Check(sqlite3_bind_text64(statement_, ++parameter_, text, value.size(), SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

SqliteQuery& SqliteQuery::Bind(const std::optional<double>& value) {
  if (value) return Bind(*value);
  if (statement_ != nullptr) Check(sqlite3_bind_null(statement_, ++parameter_));
  return *this;
}

bool SqliteQuery::Step() {
  if (error_) return false;
  column_ = 0;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) error_ = connection_.Describe(code);
  return false;
}

Status SqliteQuery::Run() {
  while (Step()) {
  }
  return status();
}

Status SqliteQuery::status() const {
  if (error_) return *error_;
  return Ok{};
}

void SqliteQuery::Read(std::int64_t& value) {
  value = sqlite3_column_int64(statement_, column_++);
}

void SqliteQuery::Read(int& value) {
  const std::int64_t wide = sqlite3_column_int64(statement_, column_++);
  value = static_cast<int>(std::min<std::int64_t>(
      std::max<std::int64_t>(wide, std::numeric_limits<int>::min()), std::numeric_limits<int>::max()));
}

void SqliteQuery::Read(bool& value) {
  value = sqlite3_column_int64(statement_, column_++) != 0;
}

void SqliteQuery::Read(double& value) {
  value = sqlite3_column_double(statement_, column_++);
}

void SqliteQuery::Read(std::string& value) {
  // The pointer first, then its length: that order is the one SQLite promises.
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
  const int bytes = sqlite3_column_bytes(statement_, column_);
  ++column_;
  if (text == nullptr || bytes <= 0) {
    value.clear();
  } else {
    value.assign(text, static_cast<std::size_t>(bytes));
  }
}

void SqliteQuery::Read(std::optional<double>& value) {
  value.reset();
  if (sqlite3_column_type(statement_, column_) != SQLITE_NULL) {
    value = sqlite3_column_double(statement_, column_);
  }
  ++column_;
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path) {
  std::unique_ptr<SqliteConnection> made(new SqliteConnection(path));
  sqlite3* handle = nullptr;
  // One thread uses it, so SQLite need not lock itself. The name is a file's, whatever it looks like.
  constexpr int kFlags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE;
  const std::string file = path.empty() || path[0] == '/' ? path : "./" + path;
  const int code = sqlite3_open_v2(file.c_str(), &handle, kFlags, nullptr);
  made->handle_.reset(handle);
  if (code != SQLITE_OK) return made->Describe(code);
  if (sqlite3_db_readonly(handle, "main") == 1) return made->Describe(SQLITE_READONLY);
  sqlite3_busy_timeout(handle, kBusyMillis);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return made;
}

SqliteQuery SqliteConnection::Query(std::string_view sql) {
  auto found = statements_.find(sql);
  if (found == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return {*this, nullptr};
    if (statements_.size() >= kMostStatements) {
      for (auto at = statements_.begin(); at != statements_.end();) {
        at = sqlite3_stmt_busy(at->second.get()) != 0 ? std::next(at) : statements_.erase(at);
      }
    }
    found = statements_.try_emplace(std::string(sql), statement).first;
  }
  VODA_CHECK(sqlite3_stmt_busy(found->second.get()) == 0);
  return {*this, found->second.get()};
}

Status SqliteConnection::Run(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return Describe(code);
  return Ok{};
}

Result<std::int64_t> SqliteConnection::Number(std::string_view sql) {
  SqliteQuery query = Query(sql);
  std::int64_t value = 0;
  if (query.Step()) query.Read(value);
  if (const Status status = query.status(); !status) return status.error();
  return value;
}

std::int64_t SqliteConnection::last_id() const {
  return sqlite3_last_insert_rowid(handle_.get());
}

std::int64_t SqliteConnection::changed() const {
  return sqlite3_changes64(handle_.get());
}

bool SqliteConnection::in_transaction() const {
  return sqlite3_get_autocommit(handle_.get()) == 0;
}

bool SqliteConnection::busy() const {
  return (sqlite3_errcode(handle_.get()) & 0xff) == SQLITE_BUSY;
}

bool SqliteConnection::disk_failed() const {
  const int code = sqlite3_errcode(handle_.get()) & 0xff;
  return code == SQLITE_FULL || code == SQLITE_IOERR;
}

void SqliteConnection::FoldLogOnClose(bool fold) {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, fold ? 0 : 1, nullptr);
}

Error SqliteConnection::Describe(int code) const {
  sqlite3* const handle = handle_.get();
  // A statement that could not be prepared: the connection knows why.
  if (code == SQLITE_ERROR && handle != nullptr) code = sqlite3_extended_errcode(handle);
  const char* said = handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(code);
  const int system = handle != nullptr ? sqlite3_system_errno(handle) : 0;
  const std::string cause = system != 0 ? fmt::format("{}: {}", said, std::strerror(system)) : said;
  switch (code & 0xff) {
    case SQLITE_FULL:
      return Error{
          fmt::format("no space left for the database '{}' ({}): free some on its disk", path_, cause)};
    case SQLITE_READONLY:
      return Error{fmt::format(
          "the database '{}' cannot be written ({}): make the file and its folder writable for the "
          "user that runs Voda, or choose another folder with --data",
          path_, cause)};
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Error{
          fmt::format("the database '{}' cannot be opened ({}): check that its folder and the file may be "
                      "read and written "
                      "by the user that runs Voda, or choose another folder with --data",
                      path_, cause)};
    case SQLITE_IOERR:
      return Error{fmt::format("reading or writing the database '{}' failed ({}, code {}): look at its disk",
                               path_, cause, code)};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Damaged(path_, cause);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error{fmt::format("the database '{}' is in use by another process", path_)};
    default:
      return Error{fmt::format("the database '{}': {}", path_, cause)};
  }
}

}  // namespace voda
