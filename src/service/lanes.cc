// The schedulers, one for each GPU type, and what follows from what happens to them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "codec/json_writer.h"
#include "service/job_names.h"
#include "service/kept_state.h"
#include "service/service.h"

namespace voda {

namespace {

// The job an event is about, empty for others.
std::string JobOf(const State& state, const Event& event) {
  const auto owner = [&](ActionId id) -> std::string {
    const auto at = state.action_owner.find(id);
    if (at == state.action_owner.end()) return {};
    return state.world.job(state.slot_of[at->second]).name;
  };
  struct Visitor {
    decltype(owner)& of;
    std::string operator()(const JobArrived& event) const { return event.job.name; }
    std::string operator()(const JobCompleted& event) const { return event.job; }
    std::string operator()(const JobFailed& event) const { return event.job; }
    std::string operator()(const JobDeleted& event) const { return event.job; }
    std::string operator()(const JobHeld& event) const { return event.job; }
    std::string operator()(const JobResumed& event) const { return event.job; }
    std::string operator()(const JobChanged& event) const { return event.job; }
    std::string operator()(const WorkersObserved& event) const { return event.job; }
    std::string operator()(const ActionDone& event) const { return of(event.id); }
    std::string operator()(const ActionFailed& event) const { return of(event.id); }
    std::string operator()(const ActionTimedOut& event) const { return of(event.id); }
    std::string operator()(const NodeAdded&) const { return {}; }
    std::string operator()(const NodeRemoved&) const { return {}; }
    std::string operator()(const NodeChanged&) const { return {}; }
    std::string operator()(const MetricsUpdated&) const { return {}; }
    std::string operator()(const Wake&) const { return {}; }
    std::string operator()(const Tick&) const { return {}; }
  };
  return std::visit(Visitor{owner}, event);
}

std::string_view OutcomeOf(const Event& event) {
  if (std::holds_alternative<ActionDone>(event)) return "done";
  if (std::holds_alternative<ActionFailed>(event)) return "failed";
  if (std::holds_alternative<ActionTimedOut>(event)) return "timed_out";
  return {};
}

// "a: 2, b: 1"
std::string NodeCounts(const std::vector<std::string>& nodes) {
  std::map<std::string, int> counts;
  for (const std::string& node : nodes) ++counts[node.empty() ? "no node yet" : node];
  std::string text;
  for (const auto& [node, count] : counts)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", node, count);
  return text;
}

std::string_view Direction(std::size_t from, std::size_t to) {
  if (from == 0) return "start";
  if (to == 0) return "halt";
  if (to > from) return "up";
  return to < from ? "down" : "move";
}

}  // namespace

class Service::NotingPort final : public Cluster {
 public:
  NotingPort(Service& service, std::string gpu_type, Cluster& port)
      : service_(service), gpu_type_(std::move(gpu_type)), port_(port) {}
  void Execute(const Action& action, const std::vector<Node>& nodes) override {
    if (const Lane* lane = service_.FindLane(gpu_type_)) service_.NoteBefore(action, *lane);
    port_.Execute(action, nodes);
  }

 private:
  Service& service_;
  std::string gpu_type_;
  Cluster& port_;
};

void Service::NoteBefore(const Action& action, const Lane& lane) {
  if (!cluster_.KeepsJobs()) return;
  const auto named = by_name_.find(action.job);
  const auto job = named == by_name_.end() ? jobs_.end() : jobs_.find(named->second);
  if (job == jobs_.end()) return;
  Account(job->second, lane);
  JobRecord record = WithAsked(job->second.record);
  record.last_change = record.accounted;
  if (action.kind == ActionKind::kStart) {
    ++record.starts;
    record.last_start = record.accounted;
    if (!record.first_started) record.first_started = record.accounted;
  }
  cluster_.Note(action.job, WriteKeptState(record));
}

Lane* Service::FindLane(const std::string& gpu_type) {
  const auto at = lanes_.find(gpu_type);
  return at == lanes_.end() ? nullptr : &at->second;
}

const Lane* Service::FindLane(const std::string& gpu_type) const {
  const auto at = lanes_.find(gpu_type);
  return at == lanes_.end() ? nullptr : &at->second;
}

Result<Lane*> Service::LaneFor(const std::string& gpu_type) {
  if (Lane* known = FindLane(gpu_type)) return known;
  Lane lane;
  lane.gpu_type = gpu_type;
  lane.algorithm = config_.algorithm;
  lane.options = config_.options;
  const auto stored = settings_.find("algorithm/" + gpu_type);
  Result<std::unique_ptr<Policy>> policy = Error{};
  const bool flags_win = !cluster_.KeepsJobs();  // all replicas have the same flags, and one was told later
  if (!(config_.algorithm_given && flags_win) && stored != settings_.end()) {
    // "Tiresias threshold=1800"
    PolicyOptions options;
    std::string_view rest = stored->second;
    const std::string name(rest.substr(0, rest.find(' ')));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    while (!rest.empty()) {
      const std::string_view option = rest.substr(0, rest.find(' '));
      const auto equals = option.find('=');
      if (equals != option.npos) options.emplace(option.substr(0, equals), option.substr(equals + 1));
      rest.remove_prefix(std::min(rest.size(), option.size() + 1));
    }
    policy = MakePolicy(name, options);
    if (policy) {
      lane.algorithm = name;
      lane.options = std::move(options);
    } else {
      Log(LogLevel::kWarn, "stored algorithm cannot be used, the default is",
          {{"gpu_type", gpu_type}, {"stored", stored->second}, {"why", policy.error().message}});
    }
  }
  if (!policy) policy = config_.make_policy(lane.algorithm, lane.options);
  if (!policy) return policy.error();

  CoreConfig core = config_.core;
  if (const auto limit = settings_.find("ratelimit/" + gpu_type);
      !(config_.rate_limit_given && flags_win) && limit != settings_.end()) {
    core.rate_limit = std::clamp(std::strtod(limit->second.c_str(), nullptr), 0.0, 86400.0);
  }
  auto timed = std::make_unique<TimedPolicy>(std::move(*policy));
  lane.policy = timed.get();
  lane.port = std::make_unique<NotingPort>(*this, gpu_type, cluster_.PortFor(gpu_type));
  lane.scheduler = std::make_unique<Scheduler>(core, std::move(timed), *lane.port, nullptr);
  if (const auto rounds = ReadStore([&] { return database_.Rounds(gpu_type, 0, 1); });
      rounds && !rounds->empty()) {
    lane.scheduler->ResumeRounds(rounds->front().round);
  }
  Lane& added = lanes_.emplace(gpu_type, std::move(lane)).first->second;
  const auto means = database_.Means();
  if (!means) return means.error();
  RestoreMeans(added, *means);
  return &added;
}

void Service::Deliver(const std::string& gpu_type, const Event& event, double now) {
  if (cluster_.KeepsJobs()) FollowNode(gpu_type, event);
  if (Lane* lane = FindLane(gpu_type)) Handle(*lane, event, now);
}

void Service::Handle(Lane& lane, const Event& event, double now) {
  const State& state = lane.scheduler->state();
  const std::string name = JobOf(state, event);
  std::vector<NodeIndex> before;
  if (const JobIndex index = FindJob(state, name); index != kNoJob) {
    before = state.world.job(index).workers;
    const auto& in_flight = state.active[static_cast<std::size_t>(index)].in_flight;
    if (const std::string_view outcome = OutcomeOf(event); !outcome.empty() && in_flight) {
      metrics_.Add(Series::kActions, {lane.gpu_type, Name(in_flight->action.kind), outcome});
      if (const auto* failed = std::get_if<ActionFailed>(&event)) {
        Log(LogLevel::kWarn, "action failed",
            {{"job", name}, {"action", Name(in_flight->action.kind)}, {"why", failed->message}});
      }
    }
  }
  lane.scheduler->Handle(event, now);
  if (!name.empty()) Follow(lane, name, before, now);
  CollectEnded(lane, now);
}

void Service::Follow(Lane& lane, const std::string& name, const std::vector<NodeIndex>& before, double now) {
  const auto at = by_name_.find(name);
  if (at == by_name_.end()) return;
  const auto found = jobs_.find(at->second);
  if (found == jobs_.end()) return;
  JobEntry& job = found->second;
  const State& state = lane.scheduler->state();
  const JobIndex index = FindJob(state, name);
  if (index == kNoJob) return;
  const Job& observed = state.world.job(index);
  const ActiveJob& active = state.active[static_cast<std::size_t>(index)];
  job.record.status = std::string(Name(active.status));
  if (observed.workers == before) return;

  const auto from = before.size();
  const auto to = observed.workers.size();
  job.nodes.clear();
  for (const NodeIndex node : observed.workers) {
    job.nodes.push_back(node == kNoNode ? std::string() : state.world.node(node).name);
  }
  const std::string_view direction = Direction(from, to);
  if (direction == "start") ++job.record.starts;
  job.record.first_started = observed.first_start;
  job.record.last_change = now;
  if (direction == "start") job.record.last_start = now;
  Touch(job);
  metrics_.Add(Series::kJobResizes, {lane.gpu_type, direction});
  if (direction == "halt" && job.record.kind == "MPIJob") {
    metrics_.Add(Series::kLaunchersDeleted, {lane.gpu_type});
  }
  double migrated = 0;
  for (std::size_t i = 0; i < std::min(from, to); ++i) migrated += before[i] != observed.workers[i] ? 1 : 0;
  if (migrated > 0) metrics_.Add(Series::kWorkersMigrated, {lane.gpu_type}, migrated);

  JsonWriter fields;
  fields.Field("from", from).Field("to", to).Key("nodes").Array();
  for (const std::string& node : job.nodes) fields.Value(node);
  fields.EndArray();
  // A change that a user made, as holding it, has no decision behind it.
  const bool decided = active.last_change && active.last_change->to == static_cast<int>(to);
  const std::string reason = decided ? ToldOf(name, active.last_change->reason) : std::string();
  if (!reason.empty()) fields.Field("reason", reason);
  const char* type = direction == "start"  ? "job.started"
                     : direction == "halt" ? "job.halted"
                     : direction == "move" ? "job.moved"
                                           : "job.resized";
  Log(LogLevel::kInfo, type,
      {{"job", name}, {"from", from}, {"to", to}, {"nodes", fmt::format("{}", fmt::join(job.nodes, ","))}});
  Publish(type, lane, name, fields.Take());
  SayChange(job, direction, from, reason);
}

// Who may see a job may not see those of other namespaces by that.
std::string Service::ToldOf(const std::string& job, const std::string& text) const {
  return cluster_.KeepsJobs() ? WithoutOthers(text, job.substr(0, job.find('/'))) : text;
}

void Service::SayChange(const JobEntry& job, std::string_view direction, std::size_t from,
                        const std::string& reason) {
  if (!cluster_.KeepsJobs()) return;
  const char* what = direction == "start"  ? "Started"
                     : direction == "halt" ? "Suspended"
                     : direction == "move" ? "Moved"
                                           : "Resized";
  std::string message =
      direction == "halt"
          ? fmt::format("stopped, {} worker{} gave back their GPUs", from, from == 1 ? "" : "s")
          : fmt::format("{} worker{}{} on {}", job.nodes.size(), job.nodes.size() == 1 ? "" : "s",
                        direction == "start" ? std::string() : fmt::format(" after {}", from),
                        NodeCounts(job.nodes));
  if (!reason.empty()) message += ": " + reason;
  cluster_.Say(job.record.name, {what, std::move(message), false});
}

void Service::CollectEnded(Lane& lane, double now) {
  const State& state = lane.scheduler->state();
  if (state.active.size() >= lane.active) {
    lane.active = state.active.size();
    return;
  }
  std::size_t gone = lane.active - state.active.size();
  lane.active = state.active.size();
  for (auto ended = state.ended.rbegin(); gone > 0 && ended != state.ended.rend(); ++ended, --gone) {
    const auto at = by_name_.find(ended->name);
    if (at == by_name_.end()) continue;
    if (const auto job = jobs_.find(at->second); job != jobs_.end()) Finish(lane, job->second, *ended, now);
  }
}

void Service::Finish(Lane& lane, JobEntry& job, const EndedJob& ended, double now) {
  JobRecord& record = job.record;
  // Bring the totals up to the end: the scheduler has forgotten the job.
  const double total = std::max(0.0, now - record.submitted);
  const double since = std::max(0.0, total - record.waited - record.ran);
  if (record.status == "Running") {
    record.ran += since;
    record.gpu_seconds += since * static_cast<double>(job.nodes.size()) * record.gpus_per_worker;
  } else {
    record.waited += since;
  }
  record.status = std::string(Name(ended.status));
  record.ended = now;
  record.message = ended.message;
  job.nodes.clear();
  job.csv.reset();
  job.spec.reset();
  record.document.clear();
  Touch(job);
  const std::string name = record.name;
  OnCommit([this, name](const std::optional<Refusal>& failed) {
    if (!failed) cluster_.ForgetJob(name);
  });
  const char* type = ended.status == JobStatus::kCompleted ? "job.completed"
                     : ended.status == JobStatus::kFailed  ? "job.failed"
                                                           : "job.canceled";
  metrics_.Add(ended.status == JobStatus::kCompleted ? Series::kJobsCompleted
               : ended.status == JobStatus::kFailed  ? Series::kJobsFailed
                                                     : Series::kJobsDeleted,
               {lane.gpu_type});
  Log(ended.status == JobStatus::kFailed ? LogLevel::kWarn : LogLevel::kInfo, type,
      {{"job", name},
       {"seconds", fmt::format("{:.1f}", total)},
       {"message", ended.message.substr(0, ended.message.find('\n'))}});
  metrics_.Observe(Series::kJobWaiting, {lane.gpu_type}, record.waited);
  if (ended.status == JobStatus::kCompleted) metrics_.Observe(Series::kJobCompletion, {lane.gpu_type}, total);
  JsonWriter fields;
  fields.Field("message", ended.message).Field("total_seconds", total);
  Publish(type, lane, name, fields.Take());
}

void Service::Advance(Lane& lane, double now) {
  const State& state = lane.scheduler->state();
  const std::string trigger = TriggerText(state);
  const auto began = std::chrono::steady_clock::now();
  const std::optional<Plan> plan = lane.scheduler->Advance(now);
  CollectEnded(lane, now);
  BeginStalls(lane, now);
  if (!plan) return;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  lane.last_round = now;
  const double deciding = lane.policy->TakeSeconds();
  metrics_.Add(Series::kRounds, {lane.gpu_type, lane.algorithm});
  metrics_.Observe(Series::kRoundDuration, {lane.gpu_type, lane.algorithm}, seconds);
  metrics_.Observe(Series::kRoundAllocationDuration, {lane.gpu_type, lane.algorithm}, deciding);
  metrics_.Observe(Series::kPolicyDuration, {lane.gpu_type, lane.algorithm}, deciding);
  metrics_.Observe(Series::kPlacementDuration, {lane.gpu_type}, std::max(0.0, seconds - deciding));
  int gpus = 0;
  for (const Node& node : state.world.nodes) gpus += node.state == NodeState::kReady ? node.gpus : 0;
  metrics_.Observe(Series::kAllocationJobs, {lane.gpu_type, lane.algorithm},
                   static_cast<double>(state.active.size()));
  metrics_.Observe(Series::kAllocationGpus, {lane.gpu_type, lane.algorithm}, gpus);

  JsonWriter changes;
  changes.Array();
  int changed = 0;
  for (std::size_t i = 0; i < state.active.size(); ++i) {
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
    if (const auto at = by_name_.find(name); at != by_name_.end()) {
      pending_.push_back(
          [id = at->second, size = SizeRecord{change->time, change->round, change->from, change->to,
                                              ToldOf(name, change->reason), ToldOf(name, change->trigger)}](
              Database& database) { database.AddSize(id, size); });
    }
  }
  changes.EndArray();
  Log(LogLevel::kInfo, "round",
      {{"gpu_type", lane.gpu_type},
       {"round", state.rounds},
       {"algorithm", lane.algorithm},
       {"changes", changed},
       {"ms", fmt::format("{:.2f}", seconds * 1000)},
       {"trigger", trigger}});
  RoundRecord round{lane.gpu_type, state.rounds, now,     lane.algorithm,
                    trigger,       state.note,   seconds, changes.text()};
  JsonWriter fields;
  fields.Field("round", state.rounds)
      .Field("algorithm", lane.algorithm)
      .Field("trigger", trigger)
      .Key("changes")
      .Raw(changes.text());
  pending_.push_back([round = std::move(round)](Database& database) { database.AddRound(round); });
  Publish("round", lane, {}, fields.Take());
}

void Service::BeginStalls(Lane& lane, double now) {
  const State& state = lane.scheduler->state();
  if (state.next_action == lane.next_action) return;
  for (std::size_t i = 0; i < state.active.size(); ++i) {
    const auto& in_flight = state.active[i].in_flight;
    if (!in_flight || in_flight->action.id < lane.next_action || in_flight->action.workers.empty()) continue;
    const auto at = by_name_.find(state.world.jobs[i].name);
    if (at == by_name_.end()) continue;
    const ActionKind kind = in_flight->action.kind;
    jobs_.at(at->second)
        .progress.Changed(kind == ActionKind::kStart  ? StallKind::kStart
                          : kind == ActionKind::kMove ? StallKind::kMigration
                                                      : StallKind::kRescale,
                          now);
  }
  lane.next_action = state.next_action;
}

void Service::Account(JobEntry& job, const Lane& lane) {
  const State& state = lane.scheduler->state();
  const JobIndex index = FindJob(state, job.record.name);
  if (index == kNoJob) return;
  const ActiveJob& active = state.active[static_cast<std::size_t>(index)];
  const Job& observed = state.world.job(index);
  job.record.waited = active.waited;
  job.record.ran = active.ran;
  job.record.gpu_seconds = active.gpu_seconds;
  job.record.attained = observed.attained_gpu_seconds;
  job.record.waiting = observed.waiting_seconds;
  job.record.running = observed.running_seconds;
  job.record.accounted = active.accrued_at;
}

void Service::Publish(const std::string& type, const Lane& lane, const std::string& job,
                      const std::string& fields) {
  std::string all = fmt::format(R"("time":{:.3f},"gpu_type":{})", WallNow(), Quoted(lane.gpu_type));
  if (!fields.empty()) all += "," + fields;
  metrics_.Add(Series::kEvents, {type});
  events_.Publish(type, job, all);
}

void Service::TellScheduler(Lane& lane, const NodeEntry& node, bool added, double now) {
  const NodeState state = node.state == "cordoned"   ? NodeState::kCordoned
                          : node.state == "draining" ? NodeState::kLost
                                                     : NodeState::kReady;
  if (added) {
    cluster_.AddNode(node.declared.name, node.declared.devices);
    Handle(lane, NodeAdded{{node.declared.name, node.declared.gpus, state}}, now);
  } else {
    Handle(lane, NodeChanged{node.declared.name, std::nullopt, state}, now);
  }
  JsonWriter fields;
  fields.Field("node", node.declared.name).Field("gpus", node.declared.gpus).Field("state", node.state);
  Publish(added ? "node.added" : "node.changed", lane, {}, fields.Take());
}

void Service::Notice(const JobNotice& notice, double now) {
  (void)now;
  const auto at = by_name_.find(notice.job);
  if (at == by_name_.end()) return;
  const auto job = jobs_.find(at->second);
  const Lane* lane = FindLane(notice.gpu_type);
  if (job == jobs_.end() || lane == nullptr) return;
  if (notice.kind == JobNotice::Kind::kWorkerFailed) metrics_.Add(Series::kWorkerFailures, {notice.gpu_type});
  job->second.record.failures = notice.failures;
  if (job->second.spec) job->second.record.message = notice.message;
  Touch(job->second);
  Log(LogLevel::kWarn, "worker failed",
      {{"job", notice.job},
       {"failures", notice.failures},
       {"message", notice.message.substr(0, notice.message.find('\n'))}});
  JsonWriter fields;
  fields.Field("message", notice.message).Field("failures", notice.failures);
  Publish("job.restarted", *lane, notice.job, fields.Take());
}

}  // namespace voda
