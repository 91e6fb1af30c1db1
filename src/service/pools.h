// Pools: the nodes of each GPU type with the scheduler over them. A pool is made when its type is first
// named, with the algorithm and the rate limit that were set for it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/job_cluster.h"
#include "core/scheduler.h"
#include "estimate/collector.h"
#include "history/history.h"
#include "service/config.h"

namespace voda {

struct Pool {
  std::string gpu_type;
  std::unique_ptr<Cluster> port;  // the scheduler's
  std::unique_ptr<Scheduler> scheduler;
  std::string algorithm;
  PolicyOptions options;
  Collector collector;
  ActionId next_action = 1;  // those before it were looked at
  double last_round = 0;     // when; 0: none yet

  const State& state() const { return scheduler->state(); }
};

// As a setting: "Tiresias threshold=1800".
std::string AlgorithmText(const std::string& algorithm, const PolicyOptions& options);

// Brings what the scheduler counts of a job into its record.
void Account(const Pool& pool, JobRecord& record);
// Who decides in this pool, on a view of it.
std::shared_ptr<const Decider> DeciderOf(const Pool& pool, double now);

class Pools {
 public:
  // Called before each action is carried out.
  using Before = std::function<void(const Action& action, const Pool& pool)>;
  // Everything given outlives it.
  Pools(const ServiceConfig& config, JobCluster& cluster, History& history, Before before);

  // What was set at run time; before the first pool.
  void UseSettings(std::map<std::string, std::string> settings) { settings_ = std::move(settings); }
  Result<Pool*> For(const std::string& gpu_type);
  Pool* Find(const std::string& gpu_type);
  const Pool* Find(const std::string& gpu_type) const;
  Pool& At(const std::string& gpu_type) { return *Find(gpu_type); }
  std::map<std::string, Pool>& all() { return pools_; }
  const std::map<std::string, Pool>& all() const { return pools_; }

  std::vector<std::string> Types() const;  // sorted
  // Why a GPU type is refused, with the types that there are.
  std::string NoSuchType(const std::string& gpu_type) const;

 private:
  class Port;

  Result<std::unique_ptr<Policy>> PolicyFor(Pool& pool) const;
  void RestoreMeans(Pool& pool, const std::vector<MeanRecord>& means) const;

  const ServiceConfig& config_;
  JobCluster& cluster_;
  History& history_;
  Before before_;
  std::map<std::string, std::string> settings_;
  std::map<std::string, Pool> pools_;
};

}  // namespace voda
