// Jobs: the jobs there are, active and ended, by id and by name.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/refusal.h"
#include "history/records.h"
#include "ledger/ledger.h"
#include "service/progress.h"
#include "service/progress_file.h"
#include "spec/job_spec.h"

namespace voda {

struct JobEntry {
  JobRecord record;
  std::shared_ptr<const JobSpec> spec;  // while it is active
  JobProgress progress;
  std::shared_ptr<ProgressFile> csv;
  std::vector<std::string> nodes;  // of its workers, "" where one is down
  std::string stuck;               // what its latest change waits for; empty: it does not wait
};

// The job as its cluster is told of it, while it is active.
AcceptedJob Accepted(const JobEntry& job);

Refusal NoJob(const std::string& name);

class Jobs {
 public:
  // Null: there is none. A name may be taken without a job: see Reserve.
  JobEntry* Find(std::string_view name);
  const JobEntry* Find(std::string_view name) const;
  JobEntry* Find(std::int64_t id);
  const JobEntry* Find(std::int64_t id) const;
  const std::map<std::int64_t, JobEntry>& all() const { return jobs_; }

  // Ids ascend and are never used again. `last` is the highest of earlier runs.
  void StartIdsAfter(std::int64_t last) { last_id_ = std::max(last_id_, last); }
  std::int64_t NewId() { return ++last_id_; }

  // The name is taken, by a job that is being accepted or that is not there yet.
  void Reserve(const std::string& name) { names_.emplace(name, 0); }
  void Free(const std::string& name);  // a name that was reserved
  bool Taken(const std::string& name) const { return names_.contains(name); }

  // The record has its id and its name, which may be reserved.
  JobEntry& Add(JobRecord record);
  void Rename(JobEntry& job, std::string name);
  void Remove(std::int64_t id);

  // The job's record is to be written to the history.
  void Touch(const JobEntry& job) { touched_.insert(job.record.id); }
  std::set<std::int64_t> TakeTouched() { return std::exchange(touched_, {}); }

 private:
  std::map<std::int64_t, JobEntry> jobs_;
  std::unordered_map<std::string, std::int64_t> names_;  // 0: reserved
  std::set<std::int64_t> touched_;
  std::int64_t last_id_ = 0;
};

}  // namespace voda
