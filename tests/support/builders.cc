#include "support/builders.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace voda::testing {

JobBuilder::JobBuilder(std::string name) {
  job_.name = std::move(name);
}

JobBuilder& JobBuilder::Sizes(int min, int num, int max) {
  job_.min = min;
  job_.num = num;
  job_.max = max;
  sizes_.clear();
  return *this;
}

JobBuilder& JobBuilder::Allowed(std::vector<int> sizes) {
  VODA_CHECK(!sizes.empty());
  sizes_ = std::move(sizes);
  job_.min = sizes_.front();
  job_.max = sizes_.back();
  if (std::find(sizes_.begin(), sizes_.end(), job_.num) == sizes_.end()) job_.num = job_.min;
  return *this;
}

JobBuilder& JobBuilder::Speedup(std::vector<double> speedup) {
  speedup_ = std::move(speedup);
  return *this;
}

JobBuilder& JobBuilder::GpusPerWorker(int gpus) {
  job_.gpus_per_worker = gpus;
  return *this;
}

JobBuilder& JobBuilder::Submit(double time) {
  job_.submit_time = time;
  return *this;
}

JobBuilder& JobBuilder::Remaining(double seconds) {
  job_.remaining_seconds = seconds;
  return *this;
}

JobBuilder& JobBuilder::Priority(int priority) {
  job_.priority = priority;
  return *this;
}

JobBuilder& JobBuilder::FirstStart(double time) {
  job_.first_start = time;
  return *this;
}

JobBuilder& JobBuilder::Attained(double gpu_seconds) {
  job_.attained_gpu_seconds = gpu_seconds;
  return *this;
}

JobBuilder& JobBuilder::Waited(double seconds) {
  job_.waiting_seconds = seconds;
  return *this;
}

JobBuilder& JobBuilder::Ran(double seconds) {
  job_.running_seconds = seconds;
  return *this;
}

JobBuilder& JobBuilder::NotPreemptible() {
  job_.preemptible = false;
  return *this;
}

JobBuilder& JobBuilder::On(std::vector<std::string> nodes) {
  on_ = std::move(nodes);
  return *this;
}

JobBuilder& JobBuilder::Costs(double start, double rescale, double migration) {
  job_.start_cost = start;
  job_.rescale_cost = rescale;
  job_.migration_cost = migration;
  return *this;
}

Job JobBuilder::Build() const {
  Job job = job_;
  std::vector<int> sizes = sizes_;
  if (sizes.empty()) {
    sizes.resize(job.max - job.min + 1);
    std::iota(sizes.begin(), sizes.end(), job.min);
  }
  VODA_CHECK(std::find(sizes.begin(), sizes.end(), job.num) != sizes.end());
  job.curve = speedup_.empty() ? Curve::LinearOver(sizes) : Curve::Of(sizes, speedup_);
  return job;
}

SnapshotBuilder& SnapshotBuilder::Now(double now) {
  now_ = now;
  return *this;
}

SnapshotBuilder& SnapshotBuilder::Node(std::string name, int gpus, NodeState state) {
  nodes_.push_back({std::move(name), gpus, state});
  return *this;
}

SnapshotBuilder& SnapshotBuilder::Nodes(int count, int gpus) {
  for (int i = 0; i < count; ++i) Node("n" + std::to_string(nodes_.size()), gpus);
  return *this;
}

SnapshotBuilder& SnapshotBuilder::Add(const JobBuilder& job) {
  jobs_.push_back(job);
  return *this;
}

Snapshot SnapshotBuilder::Build() const {
  Snapshot snapshot;
  snapshot.now = now_;
  snapshot.nodes = nodes_;
  for (const JobBuilder& builder : jobs_) {
    Job job = builder.Build();
    for (const std::string& name : builder.on_) {
      const auto at = std::find_if(nodes_.begin(), nodes_.end(),
                                   [&](const voda::Node& node) { return node.name == name; });
      job.workers.push_back(at == nodes_.end() ? kNoNode : NodeIndex(at - nodes_.begin()));
    }
    snapshot.jobs.push_back(std::move(job));
  }
  return snapshot;
}

Sizes SizesByName(const Snapshot& snapshot, const Allocation& allocation) {
  VODA_CHECK(allocation.workers.size() == snapshot.jobs.size());
  Sizes sizes;
  for (const JobIndex i : snapshot.jobs.indices()) sizes[snapshot.jobs[i].name] = allocation.workers[i];
  return sizes;
}

JobIndex IndexOf(const Snapshot& snapshot, std::string_view name) {
  const auto at = std::find_if(snapshot.jobs.begin(), snapshot.jobs.end(),
                               [&](const Job& job) { return job.name == name; });
  VODA_CHECK(at != snapshot.jobs.end());
  return JobIndex(at - snapshot.jobs.begin());
}

const Reason& ReasonOf(const Snapshot& snapshot, const Allocation& allocation, std::string_view name) {
  return allocation.reasons[IndexOf(snapshot, name)];
}

std::vector<std::string> PromotedNames(const Snapshot& snapshot, const Allocation& allocation) {
  std::vector<std::string> names;
  for (const JobIndex job : allocation.promoted) names.push_back(snapshot.job(job).name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace voda::testing
