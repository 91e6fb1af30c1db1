#include "kubeflow/judge.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "kubeflow/manifest.h"
#include "spec/quantity.h"
#include "spec/template_rules.h"

namespace voda::kubeflow {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostPerWorker = 1024;  // as in a snapshot

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
      annotations->erase(std::string(kSubmissionAnnotation));
    }
  }
  return object.dump();
}

std::string LeftTo(std::string_view queue) {
  return fmt::format(
      "Voda leaves this job alone: its label {}: {} gives it to another queue; remove one of the two labels",
      kOtherQueueLabel, queue);
}

}  // namespace

std::string OfAnotherQueue(const JobSpec& spec) {
  const Json object = Json::parse(spec.document, nullptr, false);
  const Json labels =
      object.is_object() ? object.value(Json::json_pointer("/metadata/labels"), Json()) : Json();
  if (!labels.is_object() || !labels.contains(kOtherQueueLabel)) return {};
  const Json& queue = labels[std::string(kOtherQueueLabel)];
  return LeftTo(queue.is_string() ? queue.get<std::string>() : queue.dump());
}

Result<int> AmountPerWorker(const JobSpec& spec, const std::string& gpu_type, std::string_view resource) {
  if (resource == "nvidia.com/gpu" || resource == "amd.com/gpu") return spec.gpus_per_worker;
  const Json object = Json::parse(spec.document, nullptr, false);
  const Json::json_pointer replicas(spec.kind == JobKind::kMpiJob ? "/spec/mpiReplicaSpecs"
                                                                  : "/spec/pytorchReplicaSpecs");
  const char* type = object.contains(replicas / "Worker") ? "Worker" : "Master";
  const Json containers = object.value(replicas / type / "template" / "spec" / "containers", Json::array());
  std::int64_t sum = 0;
  for (const Json& container : containers) {
    for (const char* list : {"limits", "requests"}) {
      const Json amounts = container.value(Json::json_pointer("/resources") / list, Json::object());
      const auto amount = amounts.find(resource);
      if (amount == amounts.end()) continue;
      const auto number =
          spec::ParseQuantity(amount->is_string() ? amount->get<std::string>() : amount->dump());
      if (!number) return Error{fmt::format("{} of the {}: {}", resource, type, number.error().message)};
      sum += *number;
      break;
    }
  }
  if (sum >= 1 && sum <= kMostPerWorker) return static_cast<int>(sum);
  return Error{fmt::format(
      "{}: nodes with vodascheduler/accelerator: {} are counted in {}, of which a {} asks for {}; give its "
      "container limits {}: 1 to {}",
      spec.name, gpu_type, resource, type, sum, resource, kMostPerWorker)};
}

Judgement Judge(const JobObject& job, const std::set<std::string, std::less<>>& allowed) {
  using Verdict = Judgement::Verdict;
  Judgement judgement;
  if (!job.labels.contains(kQueueLabel) || job.deleting) return judgement;
  if (const auto other = job.labels.find(kOtherQueueLabel); other != job.labels.end()) {
    judgement.verdict = Verdict::kLeftAlone;
    judgement.why = LeftTo(other->second);
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
    if (const auto submission = job.annotations.find(kSubmissionAnnotation);
        submission != job.annotations.end())
      found.submission = submission->second;
  }
  const std::string document = Submitted(job.document);
  auto specs = ParseJobs(document, {.named = true}, RunAs::kContainers);
  if (!specs || specs->size() != 1) {
    judgement.why = specs ? "it is not one job" : specs.error().message;
    return judgement;
  }
  found.spec = std::move(specs->front());
  if (!found.token.empty() || found.end != FoundJob::End::kNone) return judgement;
  if (!job.suspended && found.state.empty()) {
    judgement.why =
        "it was created running; jobs that Voda is to schedule are created with spec.runPolicy.suspend: true";
    return judgement;
  }
  const std::vector<std::string> dangers = DangersOf(document, allowed);
  if (!dangers.empty()) judgement.why = fmt::format("{}", fmt::join(dangers, "\n"));
  return judgement;
}

}  // namespace voda::kubeflow
