#include "service/gauges.h"

#include <cstdlib>
#include <map>
#include <string_view>

namespace voda {

void Gauges::Update() {
  for (const auto& [gpu_type, pool] : pools_.all()) Update(pool);
  const EventHub::Counters streams = events_.counters();
  metrics_.Set(Series::kEventStreams, static_cast<double>(streams.open));
  metrics_.Add(Series::kEventStreamsLagged, {}, static_cast<double>(streams.lagged - lagged_told_));
  lagged_told_ = streams.lagged;
}

void Gauges::Update(const Pool& pool) {
  const std::string& gpu_type = pool.gpu_type;
  const State& state = pool.state();
  std::map<std::string_view, int> statuses = {{Name(JobStatus::kWaiting), 0}, {Name(JobStatus::kRunning), 0}};
  int divergence = 0;
  int cross_node = 0;
  PerNode<int> used(state.world.nodes.size(), 0);
  for (const JobIndex i : state.active.indices()) {
    ++statuses[Name(state.active[i].status)];
    const auto& observed = state.active[i].observed;
    bool crosses = false;
    for (const NodeIndex seat : observed) {
      if (seat == kNoNode) continue;
      used[seat] += state.world.jobs[i].gpus_per_worker;
      crosses = crosses || seat != observed.front();
    }
    cross_node += crosses ? 1 : 0;
    divergence +=
        std::abs(static_cast<int>(state.active[i].desired.size()) - static_cast<int>(observed.size()));
  }
  for (const auto& [status, count] : statuses) metrics_.Set(Series::kJobs, {gpu_type, status}, count);
  metrics_.Set(Series::kPlanDivergence, {gpu_type}, divergence);
  metrics_.Set(Series::kJobsCrossNode, {gpu_type}, cross_node);
  metrics_.Set(Series::kSchedulerInfo, {gpu_type, pool.algorithm}, 1);
  metrics_.RemoveAll(Series::kGpus, gpu_type);
  metrics_.RemoveAll(Series::kGpusUsed, gpu_type);
  for (const NodeIndex i : used.indices()) {
    const Node& node = state.world.nodes[i];
    if (!nodes_.all().contains(node.name)) continue;
    metrics_.Set(Series::kGpus, {gpu_type, node.name}, node.gpus);
    metrics_.Set(Series::kGpusUsed, {gpu_type, node.name}, used[i]);
  }
}

}  // namespace voda
