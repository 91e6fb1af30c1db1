#include "core/reduce.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace voda {

namespace {

constexpr std::size_t kTriggersKept = 4;

class Reducer {
 public:
  Reducer(State& state, double now) : state_(state), now_(now) {}

  void operator()(const JobArrived& event) {
    if (event.anew) state_.ended_status.erase(event.job.name);
    if (FindJob(state_, event.job.name) != kNoJob || state_.ended_status.contains(event.job.name))
      return Ignore();
    const auto id = static_cast<std::uint32_t>(state_.slot_of.size());
    state_.slot_of.push_back(static_cast<JobIndex>(state_.active.size()));
    state_.job_ids.emplace(event.job.name, id);
    Job job = event.job;
    job.workers.clear();
    for (const std::string& node : event.workers_on) job.workers.push_back(NodeNamed(node));
    ActiveJob active;
    active.id = id;
    active.category = event.category;
    active.status = job.workers.empty() ? JobStatus::kWaiting : JobStatus::kRunning;
    active.desired = job.workers;
    active.accrued_at = now_;
    active.waited = event.waited;
    active.ran = event.ran;
    active.gpu_seconds = event.gpu_seconds;
    state_.world.jobs.push_back(std::move(job));
    state_.active.push_back(std::move(active));
    Dirty(event);
  }

  void operator()(const JobCompleted& event) { End(event.job, JobStatus::kCompleted, {}, event); }
  void operator()(const JobFailed& event) { End(event.job, JobStatus::kFailed, event.message, event); }

  void operator()(const JobDeleted& event) {
    const JobIndex index = FindJob(state_, event.job);
    if (index == kNoJob) return Ignore();
    ActiveJob& active = Active(index);
    if (Observed(index).workers.empty() && !active.in_flight)
      return End(event.job, JobStatus::kCanceled, {}, event);
    // Its workers must be stopped first; it ends when that is confirmed.
    Observed(index).aside = Aside::kEnding;
    active.ending = JobStatus::kCanceled;
    active.retry_at = now_;
    StopNow(index);
    Dirty(event);
  }

  void operator()(const JobHeld& event) { SetAside(event.job, Aside::kHeld, event); }
  void operator()(const JobResumed& event) { SetAside(event.job, Aside::kNo, event); }

  void operator()(const JobChanged& event) {
    const JobIndex index = FindJob(state_, event.job);
    if (index == kNoJob) return Ignore();
    Job& job = Observed(index);
    if (event.priority) job.priority = *event.priority;
    if (event.limits) {
      job.min = event.limits->min;
      job.num = event.limits->num;
      job.max = event.limits->max;
      job.curve = event.limits->curve;
    }
    Dirty(event);
  }

  void operator()(const NodeAdded& event) {
    const auto known = state_.node_index.find(event.node.name);
    if (known == state_.node_index.end()) {
      state_.node_index.emplace(event.node.name, static_cast<NodeIndex>(state_.world.nodes.size()));
      state_.world.nodes.push_back(event.node);
    } else {
      state_.world.nodes[static_cast<std::size_t>(known->second)] = event.node;
    }
    state_.removed.erase(event.node.name);
    Dirty(event);
  }

  void operator()(const NodeRemoved& event) {
    Node* node = KnownNode(event.node);
    if (node == nullptr) return Ignore();
    node->state = NodeState::kLost;
    node->gpus = 0;
    state_.removed.insert(event.node);
    Dirty(event);
  }

  void operator()(const NodeChanged& event) {
    Node* node = KnownNode(event.node);
    if (node == nullptr) return Ignore();
    if (event.gpus) node->gpus = *event.gpus;
    if (event.state) node->state = *event.state;
    Dirty(event);
  }

  void operator()(const MetricsUpdated& event) {
    for (const MetricsUpdated::Entry& entry : event.entries) {
      const JobIndex index = FindJob(state_, entry.job);
      if (index == kNoJob) {
        Ignore();
        continue;
      }
      Job& job = Observed(index);
      // A curve over other sizes is out of date: the job's limits changed meanwhile.
      if (entry.curve && entry.curve->SameSizes(*job.curve)) {
        job.curve = entry.curve;
        job.measured = entry.measured;
        job.spans = entry.spans;
      }
      if (entry.costs) {
        job.start_cost = entry.costs->start;
        job.rescale_cost = entry.costs->rescale;
        job.migration_cost = entry.costs->migration;
      }
      if (entry.remaining_seconds && std::isfinite(*entry.remaining_seconds)) {
        job.remaining_seconds = std::max(0.0, *entry.remaining_seconds);
      }
    }
  }

  void operator()(const WorkersObserved& event) {
    const JobIndex index = FindJob(state_, event.job);
    if (index == kNoJob) return Ignore();
    std::vector<NodeIndex> workers;
    for (const std::string& node : event.nodes) workers.push_back(NodeNamed(node));
    SetWorkers(index, std::move(workers));
    Dirty(event);
    if (!Observed(index).workers.empty() && Observed(index).aside == Aside::kBackingOff) {
      Observed(index).aside = Aside::kNo;  // it was started after all
      Active(index).failures = 0;
    }
    EndIfStopped(index);
  }

  void operator()(const ActionDone& event) {
    const JobIndex index = TakeInFlight(event.id);
    if (index == kNoJob) return Ignore();
    Active(index).failures = 0;
    SetWorkers(index, std::move(finished_.workers));
    state_.undispatched = true;
    EndIfStopped(index);
  }

  void operator()(const ActionFailed& event) { Failed(event.id, event); }
  void operator()(const ActionTimedOut& event) { Failed(event.id, event); }
  void operator()(const Wake& event) { Dirty(event); }

  void operator()(const Tick&) {
    for (JobIndex i = 0; i < static_cast<JobIndex>(state_.active.size()); ++i) {
      const ActiveJob& active = Active(i);
      if (active.in_flight && now_ >= active.in_flight->deadline) {
        (*this)(ActionTimedOut{active.in_flight->action.id});
      } else if (Observed(i).aside == Aside::kBackingOff && now_ >= active.retry_at) {
        Observed(i).aside = Aside::kNo;
        state_.dirty = true;
      } else if (RetryPending(state_, i) && now_ >= active.retry_at) {
        state_.undispatched = true;
      }
    }
    if (now_ >= state_.wake_at) {
      state_.wake_at = kNever;
      (*this)(Wake{});
    }
    if (!state_.removed.empty()) DropRemoved();
  }

 private:
  Job& Observed(JobIndex index) { return state_.world.jobs[static_cast<std::size_t>(index)]; }
  ActiveJob& Active(JobIndex index) { return state_.active[static_cast<std::size_t>(index)]; }
  void Ignore() { ++state_.ignored_events; }

  template <class Cause>
  void Dirty(const Cause& event) {
    state_.dirty = true;
    ++state_.trigger_count;
    if (state_.triggers.size() < kTriggersKept) state_.triggers.push_back(Describe(Event(event)));
  }

  // A node that is only heard of through its workers is lost until it is added.
  NodeIndex NodeNamed(const std::string& name) {
    if (name.empty()) return kNoNode;
    const auto [at, inserted] =
        state_.node_index.emplace(name, static_cast<NodeIndex>(state_.world.nodes.size()));
    if (inserted) {
      state_.world.nodes.push_back({.name = name, .gpus = 0, .state = NodeState::kLost});
      state_.removed.insert(name);
    }
    return at->second;
  }

  // One that was added and not removed since.
  Node* KnownNode(const std::string& name) {
    const auto known = state_.node_index.find(name);
    if (known == state_.node_index.end() || state_.removed.contains(name)) return nullptr;
    return &state_.world.nodes[static_cast<std::size_t>(known->second)];
  }

  // Calls `visit` with every position of a node that the state names.
  template <class Visit>
  void EachSeat(Visit visit) {
    const auto each = [&](std::vector<NodeIndex>& seats) {
      for (NodeIndex& at : seats) {
        if (at != kNoNode) visit(at);
      }
    };
    for (std::size_t i = 0; i < state_.active.size(); ++i) {
      each(state_.world.jobs[i].workers);
      each(state_.active[i].desired);
      if (state_.active[i].in_flight) each(state_.active[i].in_flight->action.workers);
    }
  }

  // Only on a Tick: whoever compares positions before and after another event may do so.
  void DropRemoved() {
    std::vector<Node>& nodes = state_.world.nodes;
    std::vector<bool> named(nodes.size(), false);
    EachSeat([&](NodeIndex at) { named[static_cast<std::size_t>(at)] = true; });
    std::vector<NodeIndex> moved(nodes.size(), kNoNode);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!named[i] && state_.removed.contains(nodes[i].name)) {
        state_.removed.erase(nodes[i].name);
        state_.node_index.erase(nodes[i].name);
        continue;
      }
      moved[i] = static_cast<NodeIndex>(kept);
      if (kept != i) {
        state_.node_index[nodes[i].name] = moved[i];
        nodes[kept] = std::move(nodes[i]);
      }
      ++kept;
    }
    if (kept == nodes.size()) return;
    nodes.resize(kept);
    EachSeat([&](NodeIndex& at) { at = moved[static_cast<std::size_t>(at)]; });
  }

  void SetWorkers(JobIndex index, std::vector<NodeIndex> workers) {
    Accrue(state_, index, now_);
    Job& job = Observed(index);
    ActiveJob& active = Active(index);
    double stall = job.workers.empty() ? job.start_cost : 0;
    if (workers.size() != job.workers.size()) {
      job.last_change = now_;
      if (!job.workers.empty()) stall = job.rescale_cost;
    }
    for (std::size_t worker = 0; worker < std::min(workers.size(), job.workers.size()); ++worker) {
      if (workers[worker] != job.workers[worker]) stall = std::max(stall, job.migration_cost);
    }
    active.stalled_until = now_ + stall;
    if (job.workers.empty() && !workers.empty()) {
      job.last_start = now_;
      if (!job.first_start) {
        job.first_start = now_;
        job.waiting_seconds = 0;  // what counts towards a promotion is waiting after the first start
      }
    }
    job.workers = std::move(workers);
    active.status = job.workers.empty() ? JobStatus::kWaiting : JobStatus::kRunning;
  }

  template <class Cause>
  void SetAside(const std::string& name, Aside aside, const Cause& event) {
    const JobIndex index = FindJob(state_, name);
    if (index == kNoJob || Observed(index).aside == Aside::kEnding) return Ignore();
    if (Observed(index).aside == aside) return;
    Observed(index).aside = aside;
    if (aside == Aside::kHeld) StopNow(index);
    Dirty(event);
  }

  // Does not wait for the next round: nothing has to be decided.
  void StopNow(JobIndex index) {
    Active(index).desired.clear();
    state_.undispatched = true;
  }

  // A job that was to end does so once it holds nothing and nothing is under way for it.
  void EndIfStopped(JobIndex index) {
    const bool stopped = Observed(index).workers.empty() && !Active(index).in_flight;
    if (stopped && Observed(index).aside == Aside::kEnding) Remove(index, Active(index).ending, {});
  }

  // Hands over the action in flight under this id and frees its job for another one.
  JobIndex TakeInFlight(ActionId id) {
    const auto owner = state_.action_owner.find(id);
    if (owner == state_.action_owner.end()) return kNoJob;
    const JobIndex index = state_.slot_of[owner->second];
    state_.action_owner.erase(owner);
    finished_ = std::move(Active(index).in_flight->action);
    Active(index).in_flight.reset();
    return index;
  }

  template <class Cause>
  void Failed(ActionId id, const Cause& event) {
    const JobIndex index = TakeInFlight(id);
    if (index == kNoJob) return Ignore();
    // What is observed did not change, so the next dispatch tries again: after 1, 2, 4 … 256 s. A job that
    // cannot be started stops being offered GPUs meanwhile, so that it does not keep them from others.
    state_.undispatched = true;  // the seats it had reserved are free
    ActiveJob& active = Active(index);
    active.failures = std::min(active.failures + 1, 9);
    active.retry_at = now_ + std::ldexp(1.0, active.failures - 1);
    constexpr int kStartsBeforeBackingOff = 3;
    if (Observed(index).aside == Aside::kEnding) {
      EndIfStopped(index);
    } else if (finished_.kind == ActionKind::kStart && active.failures >= kStartsBeforeBackingOff &&
               Observed(index).aside == Aside::kNo) {
      Observed(index).aside = Aside::kBackingOff;
      Dirty(event);
    }
  }

  template <class Cause>
  void End(const std::string& name, JobStatus status, const std::string& message, const Cause& event) {
    const JobIndex index = FindJob(state_, name);
    if (index == kNoJob) return Ignore();
    Dirty(event);
    Remove(index, status, message);
  }

  void Remove(JobIndex index, JobStatus status, const std::string& message) {
    Accrue(state_, index, now_);
    ActiveJob& active = Active(index);
    if (active.in_flight) state_.action_owner.erase(active.in_flight->action.id);
    const std::string name = Observed(index).name;
    state_.ended.push_back({name, status, now_, message});
    state_.ended_status.emplace(name, status);
    if (state_.ended.size() > State::kEndedMax) {
      state_.ended_status.erase(state_.ended.front().name);
      state_.ended.pop_front();
    }
    state_.slot_of[active.id] = kNoJob;
    state_.job_ids.erase(name);
    state_.world.jobs.erase(state_.world.jobs.begin() + index);
    state_.active.erase(state_.active.begin() + index);
    for (auto i = static_cast<std::size_t>(index); i < state_.active.size(); ++i) {
      state_.slot_of[state_.active[i].id] = static_cast<JobIndex>(i);
    }
    state_.undispatched = true;
  }

  State& state_;
  double now_;
  Action finished_;
};

}  // namespace

void Reduce(State& state, const Event& event, double now) {
  std::visit(Reducer(state, now), event);
}

}  // namespace voda
