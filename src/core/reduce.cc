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

  std::vector<EndedJob> TakeEnded() { return std::move(ended_); }

  void operator()(const JobArrived& event) {
    if (FindJob(state_, event.job.name) != kNoJob) return Ignore();
    const auto id = static_cast<std::uint32_t>(state_.slot_of.size());
    state_.slot_of.push_back(state_.active.end_index());
    state_.job_ids.emplace(event.job.name, id);
    Job job = event.job;
    job.workers.clear();
    for (const std::string& node : event.workers_on) job.workers.push_back(NodeNamed(node));
    ActiveJob active;
    active.id = id;
    active.category = event.category;
    active.status = job.workers.empty() ? JobStatus::kWaiting : JobStatus::kRunning;
    active.observed = job.workers;
    active.desired = job.workers;
    active.accrued_at = now_;
    active.waited = event.waited;
    active.ran = event.ran;
    active.gpu_seconds = event.gpu_seconds;
    active.starts = event.starts;
    active.claimed = ClaimAtArrival(job);
    job.workers = Claimed(active);
    state_.world.jobs.push_back(std::move(job));
    state_.active.push_back(std::move(active));
    Dirty(event);
  }

  void operator()(const JobCompleted& event) {
    exit_code_ = 0;
    End(event.job, JobStatus::kCompleted, {}, event.ran, event);
  }
  void operator()(const JobFailed& event) {
    exit_code_ = event.exit_code;
    End(event.job, JobStatus::kFailed, event.message, event.ran, event);
  }

  void operator()(const JobDeleted& event) {
    const JobIndex index = FindJob(state_, event.job);
    if (index == kNoJob) return Ignore();
    ActiveJob& active = Active(index);
    if (active.observed.empty() && !active.in_flight)
      return End(event.job, JobStatus::kCanceled, {}, 0, event);
    // Its workers must be stopped first; it ends when that is confirmed.
    Seen(index).aside = Aside::kEnding;
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
    Job& job = Seen(index);
    if (event.priority) job.priority = *event.priority;
    if (event.sizes) {
      Active(index).all_sizes.reset();
      job.SetLimits(event.sizes->limits);
      job.curve = event.sizes->curve;
    }
    Dirty(event);
  }

  void operator()(const NodeAdded& event) {
    const auto known = state_.node_index.find(event.node.name);
    if (known == state_.node_index.end()) {
      state_.node_index.emplace(event.node.name, state_.world.nodes.end_index());
      state_.world.nodes.push_back(event.node);
    } else {
      state_.world.nodes[known->second] = event.node;
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
      Job& job = Seen(index);
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
      if (entry.reported) job.guessed = false;
      if (entry.finished) job.finished = entry.finished;
      const auto take = [](double& seconds, std::optional<double> told) {
        if (told && std::isfinite(*told)) seconds = std::max(0.0, *told);
      };
      take(job.remaining_seconds, entry.remaining_seconds);
      take(job.total_seconds, entry.total_seconds);
    }
  }

  void operator()(const WorkersObserved& event) {
    const JobIndex index = FindJob(state_, event.job);
    if (index == kNoJob) return Ignore();
    std::vector<NodeIndex> workers;
    for (const std::string& node : event.nodes) workers.push_back(NodeNamed(node));
    ActiveJob& active = Active(index);
    if (!active.in_flight) {
      // An order that failed may come about after all, and counts while it is planned. Nothing else adds to
      // what was there.
      const std::size_t planned = active.failures > 0 ? active.desired.size() : 0;
      active.claimed =
          std::min(active.claimed, std::max(planned, std::min(workers.size(), active.observed.size())));
    }
    // What others gave it is taken back at once: nothing has to be decided.
    if (workers.size() > active.claimed) state_.undispatched = true;
    SetWorkers(index, std::move(workers));
    Dirty(event);
    if (!Active(index).observed.empty() && Seen(index).aside == Aside::kBackingOff) {
      Seen(index).aside = Aside::kNo;  // it was started after all
      Active(index).failures = 0;
      Active(index).failure.clear();
    }
    EndIfStopped(index);
  }

  void operator()(const ActionDone& event) {
    const JobIndex index = TakeInFlight(event.id);
    if (index == kNoJob) return Ignore();
    Active(index).failures = 0;
    Active(index).failure.clear();
    Active(index).claimed = finished_.workers.size();
    SetWorkers(index, std::move(finished_.workers));
    state_.undispatched = true;
    EndIfStopped(index);
  }

  void operator()(const ActionFailed& event) {
    Failed(event.id, event.message, event, event.ran, event.no_room);
  }
  void operator()(const ActionTimedOut& event) { Failed(event.id, "it took too long", event); }
  void operator()(const Wake& event) { Dirty(event); }

  void operator()(const Tick&) {
    // A job that ends here takes its position with it: the next one is looked at on the next tick.
    for (JobIndex i = 0; i < state_.active.end_index(); ++i) {
      const ActiveJob& active = Active(i);
      if (active.all_sizes && now_ >= active.all_sizes->retry_at) {
        AllowAllSizes(i);
        state_.dirty = true;
      }
      if (active.in_flight && now_ >= active.in_flight->deadline) {
        (*this)(ActionTimedOut{active.in_flight->action.id});
      } else if (Seen(i).aside == Aside::kBackingOff && now_ >= active.retry_at) {
        Seen(i).aside = Aside::kNo;
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
  Job& Seen(JobIndex index) { return state_.world.jobs[index]; }
  ActiveJob& Active(JobIndex index) { return state_.active[index]; }
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
    const auto [at, inserted] = state_.node_index.emplace(name, state_.world.nodes.end_index());
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
    return &state_.world.nodes[known->second];
  }

  // Calls `visit` with every position of a node that the state names.
  template <class Visit>
  void EachSeat(Visit visit) {
    const auto each = [&](std::vector<NodeIndex>& seats) {
      for (NodeIndex& at : seats) {
        if (at != kNoNode) visit(at);
      }
    };
    for (const JobIndex i : state_.active.indices()) {
      each(state_.world.jobs[i].workers);
      each(state_.active[i].observed);
      each(state_.active[i].desired);
      if (state_.active[i].in_flight) each(state_.active[i].in_flight->action.workers);
    }
  }

  // How many workers of a job that comes with some are its own by right. An earlier run decided on them, but
  // it is the cluster that tells, and others write there: those without a node and those that do not fit
  // beside the jobs that came before are nobody's decision, wherever they stand among the others.
  std::size_t ClaimAtArrival(const Job& job) {
    if (job.workers.empty()) return 0;
    PerNode<int> left;
    for (const Node& node : state_.world.nodes) left.push_back(node.gpus);
    const auto take = [&](const Job& from, NodeIndex at) {
      return at != kNoNode && (left[at] -= from.gpus_per_worker) >= 0;
    };
    for (const Job& other : state_.world.jobs) {
      for (const NodeIndex at : other.workers) take(other, at);
    }
    return static_cast<std::size_t>(
        std::count_if(job.workers.begin(), job.workers.end(), [&](NodeIndex at) { return take(job, at); }));
  }

  // Only on a Tick: whoever compares positions before and after another event may do so.
  void DropRemoved() {
    PerNode<Node>& nodes = state_.world.nodes;
    PerNode<bool> named(nodes.size(), false);
    EachSeat([&](NodeIndex at) { named[at] = true; });
    PerNode<NodeIndex> moved(nodes.size(), kNoNode);
    NodeIndex kept = 0;
    for (const NodeIndex i : nodes.indices()) {
      if (!named[i] && state_.removed.contains(nodes[i].name)) {
        state_.removed.erase(nodes[i].name);
        state_.node_index.erase(nodes[i].name);
        continue;
      }
      moved[i] = kept;
      if (kept != i) {
        state_.node_index[nodes[i].name] = moved[i];
        nodes[kept] = std::move(nodes[i]);
      }
      ++kept;
    }
    if (kept == nodes.end_index()) return;
    nodes.resize(static_cast<std::size_t>(kept));
    EachSeat([&](NodeIndex& at) { at = moved[at]; });
  }

  // What the cluster holds of a job from now on.
  void SetWorkers(JobIndex index, std::vector<NodeIndex> workers) {
    Accrue(state_, index, now_);
    Job& job = Seen(index);
    ActiveJob& active = Active(index);
    const std::vector<NodeIndex>& before = active.observed;
    double stall = before.empty() ? job.start_cost : 0;
    if (workers.size() != before.size()) {
      job.last_change = now_;
      if (!before.empty()) stall = job.rescale_cost;
    }
    for (std::size_t worker = 0; worker < std::min(workers.size(), before.size()); ++worker) {
      if (workers[worker] != before[worker]) stall = std::max(stall, job.migration_cost);
    }
    active.stalled_until = now_ + stall;
    if (before.empty() && !workers.empty()) Started(index, now_);
    active.observed = std::move(workers);
    if (!active.in_flight) job.workers = Claimed(active);
    active.status = active.observed.empty() ? JobStatus::kWaiting : JobStatus::kRunning;
  }

  void Started(JobIndex index, double when) {
    Job& job = Seen(index);
    ++Active(index).starts;
    job.last_start = when;
    if (job.first_start) return;
    job.first_start = when;
    job.waiting_seconds = 0;  // what counts towards a promotion is waiting after the first start
  }

  // The workers of this start ended before it was confirmed: what was counted as waiting was a run.
  void CountBriefRun(JobIndex index, const Action& start, double ran) {
    ActiveJob& active = Active(index);
    if (start.kind != ActionKind::kStart || ran <= 0 || !active.observed.empty()) return;
    Accrue(state_, index, now_);
    Job& job = Seen(index);
    const double seconds = std::min(ran, active.waited);
    const double gpu_seconds = seconds * job.gpus(static_cast<int>(start.workers.size()));
    active.waited -= seconds;
    active.ran += seconds;
    active.gpu_seconds += gpu_seconds;
    job.waiting_seconds = std::max(0.0, job.waiting_seconds - seconds);
    job.running_seconds += seconds;
    job.attained_gpu_seconds += gpu_seconds;
    Started(index, now_ - seconds);
  }

  template <class Cause>
  void SetAside(const std::string& name, Aside aside, const Cause& event) {
    const JobIndex index = FindJob(state_, name);
    if (index == kNoJob || Seen(index).aside == Aside::kEnding) return Ignore();
    if (Seen(index).aside == aside) return;
    Seen(index).aside = aside;
    if (aside == Aside::kHeld) StopNow(index);
    Dirty(event);
  }

  // Does not wait for the next round: nothing has to be decided.
  void StopNow(JobIndex index) {
    Active(index).desired.clear();
    state_.undispatched = true;
  }

  // The size at which a job can go on with those of its workers that found room; 0: none, or all of them did.
  int RoomInPart(JobIndex index) {
    const Curve& curve = *Seen(index).curve;
    const int at = curve.FloorIndex(static_cast<int>(Active(index).observed.size()));
    return at < 0 || curve.size(at) >= Seen(index).max ? 0 : curve.size(at);
  }

  void AllowUpTo(JobIndex index, int most, double retry_at) {
    Job& job = Seen(index);
    auto& all = Active(index).all_sizes;
    if (!all) all = {0, {job.min, job.num, job.max}, job.curve, job.measured};
    all->retry_at = retry_at;
    std::vector<int> sizes;
    std::vector<double> speedup;
    for (int i = 0; i < job.curve->count() && job.curve->size(i) <= most; ++i) {
      sizes.push_back(job.curve->size(i));
      speedup.push_back(job.curve->speedup(i));
    }
    if (job.measured) {
      auto measured = *job.measured;
      std::erase_if(measured, [&](int size) { return size > most; });
      job.measured = std::make_shared<const std::vector<int>>(std::move(measured));
    }
    job.curve = Curve::Of(std::move(sizes), std::move(speedup));
    job.SetLimits({job.min, std::min(job.num, most), most});
  }

  void AllowAllSizes(JobIndex index) {
    const AllSizes all = *std::exchange(Active(index).all_sizes, {});
    Seen(index).SetLimits(all.limits);
    Seen(index).curve = all.curve;
    Seen(index).measured = all.measured;
  }

  // A job that was to end does so once it holds nothing and nothing is under way for it.
  void EndIfStopped(JobIndex index) {
    const bool stopped = Active(index).observed.empty() && !Active(index).in_flight;
    if (stopped && Seen(index).aside == Aside::kEnding) Remove(index, Active(index).ending, {});
  }

  // Hands over the action in flight under this id and frees its job for another one.
  JobIndex TakeInFlight(ActionId id) {
    const auto owner = state_.action_owner.find(id);
    if (owner == state_.action_owner.end()) return kNoJob;
    const JobIndex index = state_.slot_of[owner->second];
    state_.action_owner.erase(owner);
    ActiveJob& active = Active(index);
    finished_ = std::move(active.in_flight->action);
    active.in_flight.reset();
    Seen(index).workers = Claimed(active);
    return index;
  }

  template <class Cause>
  void Failed(ActionId id, const std::string& why, const Cause& event, double ran = 0, bool no_room = false) {
    const JobIndex index = TakeInFlight(id);
    if (index == kNoJob) return Ignore();
    CountBriefRun(index, finished_, ran);
    // What is observed did not change, so the next dispatch tries again: after 1, 2, 4 … 256 s. A job that
    // cannot be started stops being offered GPUs meanwhile, so that it does not keep them from others: for
    // 1, 2, 4 … 16 min where it found no room, which has kept them for long already.
    state_.undispatched = true;  // the seats it had reserved are free
    ActiveJob& active = Active(index);
    active.failures = std::min(active.failures + 1, 9);
    active.failure = why.substr(0, why.find('\n'));
    active.retry_at = now_ + std::ldexp(1.0, active.failures - 1);
    if (no_room) {
      if (Seen(index).aside == Aside::kNo)
        active.retry_at = now_ + 60 * std::ldexp(1.0, std::min(active.failures, 5) - 1);
      active.claimed = std::min(active.claimed, active.observed.size());  // it was undone
      Seen(index).workers = Claimed(active);
    }
    constexpr int kStartsBeforeBackingOff = 3;
    const int room = no_room && Seen(index).aside == Aside::kNo ? RoomInPart(index) : 0;
    const bool cannot_start =
        room == 0 &&
        (no_room || (finished_.kind == ActionKind::kStart && active.failures >= kStartsBeforeBackingOff));
    if (room > 0) {
      AllowUpTo(index, room, std::exchange(active.retry_at, now_));
      active.desired.assign(active.observed.begin(), active.observed.begin() + room);
      Dirty(event);
    }
    if (Seen(index).aside == Aside::kEnding) {
      EndIfStopped(index);
    } else if (cannot_start && Seen(index).aside == Aside::kNo) {
      Seen(index).aside = Aside::kBackingOff;
      Dirty(event);
    }
  }

  template <class Cause>
  void End(const std::string& name, JobStatus status, const std::string& message, double ran,
           const Cause& event) {
    const JobIndex index = FindJob(state_, name);
    if (index == kNoJob) return Ignore();
    if (const auto& in_flight = Active(index).in_flight) {
      CountBriefRun(index, in_flight->action, ran);
    }
    Dirty(event);
    Remove(index, status, message);
  }

  void Remove(JobIndex index, JobStatus status, const std::string& message) {
    Accrue(state_, index, now_);
    ActiveJob& active = Active(index);
    if (active.in_flight) state_.action_owner.erase(active.in_flight->action.id);
    const Job& job = Seen(index);
    const std::string name = job.name;
    ended_.push_back({name, status, now_, message, job.guessed, job.work_done, active.waited, active.ran,
                      active.gpu_seconds, active.starts, job.first_start, exit_code_});
    state_.slot_of[active.id] = kNoJob;
    state_.job_ids.erase(name);
    state_.world.jobs.EraseAt(index);
    state_.active.EraseAt(index);
    for (JobIndex i = index; i < state_.active.end_index(); ++i) {
      state_.slot_of[state_.active[i].id] = i;
    }
    state_.undispatched = true;
  }

  State& state_;
  double now_;
  Action finished_;
  int exit_code_ = kNoExitCode;  // of the job whose end the event tells
  std::vector<EndedJob> ended_;
};

}  // namespace

std::vector<EndedJob> Reduce(State& state, const Event& event, double now) {
  Reducer reducer(state, now);
  std::visit(reducer, event);
  return reducer.TakeEnded();
}

}  // namespace voda
