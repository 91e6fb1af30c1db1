#include "kubeflow/writes.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kube/json_text.h"

namespace voda::kubeflow {

const kube::Resource kPods{"", "v1", "pods", true};
const kube::Resource kNodes{"", "v1", "nodes", false};
const kube::Resource kConfigMaps{"", "v1", "configmaps", true};

kube::Resource JobResource(JobKind kind, const std::string& api_version) {
  const std::string version = api_version.substr(api_version.find('/') + 1);
  return {"kubeflow.org", version, kind == JobKind::kMpiJob ? "mpijobs" : "pytorchjobs", true};
}

namespace {

using Json = nlohmann::json;

std::string ReplicasPointer(JobKind kind) {
  return kind == JobKind::kMpiJob ? "/spec/mpiReplicaSpecs/Worker/replicas"
                                  : "/spec/pytorchReplicaSpecs/Worker/replicas";
}

// The pod's affinity with the one node that it may go to. The terms of its own are alternatives: each has to
// name the node.
std::string PinnedAffinity(const std::string& before, const std::string& node) {
  const Json only = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}};
  Json affinity = Json::parse(before, nullptr, false);
  if (!affinity.is_object()) affinity = Json::object();
  Json& of_nodes = affinity["nodeAffinity"];
  if (!of_nodes.is_object()) of_nodes = Json::object();
  Json& terms = of_nodes["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  if (!terms.is_array() || terms.empty()) terms = Json::array({Json::object()});
  for (Json& term : terms) {
    if (!term["matchFields"].is_array()) term["matchFields"] = Json::array();
    term["matchFields"].push_back(only);
  }
  return affinity.dump();
}

// The toleration for one node: the others' taints keep the pod away from them.
kube::Request PinByToleration(const PodObject& pod, const std::string& node) {
  const Json toleration = {{"key", kTaint}, {"operator", "Equal"}, {"value", node}, {"effect", "NoExecute"}};
  kube::JsonPatch patch;
  patch.TestUid(pod.head.uid).Add("/spec/tolerations/-", toleration.dump());
  if (pod.gate >= 0) {  // from when gates were in use
    const std::string gate = fmt::format("/spec/schedulingGates/{}", pod.gate);
    patch.Test(gate + "/name", kube::JsonText(kGate)).Remove(gate);
  }
  return kube::JsonPatchRequest(kPods, {pod.head.name_space, pod.head.name}, patch);
}

kube::Request Pin(const PodObject& pod, const std::string& node) {
  const std::string gate = fmt::format("/spec/schedulingGates/{}", pod.gate);
  kube::JsonPatch patch;
  patch.TestUid(pod.head.uid)
      .Test(gate + "/name", kube::JsonText(kGate))
      .Add("/spec/affinity", PinnedAffinity(pod.affinity, node))
      .Remove(gate);
  return kube::JsonPatchRequest(kPods, {pod.head.name_space, pod.head.name}, patch);
}

void AddState(const JobObject& job, const ManifestSettings& settings, kube::JsonPatch& patch) {
  if (settings.state.empty()) return;
  if (job.annotations.empty()) {
    patch.Add("/metadata/annotations",
              fmt::format("{{{}:{}}}", kube::JsonText(kStateAnnotation), kube::JsonText(settings.state)));
  } else {
    patch.Add("/metadata/annotations/" + kube::PointerPart(kStateAnnotation), kube::JsonText(settings.state));
  }
}

}  // namespace

kube::Request StateRequest(const JobObject& job, const std::string& state) {
  return kube::MergePatchRequest(
      job.resource, job.key(),
      fmt::format(R"({{"metadata":{{"uid":{},"annotations":{{{}:{}}}}}}})", kube::JsonText(job.head.uid),
                  kube::JsonText(kStateAnnotation), kube::JsonText(state)));
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
      if (const Status added = AddAdoption(job, settings, patch); !added) return added.error();
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
  const Json taint = {{"key", kTaint}, {"value", node.head.name}, {"effect", "NoExecute"}};
  kube::JsonPatch patch;
  patch.TestUid(node.head.uid).TestResourceVersion(node.head.resource_version);
  node.taints == 0 ? patch.Add("/spec/taints", Json::array({taint}).dump())
                   : patch.Add("/spec/taints/-", taint.dump());
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
  // A merge patch makes the map where there is none.
  return kube::MergePatchRequest(
      kPods, {pod.head.name_space, pod.head.name},
      fmt::format(R"({{"metadata":{{"uid":{},"annotations":{{{}:{}}}}}}})", kube::JsonText(pod.head.uid),
                  kube::JsonText(kTouchAnnotation), kube::JsonText(value)));
}

}  // namespace voda::kubeflow
