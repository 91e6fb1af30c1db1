#include "kubeflow/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace voda::kubeflow {

namespace {

using Json = nlohmann::json;

// torchrun spends one on every shrink.
constexpr int kManyRestarts = 1'000'000;
constexpr std::string_view kTokenVariable = "VODA_PROGRESS_TOKEN";

// An object below, made where it is missing or null.
Json& Object(Json& parent, const std::string& name) {
  Json& member = parent[name];
  if (!member.is_object()) member = Json::object();
  return member;
}
Json& List(Json& parent, const std::string& name) {
  Json& member = parent[name];
  if (!member.is_array()) member = Json::array();
  return member;
}

std::string ReplicaSpecs(JobKind kind) {
  return kind == JobKind::kMpiJob ? "mpiReplicaSpecs" : "pytorchReplicaSpecs";
}

void SetVariable(Json& container, std::string_view name, const std::string& value) {
  Json& env = List(container, "env");
  for (Json& variable : env) {
    if (variable.is_object() && variable.value("name", "") == name) {
      variable = {{"name", name}, {"value", value}};
      return;
    }
  }
  env.push_back({{"name", name}, {"value", value}});
}

// A launcher may run on any node: it holds no GPU.
void Tolerate(Json& pod) {
  Json& tolerations = List(pod, "tolerations");
  for (const Json& toleration : tolerations) {
    if (toleration.is_object() && toleration.value("key", "") == kTaint) return;
  }
  tolerations.push_back({{"key", kTaint}, {"operator", "Exists"}});
}

// One pod template: environment for all, place for those that hold GPUs.
void Prepare(Json& replica, const std::string& name, bool worker, const ManifestSettings& settings) {
  Json& pod = Object(Object(replica, "template"), "spec");
  // Any of its containers may be the one that trains.
  for (Json& container : List(pod, "containers")) {
    if (!container.is_object()) continue;
    SetVariable(container, "JOB_NAME", name);
    if (!settings.progress_url.empty()) SetVariable(container, "VODA_PROGRESS_URL", settings.progress_url);
    // It also says that the job was taken in, whether it is told where to report or not.
    if (!settings.token.empty()) SetVariable(container, kTokenVariable, settings.token);
  }
  if (!worker) {
    if (settings.steering == Steering::kTaints) Tolerate(pod);
    return;
  }
  if (!settings.gpu_type.empty())
    Object(pod, "nodeSelector")[std::string(kAcceleratorLabel)] = settings.gpu_type;
  if (settings.steering != Steering::kGates) return;
  Json& gates = List(pod, "schedulingGates");
  for (const Json& gate : gates) {
    if (gate.is_object() && gate.value("name", "") == kGate) return;
  }
  gates.push_back({{"name", kGate}});
}

void Prepare(Json& object, JobKind kind, const std::string& name, const ManifestSettings& settings) {
  Json& metadata = Object(object, "metadata");
  Json& labels = Object(metadata, "labels");
  if (!labels.contains(kQueueLabel)) labels[std::string(kQueueLabel)] = "default";
  if (!settings.state.empty())
    Object(metadata, "annotations")[std::string(kStateAnnotation)] = settings.state;
  if (!settings.submission.empty())
    Object(metadata, "annotations")[std::string(kSubmissionAnnotation)] = settings.submission;
  Json& spec = Object(object, "spec");
  Json& replicas = Object(spec, ReplicaSpecs(kind));
  for (const char* type : {"Launcher", "Master", "Worker"}) {
    const auto at = replicas.find(type);
    if (at != replicas.end() && at->is_object())
      Prepare(*at, name, type != std::string("Launcher"), settings);
  }
  // The workers of an MPIJob serve ssh and never end by themselves: where nobody says otherwise they end with
  // the job, and give their GPUs back.
  if (kind == JobKind::kMpiJob && !spec.contains("cleanPodPolicy")) {
    Json& policy = Object(spec, "runPolicy");
    if (!policy.contains("cleanPodPolicy")) policy["cleanPodPolicy"] = "Running";
  }
  if (kind == JobKind::kPyTorchJob && spec.contains("elasticPolicy") && spec["elasticPolicy"].is_object()) {
    Json& policy = spec["elasticPolicy"];
    if (!policy.contains("maxRestarts")) policy["maxRestarts"] = kManyRestarts;
    if (!policy.contains("rdzvBackend")) policy["rdzvBackend"] = "c10d";
  }
}

}  // namespace

std::string NewObject(const JobSpec& spec, const std::string& name, const ManifestSettings& settings) {
  Json object = Json::parse(spec.document);
  Json& metadata = Object(object, "metadata");
  metadata["name"] = name;
  metadata["namespace"] = spec.name_space;
  for (const char* of_the_server :
       {"generateName", "uid", "resourceVersion", "creationTimestamp", "managedFields"}) {
    metadata.erase(of_the_server);
  }
  object.erase("status");
  Prepare(object, spec.kind, name, settings);
  Object(object["spec"], "runPolicy")["suspend"] = true;
  return object.dump();
}

Status AddAdoption(const JobObject& job, const ManifestSettings& settings, kube::JsonPatch& patch) {
  const Json before = Json::parse(job.document, nullptr, false);
  if (!before.is_object() || !before.contains("spec")) return Error{"the object is not JSON of a job"};
  Json after = before;
  Prepare(after, job.kind, job.head.name, settings);
  if (after == before) return Ok{};
  patch.TestResourceVersion(job.head.resource_version);
  for (const char* part : {"metadata", "spec"}) {
    for (const auto& [member, value] : after[part].items()) {
      const auto was = before[part].find(member);
      if (was == before[part].end() || *was != value)
        patch.Add(fmt::format("/{}/{}", part, kube::PointerPart(member)), value.dump());
    }
  }
  return Ok{};
}

std::string TokenOf(const JobObject& job) {
  const Json object = Json::parse(job.document, nullptr, false);
  if (!object.is_object()) return {};
  const Json replicas = object.value(Json::json_pointer("/spec/" + ReplicaSpecs(job.kind)), Json::object());
  for (const auto& [type, replica] : replicas.items()) {
    const Json env = replica.value(Json::json_pointer("/template/spec/containers/0/env"), Json::array());
    for (const Json& variable : env) {
      if (variable.is_object() && variable.value("name", "") == kTokenVariable)
        return variable.value("value", "");
    }
  }
  return {};
}

}  // namespace voda::kubeflow
