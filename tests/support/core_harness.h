// CoreHarness: a State with the core's functions around it, for tests that drive the loop by hand.
//
//   CoreHarness core;
//   core.Node("n0", 4).Arrive(JobBuilder("a").Sizes(1, 2, 4));
//   core.Round();                          // one round and its actions, as sent
//   core.DoneAll();                        // the cluster confirms everything in flight
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "core/reduce.h"
#include "core/round.h"
#include "core/state.h"
#include "policy/registry.h"
#include "support/builders.h"

namespace voda::testing {

inline std::unique_ptr<Policy> PolicyNamed(std::string_view name, const PolicyOptions& options = {}) {
  auto made = MakePolicy(name, options);
  VODA_CHECK(made.has_value());
  return std::move(made).value();
}

class CoreHarness {
 public:
  explicit CoreHarness(std::string_view policy = "ElasticFIFO", CoreConfig config = {.rate_limit = 0})
      : policy_(PolicyNamed(policy)) {
    state.config = config;
  }

  State state;
  double now = 0;
  std::vector<Action> sent;  // everything so far

  std::vector<EndedJob> ended;  // the same

  CoreHarness& Event(const voda::Event& event) {
    for (EndedJob& job : Reduce(state, event, now)) ended.push_back(std::move(job));
    CheckInvariants(state);
    return *this;
  }
  CoreHarness& Node(std::string name, int gpus, NodeState node_state = NodeState::kReady) {
    return Event(NodeAdded{{std::move(name), gpus, node_state}});
  }
  CoreHarness& Nodes(int count, int gpus) {
    for (int i = 0; i < count; ++i) Node("n" + std::to_string(i), gpus);
    return *this;
  }
  CoreHarness& Arrive(const JobBuilder& job, std::vector<std::string> on = {}) {
    return Event(JobArrived{job.Build(), "test", std::move(on)});
  }

  // As Scheduler::Advance does it; the actions sent.
  std::vector<Action> Advance() {
    Event(Tick{});
    if (RoundDue(state, now)) RunRound(state, *policy_, now);
    return state.undispatched ? Send() : std::vector<Action>{};
  }
  // A round whatever the rate limit says.
  std::vector<Action> Round() {
    RunRound(state, *policy_, now);
    return Send();
  }
  std::vector<Action> Send() {
    auto actions = Dispatch(state, now);
    CheckInvariants(state);
    sent.insert(sent.end(), actions.begin(), actions.end());
    return actions;
  }
  // Confirms everything in flight, in the order of the jobs.
  CoreHarness& DoneAll() {
    std::vector<ActionId> ids;
    for (const ActiveJob& active : state.active) {
      if (active.in_flight) ids.push_back(active.in_flight->action.id);
    }
    for (const ActionId id : ids) Event(ActionDone{id});
    return *this;
  }
  // Rounds and confirmations until nothing is left to do; the number of actions that took.
  int Settle(int steps = 100) {
    int count = 0;
    for (int i = 0; i < steps; ++i) {
      const auto actions = Advance();
      count += static_cast<int>(actions.size());
      bool flying = false;
      for (const ActiveJob& active : state.active) flying = flying || active.in_flight.has_value();
      if (actions.empty() && !flying && !state.dirty && !state.undispatched) return count;
      DoneAll();
    }
    ADD_FAILURE() << "does not settle";
    return count;
  }

  bool Knows(const std::string& job) const { return FindJob(state, job) != kNoJob; }
  // With what is observed of it, whatever is in flight.
  Job job(const std::string& name) const {
    const JobIndex index = FindJob(state, name);
    VODA_CHECK(index != kNoJob);
    Job job = state.world.job(index);
    job.workers = active(name).observed;
    return job;
  }
  const ActiveJob& active(const std::string& name) const {
    const JobIndex index = FindJob(state, name);
    VODA_CHECK(index != kNoJob);
    return state.active[index];
  }
  std::vector<std::string> On(const std::string& name) const {
    std::vector<std::string> nodes;
    for (const NodeIndex at : active(name).observed) {
      nodes.push_back(at == kNoNode ? "" : state.world.node(at).name);
    }
    return nodes;
  }
  // Terminal status of the latest job of that name that ended.
  JobStatus Ended(const std::string& name) const {
    const auto at =
        std::find_if(ended.rbegin(), ended.rend(), [&](const auto& job) { return job.name == name; });
    VODA_CHECK(at != ended.rend());
    return at->status;
  }
  const Policy& policy() const { return *policy_; }

 private:
  std::unique_ptr<Policy> policy_;
};

}  // namespace voda::testing
