#include "kubeflow/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "document/json_writer.h"
#include "kube/event_series.h"
#include "kube/patch.h"

namespace voda::kubeflow {

namespace {

constexpr std::size_t kMessageBytes = 1024;  // as for an Event

// Whether the job is to run, as far as Voda decides that.
bool IsScheduled(const JobObject& job, const JobWord& word) {
  return !job.suspended && job.end == JobObject::End::kNone && word.reason != "Refused" &&
         word.reason != "Released" && word.reason != "LeftAlone";
}

}  // namespace

std::optional<kube::Request> ConditionRequest(const JobObject& job, const JobWord& word, kube::WallTime now) {
  if (!job.has_conditions) return std::nullopt;
  const bool scheduled = IsScheduled(job, word);
  const std::string time = kube::MicroTime(now);
  const JobObject::Condition& before = job.condition;
  const bool there = before.at >= 0;
  const std::string status = scheduled ? "True" : "False";
  const std::string message = kube::CutText(word.message, kMessageBytes);
  const bool same = there && before.status == status;
  if (same && before.reason == word.reason && before.message == message && before.at == 0)
    return std::nullopt;
  JsonWriter out;
  out.Object()
      .Field("type", kScheduledCondition)
      .Field("status", status)
      .Field("reason", word.reason)
      .Field("message", message)
      .Field("lastUpdateTime", time)
      .Field("lastTransitionTime", same ? before.since : time);
  const std::string condition = out.End().Take();
  kube::JsonPatch patch;
  patch.TestUid(job.head.uid).TestResourceVersion(job.head.resource_version);
  if (before.at == 0) {
    patch.Replace("/status/conditions/0", condition);
  } else {
    if (there) patch.Remove(fmt::format("/status/conditions/{}", before.at));
    patch.Add("/status/conditions/0", condition);
  }
  kube::Request request = kube::JsonPatchRequest(job.resource, job.key(), patch, "status");
  request.lane = kube::Lane::kStatus;
  return request;
}

Conditions::Conditions(kube::Io& io, Find find, std::function<bool()> may_write)
    : io_(io), find_(std::move(find)), may_write_(std::move(may_write)) {}

Conditions::~Conditions() {
  *alive_ = false;
  io_.Cancel(timer_);
}

void Conditions::Put(const std::string& job, const JobWord& word) {
  Said& said = said_[job];
  said.word = word;
  said.tries = 0;
  Due(job, kPause);
  Arm();
}

void Conditions::Forget(const std::string& job) {
  const auto said = said_.find(job);
  if (said == said_.end()) return;
  Unqueue(job, said->second);
  said_.erase(said);
}

void Conditions::Unqueue(const std::string& job, const Said& said) {
  (said.urgent ? urgent_ : others_).erase({said.due, job});
}

bool Conditions::Turns(const std::string& job) const {
  const JobObject* object = find_(job);
  return object != nullptr &&
         IsScheduled(*object, said_.at(job).word) != (object->condition.status == "True");
}

void Conditions::Due(const std::string& job, kube::Duration in) {
  Said& said = said_[job];
  Unqueue(job, said);
  said.due = io_.Now() + in;
  said.urgent = Turns(job);
  (said.urgent ? urgent_ : others_).insert({said.due, job});
}

void Conditions::Arm() {
  if (writing_ || said_.empty()) return;
  kube::TimePoint next = kube::TimePoint::max();
  for (const Line* line : {&urgent_, &others_}) {
    if (!line->empty()) next = std::min(next, line->begin()->first);
  }
  if (armed_ && armed_for_ <= next) return;
  if (armed_) io_.Cancel(timer_);
  armed_ = true;
  armed_for_ = next;
  timer_ = io_.After(std::max(next - io_.Now(), kube::Duration(1)), [this] {
    armed_ = false;
    Next();
  });
}

// Writes the first condition that is due; only one write is in flight.
void Conditions::Next() {
  const auto ready = [this](const Line& line) { return !line.empty() && line.begin()->first <= io_.Now(); };
  while (!writing_ && (ready(urgent_) || ready(others_))) {
    const std::string name = (ready(urgent_) ? urgent_ : others_).begin()->second;
    if (!may_write_()) {
      Due(name, kPause);
      break;
    }
    const JobObject* job = find_(name);
    const bool there = job != nullptr && !job->deleting;
    if (there && !job->handled) {
      Again(name);
      continue;
    }
    if (there &&
        std::exchange(said_[name].version, job->head.resource_version) != job->head.resource_version) {
      Due(name, kQuiet);
      continue;
    }
    auto request = there ? ConditionRequest(*job, said_[name].word, io_.Wall()) : std::nullopt;
    if (request) {
      Write(name, std::move(*request));
    } else {
      Forget(name);
    }
  }
  Arm();
}

void Conditions::Write(const std::string& job, kube::Request request) {
  writing_ = true;
  io_.Send(std::move(request), [this, alive = alive_, job, word = said_[job].word](const kube::Reply& reply) {
    if (!*alive) return;
    writing_ = false;
    Answered(job, word, reply);
    Next();
  });
}

void Conditions::Answered(const std::string& job, const JobWord& word, const kube::Reply& reply) {
  const auto said = said_.find(job);
  if (said == said_.end()) return;
  const bool newer = said->second.word.reason != word.reason || said->second.word.message != word.message;
  if (newer) return;
  if (reply.ok() || reply.error->reason == kube::Reason::kNotFound) {
    Forget(job);
  } else if (reply.error->reason == kube::Reason::kForbidden) {
    if (!std::exchange(forbidden_, true)) {
      Log(LogLevel::kWarn, "conditions are not written; Voda's role needs patch on the jobs' status",
          {{"job", job}, {"why", reply.error->Text()}});
    }
    Forget(job);
  } else {
    Again(job);
  }
}

// Tries again later: somebody else wrote, or the server is busy.
void Conditions::Again(const std::string& job) {
  const int tries = ++said_[job].tries;
  if (tries < kTries) return Due(job, kPause * tries);
  Turns(job) ? Due(job, kSeldom) : Forget(job);
}

}  // namespace voda::kubeflow
