#include "service/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

#include "base/log.h"
#include "document/json_writer.h"

namespace voda {

void Rounds::Advance(double now) {
  for (auto& [gpu_type, pool] : pools_.all()) Advance(pool, now);
}

double Rounds::NextWake(double now) const {
  double next = std::numeric_limits<double>::infinity();
  for (const auto& [gpu_type, pool] : pools_.all()) next = std::min(next, pool.scheduler->NextWake(now));
  return next;
}

void Rounds::Advance(Pool& pool, double now) {
  Scheduler& scheduler = *pool.scheduler;
  const State& state = scheduler.state();
  const auto began = std::chrono::steady_clock::now();
  const std::vector<EndedJob> ended = scheduler.Handle(Tick{}, now);
  std::optional<Decision> decision;
  std::string trigger;
  if (scheduler.BeginRound(now)) {
    if (scheduler.policy()->External() && config_.decide_elsewhere) {
      config_.decide_elsewhere(pool.gpu_type, DeciderOf(pool, now));
    } else {
      trigger = state.under_way->trigger;
      decision = DecideTimed(state.world, *scheduler.policy(), state.config);
      scheduler.FinishRound(decision->plan, now);
    }
  }
  scheduler.Send(now);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  events_.Ended(pool, ended, now);
  BeginStalls(pool, now);
  if (decision) Record(pool, trigger, seconds, decision->policy_seconds, now);
}

void Rounds::Finish(const std::string& gpu_type, const Decider& decider, const Decision& decision,
                    double now) {
  Pool& pool = pools_.At(gpu_type);
  const auto& under_way = pool.state().under_way;
  const std::string trigger = under_way ? under_way->trigger : std::string();
  if (!pool.scheduler->FinishRound(decider.view, decision.plan, now)) return;
  Record(pool, trigger, decision.seconds, decision.policy_seconds, now);
}

void Rounds::Record(Pool& pool, const std::string& trigger, double seconds, double policy_seconds,
                    double now) {
  const State& state = pool.state();
  pool.last_round = now;
  metrics_.Add(Series::kRounds, {pool.gpu_type, pool.algorithm});
  metrics_.Observe(Series::kRoundDuration, {pool.gpu_type, pool.algorithm}, seconds);
  metrics_.Observe(Series::kRoundAllocationDuration, {pool.gpu_type, pool.algorithm}, policy_seconds);
  metrics_.Observe(Series::kPolicyDuration, {pool.gpu_type, pool.algorithm}, policy_seconds);
  metrics_.Observe(Series::kPlacementDuration, {pool.gpu_type}, std::max(0.0, seconds - policy_seconds));
  int gpus = 0;
  for (const Node& node : state.world.nodes) gpus += node.state == NodeState::kReady ? node.gpus : 0;
  metrics_.Observe(Series::kAllocationJobs, {pool.gpu_type, pool.algorithm},
                   static_cast<double>(state.active.size()));
  metrics_.Observe(Series::kAllocationGpus, {pool.gpu_type, pool.algorithm}, gpus);

  JsonWriter changes;
  changes.Array();
  int changed = 0;
  for (const JobIndex i : state.active.indices()) {
    const auto& change = state.active[i].last_change;
    if (!change || change->round != state.rounds) continue;
    ++changed;
    const std::string& name = state.world.jobs[i].name;
    changes.Object()
        .Field("job", name)
        .Field("from", change->from)
        .Field("to", change->to)
        .Field("reason", change->reason)
        .End();
    const JobEntry* job = jobs_.Find(name);
    if (job == nullptr) continue;
    SizeRecord size{change->time,
                    change->round,
                    change->from,
                    change->to,
                    announcer_.ToldOf(name, change->reason),
                    announcer_.ToldOf(name, change->trigger),
                    {}};
    for (const NodeIndex node : state.active[i].desired)
      size.nodes.push_back(node == kNoNode ? std::string() : state.world.node(node).name);
    history_.AddSize(job->record.id, std::move(size));
  }
  changes.EndArray();
  Log(LogLevel::kInfo, "round",
      {{"gpu_type", pool.gpu_type},
       {"round", state.rounds},
       {"algorithm", pool.algorithm},
       {"changes", changed},
       {"ms", fmt::format("{:.2f}", seconds * 1000)},
       {"trigger", trigger}});
  JsonWriter fields;
  fields.Field("round", state.rounds)
      .Field("algorithm", pool.algorithm)
      .Field("trigger", trigger)
      .Key("changes")
      .Raw(changes.text());
  history_.AddRound(
      {pool.gpu_type, state.rounds, now, pool.algorithm, trigger, state.note, seconds, changes.text()});
  announcer_.Publish("round", pool.gpu_type, {}, fields.Take());
}

void Rounds::BeginStalls(Pool& pool, double now) {
  const State& state = pool.state();
  if (state.next_action == pool.next_action) return;
  for (const JobIndex i : state.active.indices()) {
    const auto& in_flight = state.active[i].in_flight;
    if (!in_flight || in_flight->action.id < pool.next_action || in_flight->action.workers.empty()) continue;
    JobEntry* job = jobs_.Find(state.world.jobs[i].name);
    if (job == nullptr) continue;
    const ActionKind kind = in_flight->action.kind;
    job->progress.Changed(kind == ActionKind::kStart  ? StallKind::kStart
                          : kind == ActionKind::kMove ? StallKind::kMigration
                                                      : StallKind::kRescale,
                          now);
  }
  pool.next_action = state.next_action;
}

}  // namespace voda
