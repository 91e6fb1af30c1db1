// A thin face of SQLite's C API for this folder: a connection, its prepared statements, errors as sentences.
//
// Values go in through Bind and come out through Read, in the order of the statement's parameters and
// columns; SQL text is ours alone, never anything from outside.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace voda {

// The error of a file that is no database or a broken one, and what to do about it.
Error Damaged(const std::string& path, std::string_view what);

struct CloseSqlite {
  void operator()(sqlite3* handle) const;
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const;
};

class SqliteConnection;

// One execution of a statement: bind, then step through its rows. The first error ends it and stays.
class SqliteQuery {
 public:
  SqliteQuery(const SqliteConnection& connection, sqlite3_stmt* statement);  // null: it could not be prepared
  SqliteQuery(const SqliteQuery&) = delete;
  SqliteQuery& operator=(const SqliteQuery&) = delete;
  ~SqliteQuery();

  // The next parameter. Text is borrowed: it must live as long as the query.
  SqliteQuery& Bind(std::int64_t value);
  SqliteQuery& Bind(int value) { return Bind(std::int64_t{value}); }
  SqliteQuery& Bind(bool value) { return Bind(std::int64_t{value}); }
  SqliteQuery& Bind(double value);
  SqliteQuery& Bind(std::string_view value);
  SqliteQuery& Bind(const std::string& value) { return Bind(std::string_view(value)); }
  SqliteQuery& Bind(const std::optional<double>& value);

  // Goes to the next row; false where there is none, or on an error.
  bool Step();
  // Steps to the end; what it did, or its error.
  Status Run();
  // How the steps went so far.
  Status status() const;

  // The next column of the row.
  void Read(std::int64_t& value);
  void Read(int& value);
  void Read(bool& value);
  void Read(double& value);
  void Read(std::string& value);
  void Read(std::optional<double>& value);
  // The next columns, in order.
  template <class... Values>
  void ReadAll(Values&... values) {
    (Read(values), ...);
  }

 private:
  void Check(int code);

  const SqliteConnection& connection_;
  sqlite3_stmt* statement_;
  int parameter_ = 0;
  int column_ = 0;
  std::optional<Error> error_;
};

class SqliteConnection {
 public:
  // Opens the file, which must exist, for reading and writing.
  static Result<std::unique_ptr<SqliteConnection>> Open(const std::string& path);

  // Prepared once and kept: for SQL from a fixed set.
  SqliteQuery Query(std::string_view sql);
  // Runs statements that give no rows.
  Status Run(const std::string& sql);
  // The only column of the only row.
  Result<std::int64_t> Number(std::string_view sql);

  std::int64_t last_id() const;
  std::int64_t changed() const;  // rows of the last statement
  bool in_transaction() const;
  bool busy() const;         // the last call failed because another process has the file
  bool disk_failed() const;  // it failed because the disk is full or broken
  // Off: the file stays as it is when the connection is closed, and so does the log beside it.
  void FoldLogOnClose(bool fold);

  // What a code of SQLite means for whoever runs Voda.
  Error Describe(int code) const;
  const std::string& path() const { return path_; }

 private:
  explicit SqliteConnection(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::unique_ptr<sqlite3, CloseSqlite> handle_;
  std::map<std::string, std::unique_ptr<sqlite3_stmt, FinalizeStatement>, std::less<>> statements_;
};

}  // namespace voda
