// SqliteLedger: the ledger in Voda's own file. What the tasks of one batch ask for is one transaction.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ledger/ledger.h"
#include "ledger/stop_file.h"
#include "store/store.h"

namespace voda {

class SqliteLedger final : public Ledger, private Backlog {
 public:
  explicit SqliteLedger(Store& store);  // which outlives it

  Result<LedgerContents> Read();

  void Accept(std::vector<LedgerJob> jobs, const std::optional<SubmissionKey>& key, Done done) override;
  Result<std::optional<Submission>> Find(const std::string& key) override;
  void ForgetBefore(double time) override;
  void Change(const std::string& job, const JobState& state, Done done) override;
  void Note(const std::string&, const JobState&) override {}  // nothing else is written of a job here
  void Remove(const std::string& job, std::function<void(Answer<Removal>)> done) override;
  void End(const std::string& job, std::function<void()> then) override;
  bool KeepsEnded() const override { return false; }

  // Nobody else writes or reads here.
  void Refuse(const std::string& job, const std::string& why) override;
  void LookAgain() override {}
  void Tell(const std::string&, const JobWord&) override {}

  void Set(const std::map<std::string, std::string>& settings, Done done) override;
  void PutNode(const NodeRecord& node, Done done) override;
  void RemoveNode(const std::string& name, Done done) override;

  void Flush() override { store_.Commit(); }
  bool Waiting() const override { return store_.Waiting(); }

 private:
  bool Empty() const override { return ended_.empty() && stops_.all().empty(); }
  void Write() override;
  void Written() override;
  void Failed() override { changed_.clear(); }
  void OnCommit(Done done, std::function<bool()> otherwise = {});
  std::optional<JobState> StateOf(const std::string& job);

  Store& store_;
  StopFile stops_;
  std::set<std::string> changed_;  // jobs whose whole state is written by the transaction under way
  std::map<std::string, std::vector<std::function<void()>>> ended_;
};

}  // namespace voda
