#include "kubeflow/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "kube/event_series.h"
#include "kube/json_text.h"
#include "kube/patch.h"

namespace voda::kubeflow {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMessageBytes = 1024;  // as of an Event

std::string TextOf(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

bool Refuses(const JobWord& word) {
  return word.reason == "Refused";
}

}  // namespace

std::optional<kube::Request> ConditionRequest(const JobObject& job, const JobWord& word, kube::WallTime now) {
  const Json object = Json::parse(job.document, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto status = object.find("status");
  if (status == object.end() || !status->is_object()) return std::nullopt;
  const auto conditions = status->find("conditions");
  if (conditions == status->end() || !conditions->is_array()) return std::nullopt;

  const bool scheduled = !job.suspended && !Refuses(word);
  const std::string time = kube::MicroTime(now);
  Json condition = {{"type", kScheduledCondition}, {"status", scheduled ? "True" : "False"},
                    {"reason", word.reason},       {"message", kube::CutText(word.message, kMessageBytes)},
                    {"lastUpdateTime", time},      {"lastTransitionTime", time}};
  kube::JsonPatch patch;
  patch.TestUid(job.head.uid).TestResourceVersion(job.head.resource_version);
  const auto there = std::find_if(conditions->begin(), conditions->end(), [](const Json& one) {
    return one.is_object() && TextOf(one, "type") == kScheduledCondition;
  });
  if (there == conditions->end()) {
    patch.Add("/status/conditions/-", condition.dump(-1, ' ', false, Json::error_handler_t::replace));
  } else {
    const auto same = [&](const char* key) { return TextOf(*there, key) == TextOf(condition, key); };
    if (same("status") && same("reason") && same("message")) return std::nullopt;
    if (same("status")) condition["lastTransitionTime"] = TextOf(*there, "lastTransitionTime");
    patch.Replace(fmt::format("/status/conditions/{}", there - conditions->begin()),
                  condition.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  kube::Request request = kube::JsonPatchRequest(job.resource, job.key(), patch, "status");
  request.lane = kube::Lane::kEvent;
  return request;
}

Conditions::Conditions(kube::Io& io, Find find, std::function<bool()> may_write)
    : io_(io), find_(std::move(find)), may_write_(std::move(may_write)) {}

Conditions::~Conditions() {
  *alive_ = false;
  io_.Cancel(timer_);
}

void Conditions::Put(const std::string& job, const JobWord& word) {
  said_[job] = {word, io_.Now() + kPause, 0};
  Arm();
}

void Conditions::Arm() {
  if (armed_ || writing_ || said_.empty()) return;
  armed_ = true;
  timer_ = io_.After(kPause, [this] {
    armed_ = false;
    Next();
  });
}

// The first that is due; one at a time.
void Conditions::Next() {
  while (!writing_) {
    const auto due = std::find_if(said_.begin(), said_.end(),
                                  [&](const auto& one) { return one.second.due <= io_.Now(); });
    if (due == said_.end() || !may_write_()) break;
    const std::string name = due->first;
    const JobObject* job = find_(name);
    if (job == nullptr || job->deleting) {
      said_.erase(due);
    } else if (!job->handled) {
      Again(name);
    } else if (auto request = ConditionRequest(*job, due->second.word, io_.Wall())) {
      Write(name, std::move(*request));
    } else {
      said_.erase(due);
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
    said_.erase(said);
  } else if (reply.error->reason == kube::Reason::kForbidden) {
    if (!std::exchange(forbidden_, true)) {
      Log(LogLevel::kWarn, "conditions are not written; Voda's role needs patch on the jobs' status",
          {{"job", job}, {"why", reply.error->Text()}});
    }
    said_.erase(said);
  } else {
    Again(job);
  }
}

// Somebody else wrote, or the server has other things to do.
void Conditions::Again(const std::string& job) {
  Said& said = said_[job];
  if (++said.tries >= kTries) {
    said_.erase(job);
    return;
  }
  said.due = io_.Now() + kPause * said.tries;
}

}  // namespace voda::kubeflow
