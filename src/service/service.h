// Service: the live system between the API, the ledger, the history, the cluster and one scheduler for each
// GPU type. It owns the parts, brings reports of the cluster to them, and does what is due at the end of each
// batch of tasks.
//
// One thread (engine.h) owns it. Reads answer at once. What is asked for takes effect, in memory and towards
// the scheduler, only when it is durable: a request is answered 2xx after that or not at all. What the
// cluster reports needs no such care, for the cluster can be asked again.
#pragma once

#include <string>
#include <vector>

#include "api/event_hub.h"
#include "cluster/job_cluster.h"
#include "cluster/sink.h"
#include "history/history.h"
#include "ledger/ledger.h"
#include "metrics/metrics.h"
#include "service/announcer.h"
#include "service/changes.h"
#include "service/config.h"
#include "service/gauges.h"
#include "service/job_events.h"
#include "service/jobs.h"
#include "service/nodes.h"
#include "service/pools.h"
#include "service/reports.h"
#include "service/rounds.h"
#include "service/settings.h"
#include "service/submitter.h"
#include "service/takeover.h"
#include "service/views.h"

namespace voda {

class Service {
 public:
  // Everything given outlives the service.
  Service(ServiceConfig config, Ledger& ledger, History& history, JobCluster& cluster, EventHub& events,
          Metrics& metrics);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Before the first Step: what the ledger holds, and the nodes that the cluster reports.
  Status Restore(const LedgerContents& contents, const std::vector<TypedEvent>& nodes, double now);

  // After the tasks of a batch: makes durable what was asked for, runs rounds, looks after what is periodic.
  // Returns when to come back at the latest.
  double Step(double now);

  // ---- What users ask for and ask.
  const Jobs& jobs() const { return jobs_; }
  const Pools& pools() const { return pools_; }
  const Nodes& nodes() const { return nodes_; }
  const Views& views() const { return views_; }
  Nodes& nodes() { return nodes_; }
  Submitter& submitter() { return submitter_; }
  JobChanges& changes() { return changes_; }
  Settings& settings() { return settings_; }
  Reports& reports() { return reports_; }
  Gauges& gauges() { return gauges_; }
  EventHub& events() { return hub_; }
  JobCluster& cluster() { return cluster_; }
  // Empty while the store takes writes.
  const std::string& store_error() const { return history_.Error(); }
  // What keeps it from accepting jobs; empty: nothing.
  std::string Trouble() const;

  // ---- What the cluster reports.
  void Deliver(const TypedEvent& event, double now);
  void Notice(const JobNotice& notice) { job_events_.Notice(notice); }
  void Found(const FoundJob& found, double now) { takeover_.Found(found, now); }
  void Gone(const std::string& job, double now) { job_events_.Gone(job, now); }

  // ---- The answer of decide_elsewhere.
  void FinishRound(const std::string& gpu_type, const Decider& decider, const Decision& decision,
                   double now) {
    rounds_.Finish(gpu_type, decider, decision, now);
  }

 private:
  void Periodic(double now);
  void Prune(double now);
  double TrustedTime(double now) const;
  void WriteTouched();
  template <class Flush>
  void Timed(const Flush& flush);

  ServiceConfig config_;
  Ledger& ledger_;
  History& history_;
  JobCluster& cluster_;
  EventHub& hub_;
  Metrics& metrics_;

  Jobs jobs_;
  Announcer announcer_;
  Pools pools_;
  JobEvents job_events_;
  Rounds rounds_;
  Nodes nodes_;
  Settings settings_;
  Submitter submitter_;
  JobChanges changes_;
  Takeover takeover_;
  Reports reports_;
  Views views_;
  Gauges gauges_;

  bool restored_ = false;
  double restored_at_ = 0;
  double newest_before_ = 0;  // the latest time that an earlier run wrote down of a job; 0: none
  double retry_history_at_ = 0;
  double next_files_ = 0, next_prune_ = 0, next_beat_ = 0, next_account_ = 0;
};

}  // namespace voda
