// Database: what Voda remembers, in one SQLite file (WAL). One thread uses it.
//
// Writes are collected in a transaction that the caller ends with Commit; until then nothing is durable, and
// callers answer no one. Errors are values: a full disk or a read-only folder is reported by Commit, which
// then keeps nothing of the transaction.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda {

struct JobRecord {
  std::int64_t id = 0;
  std::string name;
  std::string category;
  std::string gpu_type;
  std::string kind;
  std::string document;  // JobSpec::document
  std::string token;
  std::string status = "Submitted";
  std::string message;
  std::string warnings;  // joined by newlines
  bool held = false;
  bool deleting = false;  // canceled by its user; its workers are being stopped
  int priority = 0;
  int min = 1, num = 1, max = 1;
  int gpus_per_worker = 1;
  double submitted = 0;
  std::optional<double> first_started, ended;
  // Totals, and what the policies count (since the last promotion).
  double waited = 0, ran = 0, gpu_seconds = 0;
  double attained = 0, waiting = 0, running = 0;
  std::optional<double> last_change, last_start;
  double accounted = 0;  // when the totals were brought up to date
  int starts = 0;
  int failures = 0;
  // Progress.
  int epoch = 0;  // epochs done
  int total_epochs = 0;
  std::optional<double> loss, progress_time;
};

struct SizeRecord {
  double time = 0;
  std::int64_t round = 0;
  int from = 0, to = 0;
  std::string reason, trigger;
};

struct RoundRecord {
  std::string gpu_type;
  std::int64_t round = 0;
  double time = 0;
  std::string algorithm, trigger, note;
  double seconds = 0;
  std::string changes;  // JSON array, as the API shows it
};

struct NodeRecord {
  std::string name, gpu_type, state;  // ready, cordoned, draining
  int gpus = 0;
  std::string devices;  // "0,1"
};

// A mean of the collector (estimate/collector.h): kind "epoch" has workers and nodes, "start", "rescale" and
// "migration" are stalls.
struct MeanRecord {
  std::string gpu_type, category, kind;
  int workers = 0, nodes = 0;
  double value = 0;
  int count = 0;
};

struct IdempotencyRecord {
  std::string key, body_hash;
  double time = 0;
  int status = 0;
  std::string content_type, body;
};

struct JobFilter {
  std::vector<std::string> statuses;  // empty: all
  std::string gpu_type, category, name_prefix;
  std::int64_t after = 0;  // id
  int limit = std::numeric_limits<int>::max();
  bool documents = true;  // false leaves JobRecord::document empty: for lists, as documents may be large
};

// What is kept of the past.
struct Retention {
  int ended_jobs = 20'000;
  double ended_seconds = 90 * 86400.0;
  int rounds = 20'000;
  int sizes_per_job = 1'000;  // the newest
  int means = 100'000;        // those written last
  double idempotency_seconds = 86400;
};

class Database {
 public:
  // Opens or makes the file, migrates its schema. A file that is no database, damaged (quick_check), of a
  // newer schema or in use by another process is an error that says what to do; nothing is changed then. The
  // file is held until the object is gone, or the process, however it ends; its children do not hold it.
  static Result<std::unique_ptr<Database>> Open(const std::string& path);
  virtual ~Database() = default;

  // After an error of Begin, writes do nothing and Commit returns that error: checking Commit is enough.
  virtual Status Begin() = 0;
  virtual Status Commit() = 0;  // durable when it returns; on an error everything since Begin is undone
  virtual void Rollback() = 0;

  // Within a transaction. A write that fails makes Commit fail, and those after it do nothing.
  // The job's new id, 0 where it failed; ids ascend and are never used again.
  virtual std::int64_t InsertJob(const JobRecord& job) = 0;
  virtual void UpdateJob(const JobRecord& job) = 0;  // all but document, token and name; it must exist
  virtual void RenameJob(std::int64_t job, const std::string& name) = 0;
  virtual void RemoveJob(std::int64_t job) = 0;  // with its sizes; no error where there is none
  virtual void AddSize(std::int64_t job, const SizeRecord& size) = 0;
  virtual void AddRound(const RoundRecord& round) = 0;
  virtual void PutNode(const NodeRecord& node) = 0;
  virtual void RemoveNode(const std::string& name) = 0;
  virtual void PutSetting(const std::string& key, const std::string& value) = 0;
  virtual void PutMean(const MeanRecord& mean) = 0;
  virtual void PutIdempotency(const IdempotencyRecord& record) = 0;
  // Removes what is past its cap or age, oldest first, and at most some thousand rows of each kind: the rest
  // is for the next call. Returns the ids, ascending, of jobs that are no longer kept once Commit succeeds;
  // jobs that have not ended are always kept.
  virtual std::vector<std::int64_t> Prune(const Retention& retention, double now) = 0;

  // Any time.
  virtual Result<std::vector<JobRecord>> Jobs(const JobFilter& filter) = 0;  // by id
  virtual Result<std::optional<JobRecord>> Job(const std::string& name) = 0;
  virtual Result<std::vector<SizeRecord>> Sizes(std::int64_t job) = 0;  // oldest first
  // Newest first, those with a round number below `before` (0: all); an empty type means all types. Callers
  // go on counting rounds after a restart.
  virtual Result<std::vector<RoundRecord>> Rounds(const std::string& gpu_type, std::int64_t before,
                                                  int limit) = 0;
  virtual Result<std::vector<NodeRecord>> Nodes() = 0;
  virtual Result<std::map<std::string, std::string>> Settings() = 0;
  virtual Result<std::vector<MeanRecord>> Means() = 0;
  virtual Result<std::optional<IdempotencyRecord>> Idempotency(const std::string& key) = 0;
};

}  // namespace voda
