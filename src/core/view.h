// View: what there is to decide on and to tell of at one moment, apart from the policy. An immutable value:
// it is taken on the thread that owns the state, and explanations, dry runs, forecasts and the rounds of slow
// policies are computed on it on any other. It copies the active jobs and nothing else of the state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/state.h"
#include "model/plan.h"
#include "policy/policy.h"

namespace voda {

// What is known of an active job beside what a decision sees of it.
struct ViewedJob {
  std::uint32_t id = 0;
  std::string category;
  JobStatus status = JobStatus::kWaiting;
  std::vector<NodeIndex> observed;
  std::size_t claimed = 0;  // how many of those observed are there by a decision (ActiveJob)
  std::vector<NodeIndex> desired;
  std::string failure;  // why the last action failed; empty: it did not
};

class View {
 public:
  View(const State& state, double now);

  // As a decision sees it: times up to now, actions in flight counted as done.
  const Snapshot& world() const { return world_; }
  const CoreConfig& config() const { return config_; }
  double now() const { return world_.now; }
  const PerJob<ViewedJob>& jobs() const { return jobs_; }  // parallel to world().jobs
  const ViewedJob& job(JobIndex index) const { return jobs_[index]; }
  JobIndex Find(const std::string& name) const;  // kNoJob when there is none

  std::uint64_t round() const { return round_; }   // the one under way, of all that were begun; 0: none is
  std::int64_t rounds() const { return rounds_; }  // so far
  const std::optional<double>& next_round() const { return next_round_; }  // empty: none is wanted

 private:
  Snapshot world_;
  CoreConfig config_;
  PerJob<ViewedJob> jobs_;
  std::uint64_t round_;
  std::int64_t rounds_;
  std::optional<double> next_round_;
};

// What a round would decide at the moment of the view.
Plan Decide(const View& view, const Policy& policy);

}  // namespace voda
