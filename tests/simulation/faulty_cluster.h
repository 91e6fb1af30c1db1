// FaultyCluster: a cluster behind the Cluster port that does what real ones do to a scheduler. Actions take
// random time, fail, or time out, with and without having been carried out; workers die; what happened unseen
// is reported later.
//
// It keeps the truth: which workers of which job really hold GPUs, and which seats it was a fault that put
// them there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ports.h"
#include "support/generators.h"

namespace voda::testing {

struct FaultRates {
  double fail = 0;  // an action fails and changes nothing
  double timeout_applied =
      0;                    // nobody hears of an action that was carried out; the workers are reported later
  double timeout_lost = 0;  // nobody hears of an action that was not
  double max_delay = 20;    // seconds until an outcome
};

class FaultyCluster final : public Cluster {
 public:
  FaultyCluster(Rng& rng, FaultRates rates) : rng_(rng), rates_(rates) {}

  void Execute(const Action& action, const PerNode<Node>& nodes) override;

  double now = 0;
  FaultRates& rates() { return rates_; }

  // The next time something happens by itself; infinity when nothing will.
  double NextTime() const;
  // Outcomes and reports due at `now`, in order.
  std::vector<Event> Due();

  // Faults and life from outside. Each returns what the scheduler is told.
  void NodeIs(const std::string& name, int gpus);  // the truth of a node; workers stay
  Event KillNode(const std::string& name);         // its workers die with it
  Event KillWorker(const std::string& job);
  void JobGone(const std::string& job);  // completed, failed or deleted: nothing is left of it

  bool Runs(const std::string& job) const;
  std::vector<std::string> Running() const;
  const std::map<std::string, std::vector<std::string>>& workers() const { return workers_; }
  bool Idle() const { return pending_.empty(); }

  // Nodes on which live workers hold more GPUs than there are and it was the scheduler that put them there.
  std::string Overcommitted() const;
  std::int64_t executed() const { return executed_; }
  const std::vector<std::string>& complaints() const { return complaints_; }
  void Ended(const std::string& job) { ended_.insert(job); }

  std::map<std::string, int> gpus_per_worker;
  // Where the scheduler believes the workers of a job to be.
  std::function<std::vector<std::string>(const std::string& job)> believed;

 private:
  struct Pending {
    double at;
    std::uint64_t order;
    Event event;
    bool applies = false;
    std::string job;
    std::vector<std::string> workers;
    bool releases = false;
    bool said = true;     // the outcome is reported
    bool report = false;  // what the job really holds is reported
  };
  void Apply(const Pending& pending);
  int Used(const std::string& node) const;

  Rng& rng_;
  FaultRates rates_;
  std::vector<Pending> pending_;
  std::uint64_t order_ = 0;
  std::int64_t executed_ = 0;
  std::map<std::string, std::vector<std::string>>
      workers_;  // job -> nodes of its workers, "" where one is down
  std::map<std::string, int> gpus_;
  std::set<std::string> excused_;  // nodes whose over-commitment a fault explains
  std::set<std::string> ended_;
  std::vector<std::string> complaints_;
};

}  // namespace voda::testing
