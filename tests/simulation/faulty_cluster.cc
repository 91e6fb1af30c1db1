#include "simulation/faulty_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace voda::testing {

namespace {

std::string NodeOf(const std::vector<std::string>& workers, std::size_t worker) {
  return worker < workers.size() ? workers[worker] : std::string();
}

}  // namespace

void FaultyCluster::Execute(const Action& action, const PerNode<Node>& nodes) {
  ++executed_;
  Pending pending;
  pending.job = action.job;
  pending.releases = Releases(action.kind);
  pending.order = order_++;
  pending.at = now + rng_.Unit() * rates_.max_delay;
  const std::vector<std::string> before = believed(action.job);
  for (std::size_t worker = 0; worker < action.workers.size(); ++worker) {
    const NodeIndex at = action.workers[worker];
    pending.workers.push_back(at == kNoNode ? "" : nodes[at].name);
    if (at == kNoNode || pending.releases || NodeOf(before, worker) == pending.workers.back()) continue;
    const Node& node = nodes[at];
    if (node.state != NodeState::kReady) {
      complaints_.push_back(fmt::format("{} of {} brings worker {} to {}, which is {}", Name(action.kind),
                                        action.job, worker, node.name, Name(node.state)));
    }
  }
  if (ended_.contains(action.job)) {
    complaints_.push_back(fmt::format("{} of {}, which has ended", Name(action.kind), action.job));
  }
  for (const Pending& other : pending_) {
    if (other.job == action.job && other.said) {
      complaints_.push_back(
          fmt::format("{} of {} while another action of it is in flight", Name(action.kind), action.job));
    }
  }

  const double dice = rng_.Unit();
  if (dice < rates_.fail) {
    pending.event = ActionFailed{action.id, "injected"};
  } else if (dice < rates_.fail + rates_.timeout_lost) {
    return;
  } else if (dice < rates_.fail + rates_.timeout_lost + rates_.timeout_applied) {
    pending.applies = true;
    pending.said = false;
    // From here on the scheduler may give these seats to others, until it is told.
    for (const std::string& node : pending.workers) excused_.insert(node);
  } else {
    pending.applies = true;
    pending.event = ActionDone{action.id};
  }
  pending_.push_back(std::move(pending));
}

double FaultyCluster::NextTime() const {
  double next = std::numeric_limits<double>::infinity();
  for (const Pending& pending : pending_) next = std::min(next, pending.at);
  return next;
}

void FaultyCluster::Apply(const Pending& pending) {
  std::vector<std::string> after = pending.workers;
  const auto known = workers_.find(pending.job);
  const std::vector<std::string> before =
      known == workers_.end() ? std::vector<std::string>{} : known->second;
  for (std::size_t worker = 0; worker < after.size(); ++worker) {
    // Releasing starts nobody, and nobody starts on a node that is gone.
    if (pending.releases && NodeOf(before, worker) != after[worker]) after[worker].clear();
    if (!after[worker].empty() && !gpus_.contains(after[worker])) after[worker].clear();
  }
  if (std::all_of(after.begin(), after.end(), [](const std::string& node) { return node.empty(); }))
    after.clear();
  workers_[pending.job] = std::move(after);
}

std::vector<Event> FaultyCluster::Due() {
  std::vector<Event> events;
  while (true) {
    const auto next = std::min_element(
        pending_.begin(), pending_.end(),
        [](const Pending& a, const Pending& b) { return a.at != b.at ? a.at < b.at : a.order < b.order; });
    if (next == pending_.end() || next->at > now) break;
    Pending pending = std::move(*next);
    pending_.erase(next);
    if (pending.report) {
      events.push_back(WorkersObserved{pending.job, workers_[pending.job]});
      continue;
    }
    if (pending.applies) Apply(pending);
    if (pending.said) events.push_back(pending.event);
    if (!pending.said) {
      pending_.push_back({.at = now + 1 + rng_.Unit() * 100,
                          .order = order_++,
                          .event = {},
                          .job = pending.job,
                          .said = false,
                          .report = true});
    } else if (pending.applies && workers_[pending.job] != pending.workers) {
      events.push_back(WorkersObserved{pending.job, workers_[pending.job]});
    }
  }
  // An excuse lasts until the scheduler knows and has mended it.
  const bool unseen =
      std::any_of(pending_.begin(), pending_.end(), [](const Pending& p) { return !p.said || p.report; });
  if (!unseen)
    std::erase_if(excused_, [&](const std::string& node) {
      return Used(node) <= (gpus_.contains(node) ? gpus_.at(node) : 0);
    });
  return events;
}

void FaultyCluster::NodeIs(const std::string& name, int gpus) {
  gpus_[name] = gpus;
  if (Used(name) > gpus) excused_.insert(name);
}

Event FaultyCluster::KillNode(const std::string& name) {
  gpus_.erase(name);
  excused_.insert(name);
  for (auto& [job, workers] : workers_) {
    bool hit = false;
    for (std::string& node : workers) {
      if (node != name) continue;
      node.clear();
      hit = true;
    }
    if (!hit) continue;
    if (std::all_of(workers.begin(), workers.end(), [](const std::string& node) { return node.empty(); }))
      workers.clear();
    pending_.push_back({.at = now + rng_.Unit() * 40,
                        .order = order_++,
                        .event = {},
                        .job = job,
                        .said = false,
                        .report = true});
  }
  return NodeRemoved{name};
}

Event FaultyCluster::KillWorker(const std::string& job) {
  auto& workers = workers_[job];
  if (!workers.empty()) {
    workers[rng_.Int(0, static_cast<int>(workers.size()) - 1)].clear();
    if (std::all_of(workers.begin(), workers.end(), [](const std::string& node) { return node.empty(); }))
      workers.clear();
  }
  return WorkersObserved{job, workers};
}

void FaultyCluster::JobGone(const std::string& job) {
  workers_.erase(job);
  std::erase_if(pending_, [&](const Pending& pending) { return pending.job == job; });
}

bool FaultyCluster::Runs(const std::string& job) const {
  const auto known = workers_.find(job);
  return known != workers_.end() && !known->second.empty();
}

std::vector<std::string> FaultyCluster::Running() const {
  std::vector<std::string> jobs;
  for (const auto& [job, workers] : workers_) {
    if (!workers.empty()) jobs.push_back(job);
  }
  return jobs;
}

// What is held, and what actions on their way may already have taken.
int FaultyCluster::Used(const std::string& node) const {
  int used = 0;
  for (const auto& [job, workers] : workers_) {
    for (const std::string& at : workers) used += at == node ? gpus_per_worker.at(job) : 0;
  }
  for (const Pending& pending : pending_) {
    if (!pending.applies || pending.releases) continue;
    const auto known = workers_.find(pending.job);
    for (std::size_t worker = 0; worker < pending.workers.size(); ++worker) {
      const bool there = known != workers_.end() && NodeOf(known->second, worker) == node;
      if (pending.workers[worker] == node && !there) used += gpus_per_worker.at(pending.job);
    }
  }
  return used;
}

std::string FaultyCluster::Overcommitted() const {
  for (const auto& [node, gpus] : gpus_) {
    if (!excused_.contains(node) && Used(node) > gpus)
      return fmt::format("{}: {} of {} GPUs held", node, Used(node), gpus);
  }
  return "";
}

}  // namespace voda::testing
