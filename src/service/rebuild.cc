#include "service/rebuild.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "history/sqlite_history.h"
#include "ledger/sqlite_ledger.h"
#include "local/job_folder.h"
#include "service/job_names.h"

namespace voda {

namespace {

using local::ExitVerdict;
using local::JobFolder;
using local::JobIdentity;

// What the store knows.
struct Known {
  std::map<std::int64_t, std::string> ids;  // and tokens
  std::set<std::string> names;
  std::set<std::string> tokens;

  void Add(std::int64_t id, const std::string& name, const std::string& token) {
    ids.emplace(id, token);
    names.insert(name);
    tokens.insert(token);
  }
};

Result<Known> ReadKnown(SqliteLedger& ledger, SqliteHistory& history) {
  Known known;
  const auto contents = ledger.Read();
  if (!contents) return contents.error();
  for (const FoundJob& job : contents->jobs) known.Add(job.id, job.name, job.token);
  const auto records = history.Jobs();
  if (!records) return records.error();
  for (const JobRecord& job : *records) known.Add(job.id, job.name, job.token);
  return known;
}

// A job of which a folder tells.
struct ToldJob {
  JobIdentity identity;
  std::shared_ptr<const JobSpec> spec;
  std::optional<double> ended;
  JobStatus status = JobStatus::kCanceled;  // of one that has ended
  int exit_code = kNoExitCode;
};

// How a job ended, by the records of its starts.
void TakeEnd(const std::vector<local::StartRecord>& starts, ToldJob& told) {
  const auto take = [&told](JobStatus status, const std::optional<local::ExitRecord>& exit) {
    told.status = status;
    if (exit) told.exit_code = exit->status();
  };
  const local::StartRecord* last = nullptr;  // of worker 0, whose end is the job's
  for (const local::StartRecord& start : starts) {
    if (start.worker == 0) last = &start;
    if (!start.verdict) continue;
    if (start.verdict->kind == ExitVerdict::Kind::kCompleted) return take(JobStatus::kCompleted, start.exit);
    if (start.verdict->kind == ExitVerdict::Kind::kFatal) return take(JobStatus::kFailed, start.exit);
  }
  // A full disk takes no verdict, but always the exit.
  if (last == nullptr || last->verdict || !last->exit || last->exit->asked) return;
  take(last->exit->success() ? JobStatus::kCompleted : JobStatus::kFailed, last->exit);
}

Result<ToldJob> ReadFolder(const JobFolder& folder, std::int64_t id, const Known& known) {
  const auto identity = folder.Identity();
  if (!identity) return identity.error();
  if (!*identity) return Error{"it does not say which job it belongs to"};
  ToldJob told{.identity = **identity};
  if (told.identity.id != id) return Error{fmt::format("it belongs to job number {}", told.identity.id)};
  if (known.tokens.contains(told.identity.token)) return Error{"its job is known under another number"};
  auto specs = ParseJobs(told.identity.document);
  if (!specs) return specs.error();
  if (specs->size() != 1) return Error{"its document is not that of one job"};
  told.spec = std::make_shared<const JobSpec>(std::move(specs->front()));
  const auto ended = folder.End();
  if (!ended) return ended.error();
  told.ended = *ended;
  if (!told.ended) return told;
  const auto starts = folder.Starts();
  if (!starts) return starts.error();
  TakeEnd(*starts, told);
  return told;
}

JobRecord RecordOf(const ToldJob& told, std::string name) {
  JobRecord record;
  record.id = told.identity.id;
  record.name = std::move(name);
  record.gpu_type = told.identity.gpu_type;
  record.token = told.identity.token;
  record.submitted = told.identity.accepted;
  record.category = told.spec->category;
  record.kind = told.spec->kind;
  record.priority = told.spec->priority;
  record.limits = told.spec->limits;
  record.gpus_per_worker = told.spec->gpus_per_worker;
  record.total_epochs = told.spec->epochs;
  record.status = told.ended ? told.status : JobStatus::kWaiting;
  record.ended = told.ended;
  record.exit_code = told.exit_code;
  if (told.ended) record.message = "brought back from its folder after the loss of the store";
  return record;
}

}  // namespace

Result<Rebuilt> RebuildStore(const std::string& data) {
  const std::string jobs = data + "/jobs";
  const auto lock = local::LockJobs(jobs);
  if (!lock) return lock.error();
  const auto ids = local::JobIds(jobs);
  if (!ids) return ids.error();
  const auto store = Store::Open(data + "/voda.db");
  if (!store) return store.error();
  SqliteHistory history(**store);
  SqliteLedger ledger(**store);
  auto known = ReadKnown(ledger, history);
  if (!known) return known.error();

  Rebuilt rebuilt;
  std::vector<LedgerJob> active;
  for (const std::int64_t id : *ids) {
    const std::string path = fmt::format("{}/{}", jobs, id);
    if (const auto at = known->ids.find(id); at != known->ids.end()) {
      const auto ours = JobFolder(path).BelongsTo(at->second);
      if (!ours) rebuilt.left.push_back(fmt::format("{}: {}", path, ours.error().message));
      if (ours && !*ours) {
        rebuilt.left.push_back(fmt::format(
            "{}: the store knows another job of this number; move the folder away, so that the job "
            "of the store can be started",
            path));
      }
      continue;
    }
    const auto told = ReadFolder(JobFolder(path), id, *known);
    if (!told) {
      rebuilt.left.push_back(fmt::format("{}: {}", path, told.error().message));
      continue;
    }
    std::string name = told->identity.name;
    const auto taken = [&known](const std::string& other) { return known->names.contains(other); };
    if (taken(name)) name = UniqueJobName(told->spec->name, told->identity.accepted, taken);
    const JobRecord record = RecordOf(*told, name);
    known->Add(id, name, record.token);
    if (told->ended) {
      history.Put(record);
      history.PutDocument(id, told->spec->document);
      rebuilt.ended.push_back(name);
    } else {
      active.push_back({{id, name, record.gpu_type, record.token, told->spec}, record.submitted, record});
      rebuilt.active.push_back(name);
    }
  }
  Status kept = Ok{};
  ledger.Accept(std::move(active), std::nullopt, [&kept](const std::optional<Refusal>& refused) {
    if (refused) kept = Error{refused->message};
  });
  history.Flush();
  if (!kept) return kept.error();
  return rebuilt;
}

}  // namespace voda
