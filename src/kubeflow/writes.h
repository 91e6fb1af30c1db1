// Writes: a step's write as a request to the API server. Every one names the uid it means, so that a name
// that changed hands meanwhile is refused.
#pragma once

#include <string>

#include "kube/patch.h"
#include "kubeflow/manifest.h"
#include "kubeflow/step.h"

namespace voda::kubeflow {

extern const kube::Resource kPods;
extern const kube::Resource kNodes;
extern const kube::Resource kConfigMaps;
kube::Resource JobResource(JobKind kind, const std::string& api_version);

// `settings` are those of the job: a write that resumes it brings what its object lacks, and one that changes
// the object takes their state along. Fails where the object's document cannot be read.
Result<kube::Request> ToRequest(const Write& write, const JobObject& job, const ManifestSettings& settings);

// The state alone.
kube::Request StateRequest(const JobObject& job, const std::string& state);

// For Steering::kTaints: the node's own taint is put on it, or taken away.
kube::Request TaintRequest(const NodeObject& node);
kube::Request UntaintRequest(const NodeObject& node);

// The kubelet looks at mounted files again when the pod changes: the annotation's value does not matter.
kube::Request TouchRequest(const PodObject& pod, const std::string& value);

}  // namespace voda::kubeflow
