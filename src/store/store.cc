#include "store/store.h"

#include <algorithm>

#include "base/log.h"
#include "store/open_file.h"

namespace voda {

Result<std::unique_ptr<Store>> Store::Open(const std::string& path) {
  auto connection = OpenDatabaseFile(path);
  if (!connection) return connection.error();
  return std::unique_ptr<Store>(new Store(std::move(*connection)));
}

bool Store::Begin() {
  if (!begun_) {
    begun_ = true;
    Keep(connection_->Query("BEGIN IMMEDIATE").Run());
  }
  return !failed_;
}

void Store::Keep(const Status& status) {
  if (status || failed_) return;
  failed_ = status.error();
  disk_failed_ = connection_->disk_failed();
}

void Store::Undo() {
  // Where SQLite undid it already, as on a full disk, there is nothing left to undo. Where undoing fails, the
  // next transaction reports it.
  if (connection_->in_transaction()) (void)connection_->Query("ROLLBACK").Run();
}

void Store::CommitAll() {
  const bool any = std::any_of(backlogs_.begin(), backlogs_.end(),
                               [](const Backlog* backlog) { return !backlog->Empty(); });
  if (any) Begin();
  Commit();
}

void Store::Commit() {
  if (!Waiting()) return;
  Begin();
  for (Backlog* backlog : backlogs_) backlog->Write();
  if (!failed_) Keep(connection_->Query("COMMIT").Run());
  const Status outcome = failed_ ? Status(*failed_) : Status(Ok{});
  if (!outcome) Undo();
  begun_ = false;
  failed_.reset();
  if (outcome) disk_failed_ = false;
  if (outcome) {
    if (!error_.empty()) Log(LogLevel::kInfo, "store takes writes again");
    error_.clear();
    for (Backlog* backlog : backlogs_) backlog->Written();
  } else {
    if (error_ != outcome.error().message)
      Log(LogLevel::kError, "store cannot be written", {{"error", outcome.error().message}});
    error_ = outcome.error().message;
    for (Backlog* backlog : backlogs_) backlog->Failed();
  }
  for (const auto& then : std::exchange(at_commit_, {})) then(outcome);
}

}  // namespace voda
