// Takeover: what an earlier run left in the ledger, in the history and in the cluster, and the jobs that
// others put into the ledger later on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/sink.h"
#include "ledger/ledger.h"
#include "service/submitter.h"

namespace voda {

class Takeover {
 public:
  // Everything given outlives it.
  Takeover(Submitter::Parts parts, Submitter& submitter) : parts_(parts), submitter_(submitter) {}

  // Settings, nodes, jobs with their history, and what still runs of them.
  Status Restore(const LedgerContents& contents, const std::vector<TypedEvent>& nodes, double now);
  // A job that the service may not know is in the ledger.
  void Found(const FoundJob& found, double now);

 private:
  Status RestoreHistory(const LedgerContents& contents);
  bool MakeRoom(const FoundJob& found);
  void Refuse(const FoundJob& found, const std::string& why, double now);
  // `remembered`: the history has it. `halted`: the last that was heard of it is that it had run and waits.
  void Welcome(JobRecord record, bool remembered, bool halted, const FoundJob& found, double now);
  void Resume(JobRecord record, bool halted, const FoundJob& found, double now);
  void Lose(JobRecord record, const std::string& why, double now);

  Submitter::Parts parts_;
  Submitter& submitter_;
  bool restoring_ = false;
  std::map<std::string, JobRecord> absent_;  // of the history, not ended, and not found in the ledger yet
  // By how much the latest job was submitted after now, because the clock is earlier than it was. The jobs
  // keep their order, and those that come later stand behind them.
  double ahead_ = 0;
};

}  // namespace voda
