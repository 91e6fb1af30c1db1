#include "ledger/sqlite_ledger.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace voda {

namespace {

// The most keys that one call forgets: it runs between rounds. The rest is for the next.
constexpr int kMostForgotten = 10'000;

void ReadFound(SqliteQuery& row, FoundJob& job) {
  std::string state, document;
  row.ReadAll(job.id, job.name, job.gpu_type, job.token, job.created, job.deleting, state, document);
  job.state = ReadJobState(state).state;
  auto specs = ParseJobs(document);
  if (specs && specs->size() == 1) {
    job.spec = std::make_shared<const JobSpec>(std::move(specs->front()));
  } else {
    // It was valid when it was accepted: an older version read it otherwise.
    job.refusal = fmt::format("its stored document cannot be read by this version: {}",
                              specs ? "it holds several documents" : specs.error().message);
  }
}

}  // namespace

SqliteLedger::SqliteLedger(Store& store) : store_(store), stops_(store.connection().path() + "-stops") {
  store.Add(*this);
}

Result<LedgerContents> SqliteLedger::Read() {
  LedgerContents contents;
  SqliteQuery settings = store_.Query("SELECT key, value FROM settings");
  while (settings.Step()) {
    std::string key;
    settings.Read(key);
    settings.Read(contents.settings[key]);
  }
  if (const Status status = settings.status(); !status) return status.error();

  SqliteQuery nodes = store_.Query("SELECT name, gpu_type, state, gpus FROM nodes ORDER BY name");
  auto declared = Store::Rows<NodeRecord>(nodes, [](SqliteQuery& row, NodeRecord& node) {
    row.ReadAll(node.name, node.gpu_type, node.state, node.gpus);
  });
  if (!declared) return declared.error();
  contents.nodes = std::move(*declared);

  SqliteQuery jobs = store_.Query(
      "SELECT id, name, gpu_type, token, submitted, deleting, state, document FROM ledger ORDER BY id");
  auto found = Store::Rows<FoundJob>(jobs, ReadFound);
  if (!found) return found.error();
  contents.jobs = std::move(*found);
  for (FoundJob& job : contents.jobs) {
    const auto stop = stops_.all().find(job.name);
    if (stop == stops_.all().end()) continue;
    if (stop->second == Stop::kDelete) job.deleting = true;
    if (stop->second == Stop::kHold && job.state) job.state->held = true;
  }
  return contents;
}

void SqliteLedger::ForgetBefore(double time) {
  store_.Write(
      "DELETE FROM idempotency WHERE key IN (SELECT key FROM idempotency WHERE time < ? ORDER BY time LIMIT "
      "?)",
      time, kMostForgotten);
}

// `otherwise`: what is asked for can be kept without the store, where the disk fails it.
void SqliteLedger::OnCommit(Done done, std::function<bool()> otherwise) {
  store_.OnCommit([this, done = std::move(done), otherwise = std::move(otherwise)](const Status& committed) {
    const bool kept = committed || (otherwise && store_.disk_failed() && otherwise());
    done(kept ? std::nullopt
              : std::optional(Unavailable("nothing was accepted: " + committed.error().message)));
  });
}

std::optional<JobState> SqliteLedger::StateOf(const std::string& job) {
  SqliteQuery query = store_.Query("SELECT state FROM ledger WHERE name = ?");
  query.Bind(job);
  std::string text;
  if (query.Step()) query.Read(text);
  return ReadJobState(text).state;
}

void SqliteLedger::Accept(std::vector<LedgerJob> jobs, const std::optional<SubmissionKey>& key, Done done) {
  std::vector<std::string> names;
  double now = 0;
  for (const LedgerJob& job : jobs) {
    store_.Write(
        "INSERT INTO ledger (id, name, gpu_type, token, submitted, deleting, state, document) VALUES "
        "(?, ?, ?, ?, ?, 0, ?, ?)",
        job.id, job.name, job.gpu_type, job.token, job.submitted, WriteJobState(job.name, job.state),
        job.spec->document);
    names.push_back(job.name);
    now = std::max(now, job.submitted);
  }
  if (key) {
    store_.Write("INSERT OR REPLACE INTO idempotency (key, body_hash, time, jobs) VALUES (?, ?, ?, ?)",
                 key->key, key->body_hash, now, fmt::format("{}", fmt::join(names, " ")));
  }
  OnCommit(std::move(done));
}

Result<std::optional<Submission>> SqliteLedger::Find(const std::string& key) {
  SqliteQuery query = store_.Query("SELECT body_hash, jobs FROM idempotency WHERE key = ?");
  query.Bind(key);
  std::optional<Submission> found;
  if (query.Step()) {
    std::string jobs;
    found.emplace();
    query.ReadAll(found->body_hash, jobs);
    for (const std::string_view job : SplitWords(jobs)) found->jobs.emplace_back(job);
  }
  if (const Status status = query.status(); !status) return status.error();
  return found;
}

void SqliteLedger::Change(const std::string& job, const JobState& state, Done done) {
  store_.Write("UPDATE ledger SET state = ? WHERE name = ?", WriteJobState(job, state), job);
  changed_.insert(job);
  OnCommit(std::move(done), [this, job, state] {
    // Only that it is held is kept: more must not be asked for.
    const auto before = StateOf(job);
    const bool only_held =
        state.held && before && before->priority == state.priority && before->limits == state.limits;
    return only_held && stops_.Put(job, Stop::kHold);
  });
}

void SqliteLedger::Remove(const std::string& job, std::function<void(Answer<Removal>)> done) {
  store_.Write("UPDATE ledger SET deleting = 1 WHERE name = ?", job);
  OnCommit([done = std::move(done)](
               const std::optional<Refusal>& failed) { failed ? done(*failed) : done(Removal::kMarked); },
           [this, job] { return stops_.Put(job, Stop::kDelete); });
}

void SqliteLedger::End(const std::string& job, std::function<void()> then) {
  ended_[job].push_back(std::move(then));
}

void SqliteLedger::Refuse(const std::string& job, const std::string&) {
  End(job, [] {});
}

void SqliteLedger::Set(const std::map<std::string, std::string>& settings, Done done) {
  for (const auto& [key, value] : settings)
    store_.Write("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", key, value);
  OnCommit(std::move(done));
}

void SqliteLedger::PutNode(const NodeRecord& node, Done done) {
  store_.Write("INSERT OR REPLACE INTO nodes (name, gpu_type, state, gpus) VALUES (?, ?, ?, ?)", node.name,
               node.gpu_type, node.state, node.gpus);
  OnCommit(std::move(done));
}

void SqliteLedger::RemoveNode(const std::string& name, Done done) {
  store_.Write("DELETE FROM nodes WHERE name = ?", name);
  OnCommit(std::move(done));
}

void SqliteLedger::Write() {
  for (const auto& [job, stop] : stops_.all()) {
    if (stop == Stop::kDelete) {
      store_.Write("UPDATE ledger SET deleting = 1 WHERE name = ?", job);
    } else if (auto state = StateOf(job); state && !changed_.contains(job)) {
      state->held = true;
      store_.Write("UPDATE ledger SET state = ? WHERE name = ?", WriteJobState(job, *state), job);
    }
  }
  for (const auto& [job, then] : ended_) store_.Write("DELETE FROM ledger WHERE name = ?", job);
}

void SqliteLedger::Written() {
  changed_.clear();
  stops_.Clear();
  stops_.Reserve();
  for (const auto& [job, all] : std::exchange(ended_, {})) {
    for (const auto& then : all) then();
  }
}

}  // namespace voda
