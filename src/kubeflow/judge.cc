#include "kubeflow/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "kubeflow/manifest.h"
#include "spec/template_rules.h"

namespace voda::kubeflow {

namespace {

using Json = nlohmann::json;

// The job as its user wrote it, without what the API server and Voda added. Owners and finalizers are those
// that the user's own rights gave it.
std::string Submitted(const std::string& document) {
  Json object = Json::parse(document, nullptr, false);
  if (!object.is_object()) return document;
  object.erase("status");
  if (const auto metadata = object.find("metadata"); metadata != object.end() && metadata->is_object()) {
    for (const char* added : {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields",
                              "selfLink", "ownerReferences", "finalizers"}) {
      metadata->erase(added);
    }
    if (const auto annotations = metadata->find("annotations");
        annotations != metadata->end() && annotations->is_object()) {
      annotations->erase(std::string(kStateAnnotation));
    }
  }
  return object.dump();
}

}  // namespace

Judgement Judge(const JobObject& job, const std::set<std::string, std::less<>>& allowed) {
  using Verdict = Judgement::Verdict;
  Judgement judgement;
  if (!job.labels.contains(kQueueLabel) || job.deleting) return judgement;
  if (const auto other = job.labels.find(kOtherQueueLabel); other != job.labels.end()) {
    judgement.verdict = Verdict::kLeftAlone;
    judgement.why = fmt::format(
        "Voda leaves this job alone: its label {}: {} gives it to another queue; remove one of the two "
        "labels",
        kOtherQueueLabel, other->second);
    return judgement;
  }
  judgement.verdict = Verdict::kFound;
  FoundJob& found = judgement.found;
  found.name = job.head.name_space + "/" + job.head.name;
  found.created = job.created;
  found.end = job.end == JobObject::End::kSucceeded ? FoundJob::End::kCompleted
              : job.end == JobObject::End::kFailed  ? FoundJob::End::kFailed
                                                    : FoundJob::End::kNone;
  found.ended = job.ended;
  found.message = job.message;
  if (const auto state = job.annotations.find(kStateAnnotation); state != job.annotations.end()) {
    found.state = state->second;
    found.token = TokenOf(job);
  }
  const std::string document = Submitted(job.document);
  auto specs = ParseJobs(document, {}, RunAs::kContainers);
  if (!specs || specs->size() != 1) {
    judgement.why = specs ? "it is not one job" : specs.error().message;
    return judgement;
  }
  found.spec = std::move(specs->front());
  if (!found.token.empty() || found.end != FoundJob::End::kNone) return judgement;
  if (!job.suspended) {
    judgement.why =
        "it was created running; jobs that Voda is to schedule are created with spec.runPolicy.suspend: true";
    return judgement;
  }
  const std::vector<std::string> dangers = DangersOf(document, allowed);
  if (!dangers.empty()) judgement.why = fmt::format("{}", fmt::join(dangers, "\n"));
  return judgement;
}

}  // namespace voda::kubeflow
