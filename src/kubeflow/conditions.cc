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
  Said& said = said_[job];
  said.word = word;
  said.tries = 0;
  Due(job, kPause);
  Arm();
}

void Conditions::Forget(const std::string& job) {
  const auto said = said_.find(job);
  if (said == said_.end()) return;
  order_.erase({said->second.due, job});
  said_.erase(said);
}

void Conditions::Due(const std::string& job, kube::Duration in) {
  Said& said = said_[job];
  order_.erase({said.due, job});
  said.due = io_.Now() + in;
  order_.insert({said.due, job});
}

void Conditions::Arm() {
  if (armed_ || writing_ || order_.empty()) return;
  armed_ = true;
  timer_ = io_.After(std::max(order_.begin()->first - io_.Now(), kube::Duration(1)), [this] {
    armed_ = false;
    Next();
  });
}

// The first that is due; one at a time.
void Conditions::Next() {
  while (!writing_ && !order_.empty() && order_.begin()->first <= io_.Now()) {
    const std::string name = order_.begin()->second;
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

// Somebody else wrote, or the server has other things to do.
void Conditions::Again(const std::string& job) {
  const int tries = ++said_[job].tries;
  tries < kTries ? Due(job, kPause * tries) : Forget(job);
}

}  // namespace voda::kubeflow
