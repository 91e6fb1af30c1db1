// Submitter: decides whether submitted jobs are acceptable, has them kept, and starts them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "cluster/job_cluster.h"
#include "history/history.h"
#include "ledger/ledger.h"
#include "service/job_events.h"
#include "service/nodes.h"

namespace voda {

class Submitter {
 public:
  // Everything given outlives it.
  struct Parts {
    const ServiceConfig& config;
    Jobs& jobs;
    Pools& pools;
    Nodes& nodes;
    JobEvents& events;
    Ledger& ledger;
    History& history;
    JobCluster& cluster;
    Announcer& announcer;
    Metrics& metrics;
  };
  explicit Submitter(Parts parts) : parts_(parts) {}

  // `done` gets the ids of the jobs, when they are kept. A request whose key is known gets the jobs of the
  // first one.
  using Done = std::function<void(Answer<std::vector<std::int64_t>>)>;
  void Submit(std::vector<JobSpec> specs, const std::optional<SubmissionKey>& key, double now,
              const Done& done);
  // The records that these jobs would have, without ids.
  Answer<std::vector<JobRecord>> Admit(const std::vector<JobSpec>& specs, double now) const;
  // The record of one, without id and name. Where no type is given, it is that of the spec or of the nodes.
  Answer<JobRecord> RecordFor(const JobSpec& spec, const std::string& gpu_type, double now) const;

  // A job that is kept begins to wait for GPUs.
  void Start(JobRecord record, std::shared_ptr<const JobSpec> spec, double now);
  // Where the job writes its progress; empty: it has no such file.
  std::string CsvPath(const JobRecord& record) const;

 private:
  Answer<std::string> TypeFor(const JobSpec& spec) const;
  using Specs = std::vector<std::shared_ptr<const JobSpec>>;
  std::vector<std::int64_t> StartAll(std::vector<JobRecord> records, Specs specs, double now);
  void DropWarningsTold(std::vector<JobRecord>& records);

  Parts parts_;
  std::map<std::string, std::vector<std::function<void()>>> accepting_;  // keys: who sent one again
  std::set<std::string> told_ignored_;
};

}  // namespace voda
