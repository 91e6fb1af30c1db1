#include "kubeflow/writes.h"

#include <fmt/format.h>

#include <utility>

#include "document/documents.h"
#include "document/json_text.h"
#include "document/json_writer.h"

namespace voda::kubeflow {

const kube::Resource kPods{"", "v1", "pods", true};
const kube::Resource kNodes{"", "v1", "nodes", false};
const kube::Resource kConfigMaps{"", "v1", "configmaps", true};

kube::Resource JobResource(JobKind kind, const std::string& api_version) {
  const std::string version = api_version.substr(api_version.find('/') + 1);
  return {"kubeflow.org", version, kind == JobKind::kMpiJob ? "mpijobs" : "pytorchjobs", true};
}

namespace {

std::string ReplicasPointer(JobKind kind) {
  return std::string(ReplicaSpecs(kind)) + "/Worker/replicas";
}

// The pod's affinity with the one node that it may go to. Its own terms are alternatives, so each must name
// the node.
std::string PinnedAffinity(const std::string& before, const std::string& node) {
  const Value only = Value::Map{{"key", "metadata.name"}, {"operator", "In"}, {"values", Value::List{node}}};
  auto read = before.empty() ? Result<Value>(Value()) : ParseJson(before);
  Value affinity = read ? *std::move(read) : Value();
  Value& terms =
      affinity.Reach("/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms");
  if (terms.items().empty()) terms.Items().emplace_back();
  for (Value& term : terms.Items()) term.Member("matchFields").Items().push_back(only);
  return ToJson(affinity);
}

// Gives the pod the toleration for one node; the taints of the other nodes keep it away from them.
kube::Request PinByToleration(const PodObject& pod, const std::string& node) {
  const Value toleration =
      Value::Map{{"key", kTaint}, {"operator", "Equal"}, {"value", node}, {"effect", "NoExecute"}};
  kube::JsonPatch patch;
  patch.TestUid(pod.head.uid).Add("/spec/tolerations/-", ToJson(toleration));
  if (pod.gate >= 0) {  // left from steering by gates
    const std::string gate = fmt::format("/spec/schedulingGates/{}", pod.gate);
    patch.Test(gate + "/name", Quoted(kGate)).Remove(gate);
  }
  return kube::JsonPatchRequest(kPods, {pod.head.name_space, pod.head.name}, patch);
}

kube::Request Pin(const PodObject& pod, const std::string& node) {
  const std::string gate = fmt::format("/spec/schedulingGates/{}", pod.gate);
  kube::JsonPatch patch;
  patch.TestUid(pod.head.uid)
      .Test(gate + "/name", Quoted(kGate))
      .Add("/spec/affinity", PinnedAffinity(pod.affinity, node))
      .Remove(gate);
  return kube::JsonPatchRequest(kPods, {pod.head.name_space, pod.head.name}, patch);
}

void AddState(const JobObject& job, const ManifestSettings& settings, kube::JsonPatch& patch) {
  if (settings.state.empty()) return;
  if (job.annotations.empty()) {
    patch.Add("/metadata/annotations",
              JsonWriter().Object().Field(kStateAnnotation, settings.state).End().Take());
  } else {
    patch.Add("/metadata/annotations/" + kube::PointerPart(kStateAnnotation), Quoted(settings.state));
  }
}

}  // namespace

// A merge patch makes the map where there is none.
kube::Request AnnotationRequest(const kube::Resource& resource, const kube::ObjectKey& key,
                                const std::string& uid, std::string_view annotation,
                                const std::optional<std::string>& value) {
  JsonWriter patch;
  patch.Object().Key("metadata").Object().Field("uid", uid);
  patch.Key("annotations").Object().Field(annotation, value).End().End().End();
  return kube::MergePatchRequest(resource, key, patch.Take());
}

Result<kube::Request> ToRequest(const Write& write, const JobObject& job, const ManifestSettings& settings) {
  kube::JsonPatch patch;
  patch.TestUid(job.head.uid);
  const int replicas = write.replicas - (job.master ? 1 : 0);
  switch (write.kind) {
    case Write::Kind::kSuspend:
      patch.Add("/spec/runPolicy/suspend", "true");
      AddState(job, settings, patch);
      break;
    case Write::Kind::kResume:
      // Only the version whose template was checked against the rules.
      patch.TestResourceVersion(job.head.resource_version);
      if (const Status added = AddMissing(job, settings, patch); !added) return added.error();
      patch.Add("/spec/runPolicy/suspend", "false");
      if (replicas > 0) patch.Add(ReplicasPointer(job.kind), std::to_string(replicas));
      break;
    case Write::Kind::kScale:
      if (job.kind == JobKind::kPyTorchJob) {
        return kube::ScaleRequest(job.resource, job.key(),
                                  {replicas, job.head.resource_version, job.head.uid});
      }
      patch.Replace(ReplicasPointer(job.kind), std::to_string(replicas));
      AddState(job, settings, patch);
      break;
    case Write::Kind::kPin:
      return settings.steering == Steering::kTaints ? PinByToleration(*write.pod, write.node)
                                                    : Pin(*write.pod, write.node);
    case Write::Kind::kDeletePod:
      return kube::DeleteRequest(
          kPods, {write.pod->head.name_space, write.pod->head.name},
          {.uid = write.pod->head.uid, .grace_seconds = write.force ? std::optional<int>(0) : std::nullopt});
  }
  return kube::JsonPatchRequest(job.resource, job.key(), patch);
}

kube::Request TaintRequest(const NodeObject& node) {
  const Value taint = Value::Map{{"key", kTaint}, {"value", node.head.name}, {"effect", "NoExecute"}};
  kube::JsonPatch patch;
  patch.TestUid(node.head.uid).TestResourceVersion(node.head.resource_version);
  node.taints == 0 ? patch.Add("/spec/taints", ToJson(Value::List{taint}))
                   : patch.Add("/spec/taints/-", ToJson(taint));
  return kube::JsonPatchRequest(kNodes, {{}, node.head.name}, patch);
}

kube::Request UntaintRequest(const NodeObject& node) {
  kube::JsonPatch patch;
  patch.TestUid(node.head.uid)
      .TestResourceVersion(node.head.resource_version)
      .Remove(fmt::format("/spec/taints/{}", node.own_taint));
  return kube::JsonPatchRequest(kNodes, {{}, node.head.name}, patch);
}

kube::Request TouchRequest(const PodObject& pod, const std::string& value) {
  return AnnotationRequest(kPods, {pod.head.name_space, pod.head.name}, pod.head.uid, kTouchAnnotation,
                           value);
}

}  // namespace voda::kubeflow
