#include "core/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/decide.h"

namespace voda {

namespace {

int FreeGpus(const View& view) {
  int free = 0;
  for (const Node& node : view.world().nodes) free += node.state == NodeState::kReady ? node.gpus : 0;
  for (const JobIndex i : view.jobs().indices()) {
    for (const NodeIndex at : view.jobs()[i].observed) {
      if (at == kNoNode || view.world().node(at).state != NodeState::kReady) continue;
      free -= view.world().jobs[i].gpus_per_worker;
    }
  }
  return std::max(0, free);
}

}  // namespace

Explanation Explain(const View& view, const Plan& plan, JobIndex index) {
  const Snapshot& world = view.world();
  const Job& job = world.job(index);
  const auto& order = plan.allocation.order;
  const auto at = std::find(order.begin(), order.end(), index);
  const Reason& reason = plan.allocation.reasons[index];

  Explanation explanation;
  explanation.status = view.job(index).status;
  explanation.workers = static_cast<int>(view.job(index).observed.size());
  explanation.planned = plan.allocation.workers[index];
  explanation.position = at == order.end() ? 0 : static_cast<int>(at - order.begin()) + 1;
  for (const JobIndex i : world.jobs.indices()) {
    const bool waits = view.jobs()[i].observed.empty() && world.jobs[i].aside == Aside::kNo;
    explanation.waiting += waits ? 1 : 0;
  }
  explanation.needs_gpus = job.gpus(explanation.workers == 0 ? job.min : explanation.workers);
  explanation.free_gpus = FreeGpus(view);
  explanation.reason = reason;
  explanation.estimate = EstimateOf(job);
  explanation.work_left = job.remaining_seconds;
  explanation.belief = DescribeBelief(job);
  explanation.text = Describe(reason, world, index, explanation.planned);
  if (const std::string& why = view.job(index).failure; !why.empty())
    explanation.text += fmt::format("; what was tried last failed: {}", why);
  for (auto ahead = order.begin(); ahead != at && explanation.ahead.size() < Explanation::kAheadShown;
       ++ahead) {
    const int workers = plan.allocation.workers[*ahead];
    explanation.ahead.push_back(
        {world.job(*ahead).name, view.job(*ahead).status, workers, world.job(*ahead).gpus(workers)});
  }
  return explanation;
}

std::vector<PlannedJob> ExplainPlan(const View& view, const Plan& plan) {
  const Snapshot& world = view.world();
  std::vector<PlannedJob> planned;
  for (const JobIndex i : world.jobs.indices()) {
    const Reason& reason = plan.allocation.reasons[i];
    PlannedJob& job = planned.emplace_back();
    job.name = world.job(i).name;
    for (const NodeIndex at : view.job(i).desired) {
      job.nodes.push_back(at == kNoNode ? std::string() : world.node(at).name);
    }
    job.code = reason.code;
    job.reason = Describe(reason, world, i, plan.allocation.workers[i]);
    job.guessed = world.job(i).guessed;
  }
  std::sort(planned.begin(), planned.end(),
            [](const PlannedJob& a, const PlannedJob& b) { return a.name < b.name; });
  return planned;
}

Prospect WouldGet(const View& view, const Policy& policy, const Job& job) {
  Snapshot world = view.world();
  const JobIndex index = world.jobs.end_index();
  world.jobs.push_back(job);
  const Plan plan = Decide(world, policy, view.config());
  const int workers = plan.allocation.workers.back();
  return {workers, Describe(plan.allocation.reasons.back(), world, index, workers)};
}

}  // namespace voda
