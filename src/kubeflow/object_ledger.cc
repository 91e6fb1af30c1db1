#include "kubeflow/object_ledger.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "document/documents.h"
#include "kube/json_read.h"
#include "kubeflow/refusals.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {

namespace {

constexpr kube::Duration kReadAgain{1'000};
constexpr kube::Duration kClarifyEvery{1'000};
constexpr kube::Duration kOthersSeen{5'000};  // by then the others of a batch were seen, too
constexpr kube::Duration kDeleteAgain{1'000};
constexpr kube::Duration kLatest{90'000};  // longer than an API server works on a request
constexpr kube::Duration kLookEvery{20};
constexpr kube::Duration kComesBack{10'000};  // within which a created object does
constexpr int kClarifyTries = 60;

// Whether the server may have carried it out although it did not say so.
bool Unclear(const kube::ApiError& error) {
  return error.code >= 500 || (error.reason == kube::Reason::kConnection && !error.refused) ||
         error.reason == kube::Reason::kNoAnswer || error.reason == kube::Reason::kTimeout;
}

Refusal NotLeading() {
  return Unavailable("this replica does not lead at the moment; try again");
}

Refusal NodesAreReported() {
  return Conflict("nodes are those of the Kubernetes cluster; none is declared");
}

// Keys of a ConfigMap have no slash.
std::string ToMapKey(std::string setting) {
  if (const auto slash = setting.find('/'); slash != setting.npos) setting[slash] = '.';
  return setting;
}
std::string FromMapKey(std::string key) {
  if (const auto dot = key.find('.'); dot != key.npos) key[dot] = '/';
  return key;
}

std::map<std::string, std::string> SettingsIn(const std::string& body) {
  std::map<std::string, std::string> settings;
  const auto object = ParseJson(body);
  if (!object) return settings;
  for (const auto& [key, value] : (*object)["data"].members()) {
    if (value.text()) settings[FromMapKey(key)] = value.Text();
  }
  return settings;
}

// Of an object that was asked for; empty where it cannot be read.
std::string TokenIn(JobKind kind, std::string_view body) {
  const auto object = ParseJson(body);
  return object ? ReadOutline(kind, *object).Token() : std::string();
}

// The batch of an object: the first object of it, by its id and uid, or kFirst on that one itself.
constexpr std::string_view kFirst = "first";

}  // namespace

struct ObjectLedger::Batch {
  std::vector<LedgerJob> jobs;
  std::optional<SubmissionKey> key;
  Done done;
  std::vector<Target> made;
  bool unclear = false;  // the next one may still come

  const LedgerJob& next() const { return jobs[made.size()]; }
  std::string Mark() const {
    if (jobs.size() == 1) return {};
    if (made.empty()) return std::string(kFirst);
    return fmt::format("{} {}", jobs.front().name, made.front().uid);
  }
};

ManifestSettings ObjectSettings::For(const std::string& job, const std::string& gpu_type,
                                     const std::string& token) const {
  ManifestSettings made;
  if (!progress_url.empty()) made.progress_url = fmt::format("{}/api/v1/jobs/{}/progress", progress_url, job);
  made.token = token;
  made.gpu_type = gpu_type;
  made.steering = steering;
  return made;
}

ObjectLedger::ObjectLedger(Surroundings around, ObjectSettings settings)
    : around_(std::move(around)), settings_(std::move(settings)) {}

void ObjectLedger::Stop() {
  around_.io.RunAndWait([this] { *alive_ = false; });
}

void ObjectLedger::OnIo(std::function<void()> what) {
  around_.io.Post([alive = alive_, what = std::move(what)] {
    if (*alive) what();
  });
}

void ObjectLedger::Send(kube::Request request, kube::Io::Done then) {
  around_.io.Send(std::move(request), [alive = alive_, then = std::move(then)](kube::Reply reply) {
    if (*alive) then(std::move(reply));
  });
}

void ObjectLedger::Answer(const Done& done, std::optional<Refusal> refused) {
  around_.sink.Answer([done, refused = std::move(refused)] { done(refused); });
}

void ObjectLedger::ReadSettings(const std::function<void(std::map<std::string, std::string>)>& then) {
  Send(kube::GetRequest(kConfigMaps, settings_.settings), [this, then](const kube::Reply& reply) {
    if (reply.ok()) return then(SettingsIn(reply.body));
    if (reply.error->reason == kube::Reason::kNotFound) return then({});
    Log(LogLevel::kWarn, "settings cannot be read; tried again", {{"why", reply.error->Text()}});
    around_.io.After(kReadAgain, [this, alive = alive_, then] {
      if (*alive) ReadSettings(then);
    });
  });
}

void ObjectLedger::Known(const FoundJob& found, const JobObject& job) {
  // A copy of an object has the original's annotations, but no state or token of its own.
  if (!found.state && found.token.empty()) return;
  if (const auto text = job.annotations.find(kSubmissionAnnotation); text != job.annotations.end())
    submissions_.Add(text->second, found.name, WallNow());
}

bool ObjectLedger::RemoveUnaccepted(const JobObject& job) {
  const auto mark = job.annotations.find(kBatchAnnotation);
  const auto state = job.annotations.find(kStateAnnotation);
  if (mark == job.annotations.end() || state == job.annotations.end() || !job.suspended) return false;
  if (ReadJobState(state->second).job != JobId(job)) return false;  // it is a copy, with the original's marks
  const Target target{job.resource, job.key(), job.head.uid};
  if (mark->second == kFirst) {
    DeleteFirst(JobId(job), target, kOthersSeen);
    return true;
  }
  const auto space = mark->second.find(' ');
  const std::string first_id = mark->second.substr(0, space);
  const JobObject* first = around_.cluster.Find(first_id);
  // Without it the batch was accepted: an unaccepted one loses its first object last.
  if (first == nullptr || space == mark->second.npos || first->head.uid != mark->second.substr(space + 1))
    return false;
  const auto its = first->annotations.find(kBatchAnnotation);
  if (its == first->annotations.end() || its->second != kFirst) return false;
  DeleteOther(first_id, target);
  return true;
}

// ---- What is left of a batch that was not accepted goes, its first object last.

void ObjectLedger::DeleteOther(const std::string& first, const Target& target) {
  if (!unaccepted_[first].insert(target.uid).second) return;
  DeleteUntilGone(target, [this, first, uid = target.uid] { unaccepted_[first].erase(uid); });
}

void ObjectLedger::DeleteFirst(const std::string& first, const Target& target, kube::Duration delay) {
  around_.io.After(delay, [this, alive = alive_, first, target] {
    if (!*alive) return;
    if (!unaccepted_[first].empty()) return DeleteFirst(first, target, kDeleteAgain);
    unaccepted_.erase(first);
    DeleteUntilGone(target, [] {});
  });
}

void ObjectLedger::DeleteUntilGone(const Target& target, const std::function<void()>& then) {
  const auto again = [this, target, then] {
    around_.io.After(kDeleteAgain, [this, alive = alive_, target, then] {
      if (*alive) DeleteUntilGone(target, then);
    });
  };
  if (!around_.may_write()) return again();
  const std::string job = target.key.name_space + "/" + target.key.name;
  Send(kube::DeleteRequest(target.resource, target.key, {.uid = target.uid, .propagation = "Background"}),
       [again, then, job](const kube::Reply& reply) {
         const bool gone = reply.ok() || reply.error->reason == kube::Reason::kNotFound ||
                           reply.error->reason == kube::Reason::kConflict;  // another object has its name
         if (gone) {
           Log(LogLevel::kWarn, "a job of a submission that was not accepted was removed", {{"job", job}});
           return then();
         }
         Log(LogLevel::kWarn, "a job of a submission that was not accepted cannot be removed; tried again",
             {{"job", job}, {"why", reply.error->Text()}});
         again();
       });
}

// ---- Acceptance: one object after the other, then the mark of the first is removed.

void ObjectLedger::Accept(std::vector<LedgerJob> jobs, const std::optional<SubmissionKey>& key, Done done) {
  auto batch = std::make_shared<Batch>();
  batch->jobs = std::move(jobs);
  batch->key = key;
  batch->done = std::move(done);
  OnIo([this, batch] { CreateNext(batch); });
}

void ObjectLedger::CreateNext(const BatchPtr& batch) {
  if (batch->made.size() == batch->jobs.size()) return Seal(batch, 0);
  if (!around_.may_write()) return Undo(batch, NotLeading());
  const LedgerJob& job = batch->next();
  if (std::string why = OfAnotherQueue(*job.spec); !why.empty())
    return Undo(batch, Invalid(fmt::format("{}: {}", job.spec->name, why)));
  if (std::string why = OfAnotherVersion(*job.spec, settings_.mpi_version); !why.empty())
    return Undo(batch, Invalid(fmt::format("{}: {}", job.spec->name, why)));
  const kube::Resource resource = JobResource(job.spec->kind, job.spec->api_version);
  if (!around_.cluster.ReserveName(job.name, job.spec->kind)) return Undo(batch, Conflict(kSameName));
  around_.sightings.MarkOurs(job.name, job.spec->kind);  // the watch may be faster than the answer
  ManifestSettings settings = settings_.For(job.name, job.gpu_type, job.token);
  settings.state = WriteJobState(job.name, job.state);
  if (batch->key) settings.submission = Submissions::Text(*batch->key, batch->made.size());
  settings.batch = batch->Mark();
  const kube::ObjectKey key = KeyOf(job.name);
  Send(kube::CreateRequest(resource, key.name_space, NewObject(*job.spec, key.name, settings)),
       [this, batch, resource, key](const kube::Reply& reply) {
         if (reply.ok()) return Created(batch, resource, key, reply.body);
         if (!Unclear(*reply.error)) return Undo(batch, ToRefusal(*reply.error));
         Clarify(batch, resource, key, *reply.error, 0);
       });
}

// The object may be there all the same: then it has this job's token. Whoever asked is told when that is
// known.
void ObjectLedger::Clarify(const BatchPtr& batch, const kube::Resource& resource, const kube::ObjectKey& key,
                           const kube::ApiError& error, int tries) {
  Send(kube::GetRequest(resource, key), [this, batch, resource, key, error, tries](const kube::Reply& there) {
    const LedgerJob& job = batch->next();
    if (there.ok() && TokenIn(job.spec->kind, there.body) == job.token)
      return Created(batch, resource, key, there.body);
    const bool known = there.ok() || there.error->reason == kube::Reason::kNotFound;
    batch->unclear = !there.ok();
    if (known || tries >= kClarifyTries || !around_.may_write()) return Undo(batch, ToRefusal(error));
    around_.io.After(kClarifyEvery, [this, alive = alive_, batch, resource, key, error, tries] {
      if (*alive) Clarify(batch, resource, key, error, tries + 1);
    });
  });
}

void ObjectLedger::Created(const BatchPtr& batch, const kube::Resource& resource, const kube::ObjectKey& key,
                           const std::string& body) {
  const auto head = kube::ReadHead(body);
  batch->made.push_back({resource, key, head ? head->uid : std::string()});
  CreateNext(batch);
}

void ObjectLedger::Seal(const BatchPtr& batch, int tries) {
  if (batch->jobs.size() == 1) return Accepted(batch);
  // Once a try had no answer, the batch may be accepted.
  const auto refuse = [this, batch, tries](const Refusal& refusal) {
    tries == 0 ? Undo(batch, refusal) : Leave(batch, refusal);
  };
  if (!around_.may_write()) return refuse(NotLeading());
  const Target& first = batch->made.front();
  Send(AnnotationRequest(first.resource, first.key, first.uid, kBatchAnnotation, std::nullopt),
       [this, batch, tries, refuse](const kube::Reply& reply) {
         if (reply.ok()) return Accepted(batch);
         if (!Unclear(*reply.error)) return refuse(ToRefusal(*reply.error));
         if (tries >= kClarifyTries) return Leave(batch, ToRefusal(*reply.error));
         // To write it again does no harm.
         around_.io.After(kClarifyEvery, [this, alive = alive_, batch, tries] {
           if (*alive) Seal(batch, tries + 1);
         });
       });
}

void ObjectLedger::WithObject(const std::string& job, std::function<void(const JobObject*)> then) {
  const JobObject* object = around_.cluster.Find(job);
  const auto accepted = accepted_.find(job);
  if (object == nullptr && accepted != accepted_.end() && around_.io.Now() < accepted->second + kComesBack) {
    around_.io.After(kLookEvery, [this, alive = alive_, job, then = std::move(then)] {
      if (*alive) WithObject(job, then);
    });
    return;
  }
  if (accepted != accepted_.end()) accepted_.erase(accepted);
  then(object);
}

void ObjectLedger::Accepted(const BatchPtr& batch) {
  const kube::TimePoint now = around_.io.Now();
  std::erase_if(accepted_, [&](const auto& one) { return one.second + kComesBack < now; });
  for (const LedgerJob& job : batch->jobs) accepted_[job.name] = now;
  for (std::size_t place = 0; batch->key && place < batch->jobs.size(); ++place)
    submissions_.Add(Submissions::Text(*batch->key, place), batch->jobs[place].name, WallNow());
  Answer(batch->done, std::nullopt);
}

void ObjectLedger::Undo(const BatchPtr& batch, const Refusal& refusal) {
  if (!batch->made.empty()) {
    const std::string& first = batch->jobs.front().name;
    for (std::size_t i = 1; i < batch->made.size(); ++i) DeleteOther(first, batch->made[i]);
    // An object that comes late must find the first one.
    DeleteFirst(first, batch->made.front(), batch->unclear ? kLatest : kube::Duration(0));
  }
  GiveUp(batch, refusal);
}

// The batch is there as a whole. It is removed if it is still marked, and taken in if it is not.
void ObjectLedger::Leave(const BatchPtr& batch, const Refusal& refusal) {
  GiveUp(batch, refusal);
  around_.cluster.LookAgain();
}

// An object of which nobody knows whether it is there is found by its watch.
void ObjectLedger::GiveUp(const BatchPtr& batch, const Refusal& refusal) {
  for (const LedgerJob& job : batch->jobs) {
    around_.sightings.Forget(job.name, job.spec->kind);
    around_.cluster.FreeName(job.name);
  }
  Answer(batch->done, refusal);
}

Result<std::optional<Submission>> ObjectLedger::Find(const std::string& key) {
  return submissions_.Find(key);
}

// ---- What becomes of jobs.

void ObjectLedger::Change(const std::string& job, const JobState& state, Done done) {
  const auto change = [this, job, text = WriteJobState(job, state), done](const JobObject* object) {
    if (object == nullptr) return Answer(done, NotFound("the object of " + job + " is gone"));
    if (!around_.may_write()) return Answer(done, NotLeading());
    Send(AnnotationRequest(object->resource, object->key(), object->head.uid, kStateAnnotation, text),
         [this, job, text, done](const kube::Reply& reply) {
           if (reply.ok()) around_.cluster.Note(job, text);
           Answer(done, reply.ok() ? std::nullopt : std::optional(ToRefusal(*reply.error)));
         });
  };
  OnIo([this, job, change] { WithObject(job, change); });
}

void ObjectLedger::Note(const std::string& job, const JobState& state) {
  around_.cluster.Note(job, WriteJobState(job, state));
}

void ObjectLedger::Remove(const std::string& job, std::function<void(voda::Answer<Removal>)> done) {
  const auto answer = [this, done = std::move(done)](std::optional<Refusal> refused) {
    Answer([done](const std::optional<Refusal>& why) { why ? done(*why) : done(Removal::kLeaves); },
           std::move(refused));
  };
  const auto remove = [this, job, answer](const JobObject* object) {
    if (object == nullptr) return answer(NotFound("the object of " + job + " is gone; its history is kept"));
    if (!around_.may_write()) return answer(NotLeading());
    Send(kube::DeleteRequest(object->resource, object->key(),
                             {.uid = object->head.uid, .propagation = "Background"}),
         [answer](const kube::Reply& reply) {
           const bool gone = reply.ok() || reply.error->reason == kube::Reason::kNotFound;
           answer(gone ? std::nullopt : std::optional(ToRefusal(*reply.error)));
         });
  };
  OnIo([this, job, remove] { WithObject(job, remove); });
}

void ObjectLedger::Refuse(const std::string& job, const std::string& why) {
  OnIo([this, job, why] {
    if (const JobObject* object = around_.cluster.Find(job)) around_.tell(*object, {"Refused", why, true});
    // What an earlier run made of it goes on without us.
    around_.cluster.Forget(job);
  });
}

void ObjectLedger::LookAgain() {
  OnIo([this] {
    around_.sightings.ForgetOthers();
    around_.cluster.LookAgain();
  });
}

void ObjectLedger::Tell(const std::string& job, const JobWord& word) {
  OnIo([this, job, word] {
    if (const JobObject* object = around_.cluster.Find(job)) around_.tell(*object, word);
  });
}

// ---- Settings. Nodes are the cluster's own.

void ObjectLedger::Set(const std::map<std::string, std::string>& settings, Done done) {
  Value::Map data;
  for (const auto& [key, value] : settings) data.emplace_back(ToMapKey(key), value);
  OnIo([this, data = std::move(data), done = std::move(done)] {
    if (!around_.may_write()) return Answer(done, NotLeading());
    const auto written = [this, done](const kube::Reply& reply) {
      Answer(done, reply.ok() ? std::nullopt : std::optional(ToRefusal(*reply.error)));
    };
    Send(kube::MergePatchRequest(kConfigMaps, settings_.settings, ToJson(Value::Map{{"data", data}})),
         [this, data, written](const kube::Reply& reply) {
           if (reply.ok() || reply.error->reason != kube::Reason::kNotFound) return written(reply);
           const Value object = Value::Map{{"apiVersion", "v1"},
                                           {"kind", "ConfigMap"},
                                           {"metadata", Value::Map{{"name", settings_.settings.name}}},
                                           {"data", data}};
           Send(kube::CreateRequest(kConfigMaps, settings_.settings.name_space, ToJson(object)), written);
         });
  });
}

void ObjectLedger::PutNode(const NodeRecord&, Done done) {
  Answer(done, NodesAreReported());
}

void ObjectLedger::RemoveNode(const std::string&, Done done) {
  Answer(done, NodesAreReported());
}

}  // namespace voda::kubeflow
