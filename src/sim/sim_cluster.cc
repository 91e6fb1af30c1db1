#include "sim/sim_cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "model/placement.h"

namespace voda::sim {

namespace {

double TrueSpeedup(const WorkloadJob& job, std::span<const NodeIndex> workers) {
  return SpeedupOver(*job.curve, job.spans.get(), static_cast<int>(workers.size()), NodesSpanned(workers));
}

}  // namespace

SimCluster::SimCluster(const Workload& workload, ChangeCosts costs, bool keep_history)
    : costs_(costs), keep_history_(keep_history) {
  runtimes_.resize(workload.jobs.size());
  results_.resize(workload.jobs.size());
  for (const JobNumber i : workload.jobs.indices()) {
    const WorkloadJob& job = workload.jobs[i];
    runtimes_[i].job = &job;
    results_[i].name = job.name;
    results_[i].category = job.category;
    results_[i].submit_time = job.submit_time;
    results_[i].gpus_per_worker = job.gpus_per_worker;
    job_numbers_.emplace(job.name, i);
  }
}

JobNumber SimCluster::NumberOfJob(const std::string& name) const {
  return job_numbers_.at(name);
}

NodeIndex SimCluster::NumberOfNode(const std::string& node) {
  if (node.empty()) return kNoNode;
  const auto [at, added] = node_numbers_.try_emplace(node, nodes_.end_index());
  if (added) nodes_.push_back(node);
  return at->second;
}

void SimCluster::Execute(const Action& action, const PerNode<Node>& nodes) {
  Action& collected = collected_.emplace_back(action, NumberOfJob(action.job)).first;
  for (NodeIndex& at : collected.workers) {
    if (at != kNoNode) at = NumberOfNode(nodes[at].name);
  }
}

std::vector<ActionId> SimCluster::Apply(double now) {
  std::vector<ActionId> done;
  for (auto& [action, job] : std::exchange(collected_, {})) {
    done.push_back(action.id);
    const WorkloadJob& truth = *at(job).job;
    JobResult& result = results_[job];
    double stall = action.moved > 0 ? truth.migration_cost.value_or(costs_.migration) : 0;
    StallKind cause = StallKind::kMigration;
    const auto raise = [&](StallKind kind, double seconds) {
      if (seconds >= stall) cause = kind;
      stall = std::max(stall, seconds);
    };
    switch (action.kind) {
      case ActionKind::kHalt:
        ++result.preemptions;
        break;
      case ActionKind::kStart:
        raise(StallKind::kStart, truth.start_cost.value_or(costs_.start));
        break;
      case ActionKind::kShrink:
      case ActionKind::kGrow:
        ++result.rescales;
        raise(StallKind::kRescale, truth.rescale_cost.value_or(costs_.rescale));
        break;
      case ActionKind::kVacate:
      case ActionKind::kMove:
        break;
    }
    result.migrated_workers += action.moved;
    if (!action.workers.empty()) stalls_.push_back({job, cause, stall, now + stall});
    Change(job, std::move(action.workers), stall, now);
  }
  return done;
}

void SimCluster::Submitted(JobNumber job) {
  if (keep_history_) results_[job].history.push_back({at(job).job->submit_time, 0, 0});
}

void SimCluster::Seat(JobNumber job, const std::vector<std::string>& nodes, double now) {
  std::vector<NodeIndex> workers;
  for (const std::string& node : nodes) workers.push_back(NumberOfNode(node));
  Change(job, std::move(workers), 0, now);
}

double SimCluster::DoneAt(const Runtime& runtime, double now) const {
  const double from = std::max(runtime.updated_at, runtime.stalled_until);
  return now > from ? runtime.done + (now - from) * runtime.rate : runtime.done;
}

void SimCluster::AccrueProgress(Runtime& runtime, double now) {
  runtime.done = std::min(DoneAt(runtime, now), runtime.job->work_seconds);
  runtime.updated_at = now;
}

void SimCluster::Change(JobNumber job, std::vector<NodeIndex> workers, double stall, double now) {
  Runtime& runtime = at(job);
  const int width = runtime.job->gpus_per_worker;
  const int before = static_cast<int>(runtime.workers.size());
  const int after = static_cast<int>(workers.size());
  AccrueProgress(runtime, now);
  JobResult& result = results_[job];
  result.gpu_seconds += before * width * (now - runtime.held_since);
  if (before == 0) {
    if (!result.first_start) result.first_start = now;
  } else {
    result.waiting_seconds -= now - runtime.held_since;  // Complete() adds the JCT
  }
  runtime.held_since = now;
  gpus_used_ += (after - before) * width;
  if (before == 0 && after > 0) {
    runtime.running_at = static_cast<int>(running_.size());
    running_.push_back(job);
  } else if (before > 0 && after == 0) {
    const JobNumber last = running_.back();
    running_[runtime.running_at] = last;
    at(last).running_at = runtime.running_at;
    running_.pop_back();
    runtime.running_at = -1;
  }
  runtime.workers = std::move(workers);

  // Two actions at one instant are one change with one stall; a later change restarts it.
  const double until = now + stall;
  runtime.stalled_until = runtime.changed_at == now ? std::max(runtime.stalled_until, until) : until;
  runtime.changed_at = now;
  const bool whole = after > 0 && std::find(runtime.workers.begin(), runtime.workers.end(), kNoNode) ==
                                      runtime.workers.end();
  runtime.rate = whole ? TrueSpeedup(*runtime.job, runtime.workers) : 0;
  const double epoch = runtime.job->work_seconds / runtime.job->epochs;
  runtime.clean_from = static_cast<int>(std::ceil(runtime.done / epoch - 1e-9));
  runtime.reported = runtime.clean_from;
  runtime.part_from = runtime.done / epoch;
  Schedule(job);
  Record(job, now);
}

void SimCluster::Schedule(JobNumber job) {
  Runtime& runtime = at(job);
  ++runtime.version;
  if (runtime.rate <= 0) return;
  const double from = std::max(runtime.updated_at, runtime.stalled_until);
  due_.push({from + (runtime.job->work_seconds - runtime.done) / runtime.rate, job, runtime.version});
}

void SimCluster::Record(JobNumber job, double now) {
  if (!keep_history_) return;
  auto& history = results_[job].history;
  const Segment segment{now, static_cast<int>(at(job).workers.size()), NodesSpanned(at(job).workers)};
  if (!history.empty() && history.back().from == now) {
    history.back() = segment;
  } else {
    history.push_back(segment);
  }
}

void SimCluster::NodeLost(const std::string& name, double now) {
  const NodeIndex node = NumberOfNode(name);
  for (const JobNumber job : running_) {
    Runtime& runtime = at(job);
    if (std::find(runtime.workers.begin(), runtime.workers.end(), node) == runtime.workers.end()) continue;
    AccrueProgress(runtime, now);
    runtime.rate = 0;
    Schedule(job);
  }
}

std::vector<std::pair<JobNumber, std::vector<std::string>>> SimCluster::NodeBack(const std::string& name) {
  const NodeIndex node = NumberOfNode(name);
  std::vector<std::pair<JobNumber, std::vector<std::string>>> jobs;
  for (const JobNumber job : running_) {
    Runtime& runtime = at(job);
    if (std::find(runtime.workers.begin(), runtime.workers.end(), node) == runtime.workers.end()) continue;
    std::replace(runtime.workers.begin(), runtime.workers.end(), node, kNoNode);
    std::vector<std::string> held;
    for (const NodeIndex at : runtime.workers) {
      held.push_back(at == kNoNode ? std::string() : nodes_[at]);
    }
    jobs.emplace_back(job, std::move(held));
  }
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

double SimCluster::NextCompletion() {
  while (!due_.empty() && due_.top().version != at(due_.top().job).version) due_.pop();
  return due_.empty() ? std::numeric_limits<double>::infinity() : due_.top().time;
}

std::vector<JobNumber> SimCluster::Complete(double now) {
  std::vector<JobNumber> completed;
  while (NextCompletion() <= now) {
    const JobNumber job = due_.top().job;
    due_.pop();
    at(job).done = at(job).job->work_seconds;
    at(job).updated_at = now;
    Change(job, {}, 0, now);
    JobResult& result = results_[job];
    result.end = now;
    result.waiting_seconds += now - result.submit_time;
    completed.push_back(job);
  }
  std::sort(completed.begin(), completed.end());
  return completed;
}

double SimCluster::RemainingWork(JobNumber job, double now) const {
  return std::max(0.0, at(job).job->work_seconds - DoneAt(at(job), now));
}

std::vector<SimCluster::ObservedStall> SimCluster::TakeStalls(double now) {
  std::vector<ObservedStall> over;
  std::erase_if(stalls_, [&](const ObservedStall& stall) {
    if (stall.until > now) return false;
    // A stall that another change cut short says nothing about its length.
    const bool whole = !at(stall.job).workers.empty() && at(stall.job).stalled_until == stall.until;
    if (whole || results_[stall.job].end) over.push_back(stall);
    return true;
  });
  return over;
}

int SimCluster::EpochsDone(JobNumber job, double now) const {
  const Runtime& runtime = at(job);
  const double epoch = runtime.job->work_seconds / runtime.job->epochs;
  return std::min(static_cast<int>(DoneAt(runtime, now) / epoch + 1e-9), runtime.job->epochs);
}

double SimCluster::Progress(JobNumber job, double now) const {
  const Runtime& runtime = at(job);
  return std::min(1.0, DoneAt(runtime, now) / runtime.job->work_seconds) * runtime.job->epochs;
}

SimCluster::Epochs SimCluster::TakePart(JobNumber job, double now, double least) {
  Runtime& runtime = at(job);
  const double progress = Progress(job, now);
  if (runtime.rate <= 0 || progress < runtime.part_from + least) return {};
  runtime.part_from = progress;
  return {.workers = static_cast<int>(runtime.workers.size()),
          .nodes = NodesSpanned(runtime.workers),
          .count = 1,
          .seconds = runtime.job->work_seconds / runtime.job->epochs / runtime.rate};
}

SimCluster::Epochs SimCluster::TakeEpochs(JobNumber job, double now) {
  Runtime& runtime = at(job);
  const int done = EpochsDone(job, now);
  Epochs epochs;
  if (runtime.rate <= 0 || done <= runtime.reported) return epochs;
  epochs.workers = static_cast<int>(runtime.workers.size());
  epochs.nodes = NodesSpanned(runtime.workers);
  epochs.count = done - runtime.reported;
  epochs.seconds = runtime.job->work_seconds / runtime.job->epochs / runtime.rate;
  runtime.reported = done;
  return epochs;
}

}  // namespace voda::sim
