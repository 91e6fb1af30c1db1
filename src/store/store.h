// Store: one SQLite file (WAL) with one transaction at a time, which everything that is kept in the file
// shares: the ledger and the history (schema.cc). One thread uses it.
//
// The first write begins a transaction, Commit ends it, and until then nothing is durable. Errors are values:
// a full disk or a read-only folder is reported when the transaction ends, and nothing of it is kept then.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/sqlite.h"

namespace voda {

// Writes that nobody waits for: they go with the next transaction, and with the one after it where that
// failed.
class Backlog {
 public:
  virtual ~Backlog() = default;
  virtual bool Empty() const = 0;
  virtual void Write() = 0;
  virtual void Written() = 0;  // what the last Write wrote is durable
  virtual void Failed() = 0;   // it is not, and has to be written again
};

class Store {
 public:
  // Opens or makes the file, migrates its schema. A file that is no database, damaged (quick_check), of a
  // newer schema or in use by another process is an error that says what to do; nothing is changed then. The
  // file is held until the object is gone, or the process, however it ends; its children do not hold it.
  static Result<std::unique_ptr<Store>> Open(const std::string& path);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // A write that fails makes the transaction fail, and those after it do nothing.
  template <class... Values>
  void Write(std::string_view sql, const Values&... values) {
    if (!Begin()) return;
    SqliteQuery query = connection_->Query(sql);
    (query.Bind(values), ...);
    Keep(query.Run());
  }
  // For a write with other values: Begin, Query and Keep.
  bool Begin();  // false: the transaction has failed
  void Keep(const Status& status);
  bool failed() const { return failed_.has_value(); }

  // Reads, within the transaction where there is one.
  SqliteQuery Query(std::string_view sql) { return connection_->Query(sql); }
  template <class Row, class ReadRow>
  static Result<std::vector<Row>> Rows(SqliteQuery& query, ReadRow&& read) {
    std::vector<Row> rows;
    while (query.Step()) read(query, rows.emplace_back());
    if (const Status status = query.status(); !status) return status.error();
    return rows;
  }
  SqliteConnection& connection() { return *connection_; }

  void Add(Backlog& backlog) { backlogs_.push_back(&backlog); }  // outlives the store's last commit
  // `then` is called at the end of the transaction, or of the next one: all of it is durable, or nothing.
  void OnCommit(std::function<void(const Status&)> then) { at_commit_.push_back(std::move(then)); }
  // Ends the transaction, with what the backlogs hold. Without one that was begun or that somebody waits for,
  // nothing happens. What is written by those who waited is the next transaction.
  void Commit();
  // The same, also where only backlogs have something to write.
  void CommitAll();
  bool Waiting() const { return begun_ || !at_commit_.empty(); }
  const std::string& Error() const { return error_; }  // of the last commit; empty: it went well
  bool disk_failed() const { return disk_failed_; }    // the last commit failed on a full or broken disk

 private:
  explicit Store(std::unique_ptr<SqliteConnection> connection) : connection_(std::move(connection)) {}
  void Undo();

  std::unique_ptr<SqliteConnection> connection_;
  bool begun_ = false;
  std::optional<voda::Error> failed_;  // of a write since the transaction began
  std::vector<std::function<void(const Status&)>> at_commit_;
  std::vector<Backlog*> backlogs_;
  std::string error_;
  bool disk_failed_ = false;
};

}  // namespace voda
