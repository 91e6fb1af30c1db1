// Jobs and nodes of a cluster that keeps them itself: what others put there, and what is gone.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "codec/json_writer.h"
#include "service/kept_state.h"
#include "service/service.h"

namespace voda {

namespace {

std::string StateName(NodeState state) {
  return state == NodeState::kReady ? "ready" : state == NodeState::kCordoned ? "cordoned" : "draining";
}

bool SameJob(const JobRecord& record, const FoundJob& found) {
  return found.token.empty() ? record.submitted == found.created : record.token == found.token;
}

}  // namespace

// The name belongs to the object that has it now; what had it before stays in the history under another.
// False: the object is known already.
bool Service::MakeRoom(const FoundJob& found) {
  const auto named = by_name_.find(found.name);
  if (named == by_name_.end()) return true;
  const auto job = jobs_.find(named->second);
  if (job == jobs_.end()) return absent_.contains(found.name);  // else it is being accepted by us
  JobRecord& record = job->second.record;
  // The same one again, running: it was deleted and made anew from what had been read of it.
  const bool known = SameJob(record, found) && found.end != FoundJob::End::kNone;
  if (!record.ended || known) return false;
  record.name = fmt::format("{}@{}", record.name, record.id);
  if (record.id > 0) Writing().RenameJob(record.id, record.name);
  by_name_.erase(named);
  by_name_.emplace(record.name, record.id);
  return true;
}

void Service::Found(FoundJob found, double now) {
  if (!found.state.empty() && KeptName(found.state) != found.name) {
    // A copy of another job's object, with that one's marks on it.
    found.state.clear();
    found.token.clear();
    found.submission.clear();
  }
  if (!MakeRoom(found)) return;
  const auto refuse = [&](const std::string& why) {
    Log(LogLevel::kWarn, "job refused", {{"job", found.name}, {"why", why.substr(0, why.find('\n'))}});
    cluster_.Refuse(found.name, why);
    if (auto absent = absent_.extract(found.name); !absent.empty())
      LoseAbsent(std::move(absent.mapped()), "Voda cannot schedule it any more: " + why, now);
  };
  if (!found.refusal.empty()) return refuse(found.refusal);
  if (!found.spec.gpu_type.empty()) {
    // Nodes of that type may come later: an autoscaler starts at none.
    if (const auto lane = LaneFor(found.spec.gpu_type); !lane) return refuse(lane.error().message);
  }
  auto made = RecordFor(found.spec, now);
  if (const auto* refusal = std::get_if<Refusal>(&made)) return refuse(refusal->message);
  JobRecord record = std::move(std::get<0>(made));
  record.name = found.name;
  record.submitted = found.created;
  if (!found.token.empty()) record.token = found.token;
  bool known = !found.token.empty() || !found.state.empty();
  if (const auto absent = absent_.find(found.name); absent != absent_.end()) {
    if (SameJob(absent->second, found)) {
      const std::string gpu_type = std::move(record.gpu_type);  // nodes and selector may have changed
      record = std::move(absent->second);
      record.gpu_type = gpu_type;
      absent_.erase(absent);
      known = true;
    } else {
      LoseAbsent(std::move(absent->second), kDeletedMeanwhile, now);
      absent_.erase(absent);
      MakeRoom(found);
    }
  }
  if (!ReadKeptState(found.state, record)) {
    Log(LogLevel::kWarn, "state of the job cannot be read; it counts as new", {{"job", found.name}});
  }
  if (known) {
    submissions_.Add(found.submission, found.name);
    return Welcome(std::move(record), found, now);
  }
  if (found.end != FoundJob::End::kNone) return;  // it ended before Voda knew it
  by_name_[found.name] = 0;
  Insert({record}, {std::move(found.spec)}, std::nullopt, now,
         [](const Answer<std::vector<std::int64_t>>&) {});
}

// A job that an earlier run took in, here or elsewhere.
void Service::Welcome(JobRecord record, const FoundJob& found, double now) {
  // One of which there is a record without its end gets that below.
  const bool ended = found.end != FoundJob::End::kNone && record.id == 0;
  if (ended) {
    record.status = found.end == FoundJob::End::kCompleted ? "Completed" : "Failed";
    record.message = found.message;
    record.ended = found.ended > 0 ? found.ended : now;
  }
  if (record.id == 0) {
    record.id = store_error_.empty() ? Writing().InsertJob(record) : 0;
    if (record.id == 0) record.id = --unstored_;
  }
  by_name_[record.name] = record.id;
  record.document.clear();
  if (ended) {
    jobs_[record.id].record = std::move(record);
    return;
  }
  Lane& lane = *FindLane(record.gpu_type);
  Resume(std::move(record), found.spec, now);
  // It ended while Voda was away: before anything is decided with it.
  if (found.end == FoundJob::End::kCompleted) Handle(lane, JobCompleted{found.name}, now);
  if (found.end == FoundJob::End::kFailed) Handle(lane, JobFailed{found.name, found.message}, now);
}

void Service::Gone(const std::string& name, double now) {
  const auto named = by_name_.find(name);
  const auto job = named == by_name_.end() ? jobs_.end() : jobs_.find(named->second);
  if (named != by_name_.end() && job == jobs_.end()) gone_early_.insert(name);  // before it could be started
  if (job == jobs_.end() || job->second.record.ended) return;
  Lane& lane = *FindLane(job->second.record.gpu_type);
  // Its pods go with it; until they have, the cluster counts their GPUs as taken.
  Handle(lane, WorkersObserved{name, {}}, now);
  Account(job->second, lane);  // it ran until now; the scheduler forgets it with the next event
  Handle(lane, JobDeleted{name}, now);
}

// A job of the store that is none any more.
void Service::LoseAbsent(JobRecord record, const std::string& why, double now) {
  by_name_[record.name] = record.id;
  JobEntry& job = jobs_[record.id];
  job.record = std::move(record);
  job.record.document.clear();
  job.record.status = "Canceled";
  job.record.ended = now;
  job.record.message = why;
  Touch(job);
}

void Service::FollowNode(const std::string& gpu_type, const Event& event) {
  const auto publish = [&](const char* type, const std::string& name) {
    const auto lane = LaneFor(gpu_type);
    if (!lane)
      return Log(LogLevel::kError, "no scheduler", {{"gpu_type", gpu_type}, {"why", lane.error().message}});
    JsonWriter fields;
    fields.Field("node", name);
    if (const auto node = nodes_.find(name); node != nodes_.end())
      fields.Field("gpus", node->second.declared.gpus).Field("state", node->second.state);
    Publish(type, **lane, {}, fields.Take());
  };
  if (const auto* added = std::get_if<NodeAdded>(&event)) {
    const bool first = restored_ && std::none_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
                         return node.second.declared.gpu_type == gpu_type;
                       });
    nodes_[added->node.name] = {
        {added->node.name, added->node.gpus, gpu_type, {}}, StateName(added->node.state), false};
    publish("node.added", added->node.name);
    if (first) cluster_.LookAgain();
  } else if (const auto* changed = std::get_if<NodeChanged>(&event)) {
    NodeEntry& node = nodes_[changed->node];
    if (changed->gpus) node.declared.gpus = *changed->gpus;
    if (changed->state) node.state = StateName(*changed->state);
    publish("node.changed", changed->node);
  } else if (const auto* removed = std::get_if<NodeRemoved>(&event)) {
    const auto node = nodes_.find(removed->node);
    if (node != nodes_.end() && node->second.declared.gpu_type == gpu_type) nodes_.erase(node);
    publish("node.removed", removed->node);
  }
}

}  // namespace voda
