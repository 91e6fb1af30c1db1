// Writes: a step's write as a request to the API server. Each names the uid that it is for, so that it is
// refused if another object has the name meanwhile.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/patch.h"
#include "kubeflow/manifest.h"
#include "kubeflow/step.h"

namespace voda::kubeflow {

extern const kube::Resource kPods;
extern const kube::Resource kNodes;
extern const kube::Resource kConfigMaps;
kube::Resource JobResource(JobKind kind, const std::string& api_version);

// `settings` are those of the job: a write that resumes it adds what its object lacks, and a write that
// changes the object takes their state along. Fails if the job does not opt in any more.
Result<kube::Request> ToRequest(const Write& write, const JobObject& job, const ManifestSettings& settings);

// One annotation alone; without a value it is removed.
kube::Request AnnotationRequest(const kube::Resource& resource, const kube::ObjectKey& key,
                                const std::string& uid, std::string_view annotation,
                                const std::optional<std::string>& value);

// For Steering::kTaints: adds the node's own taint, or removes it.
kube::Request TaintRequest(const NodeObject& node);
kube::Request UntaintRequest(const NodeObject& node);

// The kubelet reads mounted files again when the pod changes; the value of the annotation does not matter.
kube::Request TouchRequest(const PodObject& pod, const std::string& value);

}  // namespace voda::kubeflow
