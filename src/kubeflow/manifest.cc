#include "kubeflow/manifest.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "document/documents.h"

namespace voda::kubeflow {

namespace {

// torchrun spends one on every shrink.
constexpr int kManyRestarts = 1'000'000;

// An operation of a JSON patch that adds something or replaces it.
struct Operation {
  bool replace = false;
  std::string path;
  Value value;
};

// Collects what an object lacks.
class Missing {
 public:
  explicit Missing(const ManifestSettings& settings) : settings_(settings) {}

  std::vector<Operation> Of(JobKind kind, const std::string& name, const Strings& labels,
                            const Strings& annotations, const Outline& outline) {
    if (!labels.contains(kQueueLabel)) AddTexts("labels", labels, {{std::string(kQueueLabel), "default"}});
    Strings record;
    if (!settings_.state.empty()) record.emplace(kStateAnnotation, settings_.state);
    if (!settings_.submission.empty()) record.emplace(kSubmissionAnnotation, settings_.submission);
    if (!settings_.batch.empty()) record.emplace(kBatchAnnotation, settings_.batch);
    AddTexts("annotations", annotations, record);
    for (const Outline::Template& one : outline.templates) Template(name, one);
    // The workers of an MPIJob serve ssh and never end by themselves: unless the user says otherwise, they
    // end with the job and give their GPUs back.
    if (kind == JobKind::kMpiJob && !outline.cleans_pods) {
      outline.has_run_policy ? Add("/spec/runPolicy/cleanPodPolicy", "Running")
                             : Add("/spec/runPolicy", Value::Map{{"cleanPodPolicy", "Running"}});
    }
    if (kind == JobKind::kPyTorchJob && outline.has_elastic_policy) {
      if (!outline.has_restarts) Add("/spec/elasticPolicy/maxRestarts", kManyRestarts);
      if (!outline.has_backend) Add("/spec/elasticPolicy/rdzvBackend", "c10d");
    }
    return std::move(operations_);
  }

 private:
  void Add(const std::string& path, Value value) { operations_.push_back({false, path, std::move(value)}); }
  // Appends to a list that may not exist.
  void Append(bool there, const std::string& path, Value value) {
    there ? Add(path + "/-", std::move(value)) : Add(path, Value::List{std::move(value)});
  }

  void AddTexts(const std::string& member, const Strings& before, const Strings& wanted) {
    const std::string path = "/metadata/" + member;
    if (before.empty() && !wanted.empty()) return Add(path, Value::Map(wanted.begin(), wanted.end()));
    for (const auto& [key, value] : wanted) {
      const auto at = before.find(key);
      if (at == before.end() || at->second != value) Add(path + "/" + kube::PointerPart(key), value);
    }
  }

  // Completes one pod template: the environment for all, the placement for those that hold GPUs.
  void Template(const std::string& name, const Outline::Template& one) {
    // Any of its containers may be the training container.
    for (const Outline::Container& container : one.containers) {
      Value::List missing;
      const std::string env = fmt::format("{}/containers/{}/env", one.path, container.at);
      const auto set = [&](std::string_view variable, const Outline::Variable& seen,
                           const std::string& value) {
        if (seen.at >= 0 && seen.value == value) return;
        Value wanted = Value::Map{{"name", variable}, {"value", value}};
        if (seen.at < 0) return missing.push_back(std::move(wanted));
        operations_.push_back({true, fmt::format("{}/{}", env, seen.at), std::move(wanted)});
      };
      set(kNameVariable, container.name, name);
      if (!settings_.progress_url.empty()) set(kUrlVariable, container.url, settings_.progress_url);
      // The token also marks the job as taken in, even if there is nowhere to report progress to.
      if (!settings_.token.empty()) set(kTokenVariable, container.token, settings_.token);
      if (!container.has_env && !missing.empty()) {
        Add(env, std::move(missing));
      } else {
        for (Value& variable : missing) Add(env + "/-", std::move(variable));
      }
    }
    if (!one.worker) {
      // A launcher may run on any node: it holds no GPU.
      if (settings_.steering == Steering::kTaints && !one.tolerates)
        Append(one.has_tolerations, one.path + "/tolerations",
               Value::Map{{"key", kTaint}, {"operator", "Exists"}});
      return;
    }
    if (!settings_.gpu_type.empty() && one.accelerator != settings_.gpu_type) {
      const std::string selector = one.path + "/nodeSelector";
      one.has_selector ? Add(selector + "/" + kube::PointerPart(kAcceleratorLabel), settings_.gpu_type)
                       : Add(selector, Value::Map{{std::string(kAcceleratorLabel), settings_.gpu_type}});
    }
    if (settings_.steering == Steering::kGates && !one.gated)
      Append(one.has_gates, one.path + "/schedulingGates", Value::Map{{"name", kGate}});
  }

  const ManifestSettings& settings_;
  std::vector<Operation> operations_;
};

Strings Texts(const Value& object) {
  Strings texts;
  for (const auto& [key, value] : object.members()) {
    if (value.text()) texts.emplace(key, value.Text());
  }
  return texts;
}

}  // namespace

std::string NewObject(const JobSpec& spec, const std::string& name, const ManifestSettings& settings) {
  Value object = ParseJson(spec.document).value();
  Value& metadata = object.Member("metadata");
  metadata.Member("name") = name;
  metadata.Member("namespace") = spec.name_space;
  for (const char* of_the_server :
       {"generateName", "uid", "resourceVersion", "creationTimestamp", "managedFields"}) {
    metadata.Erase(of_the_server);
  }
  object.Erase("status");
  object.Reach("/spec/runPolicy/suspend") = true;
  for (Operation& missing :
       Missing(settings).Of(spec.kind, name, Texts(object.At("/metadata/labels")),
                            Texts(object.At("/metadata/annotations")), ReadOutline(spec.kind, object))) {
    object.Reach(missing.path) = std::move(missing.value);
  }
  return ToJson(object);
}

Status AddMissing(const JobObject& job, const ManifestSettings& settings, kube::JsonPatch& patch) {
  if (!job.applied)
    return Error{fmt::format("the object does not opt in by the label {} any more", kQueueLabel)};
  const auto missing =
      Missing(settings).Of(job.kind, job.head.name, job.labels, job.annotations, job.applied->outline);
  for (const Operation& one : missing) {
    one.replace ? patch.Replace(one.path, ToJson(one.value)) : patch.Add(one.path, ToJson(one.value));
  }
  return Ok{};
}

}  // namespace voda::kubeflow
