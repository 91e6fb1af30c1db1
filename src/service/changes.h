// JobChanges: what users ask of jobs that are there: an end, a hold, other limits.
//
// Of one job, one change is made at a time: a request that comes while another is being kept waits for it and
// builds on what it made. A job's record changes when the change is durable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "cluster/job_cluster.h"
#include "history/history.h"
#include "ledger/ledger.h"
#include "service/announcer.h"
#include "service/job_events.h"

namespace voda {

class JobChanges {
 public:
  // Everything given outlives it.
  struct Parts {
    Jobs& jobs;
    Pools& pools;
    JobEvents& events;
    Ledger& ledger;
    History& history;
    JobCluster& cluster;
    Announcer& announcer;
  };
  explicit JobChanges(Parts parts) : parts_(parts) {}

  using Done = std::function<void(Answer<std::int64_t>)>;  // the job's id
  // Stops it. Where the ledger keeps jobs that have ended, their records can be removed, too; the history
  // stays.
  void Delete(const std::string& job, Done done);
  // Removes one that has ended: its files, with checkpoints and logs, and its history.
  void Erase(const std::string& job, Done done);
  void Hold(const std::string& job, bool held, Done done);
  // What is not given stays as it is.
  struct Wish {
    std::optional<int> priority, min, num, max;
  };
  void Change(const std::string& job, const Wish& wish, Done done);

  // What an action makes of a job's state goes with the write that carries it out.
  void NoteBefore(const Action& action, const Pool& pool);
  // A job that is kept no more.
  void Drop(std::int64_t id);

 private:
  // What users ask for, of a job's state.
  struct Asked {
    bool held;
    int priority;
    Limits limits;
  };
  struct Pending {
    std::optional<Asked> asked;  // that is being kept
    std::vector<std::function<void()>> waiting;
  };
  Answer<JobEntry*> Active(const std::string& name);
  bool Waits(std::int64_t id, std::function<void()> again);
  std::vector<std::function<void()>> Release(std::int64_t id);
  JobState WithAsked(const JobRecord& record) const;
  // Keeps the state and then carries it out: in the record, which was `before`, and by `then`.
  using Then = std::function<void(JobEntry& job, const JobState& before)>;
  void Write(const JobEntry& job, const Asked& asked, Done done, Then then);

  Parts parts_;
  std::map<std::int64_t, Pending> pending_;
};

}  // namespace voda
