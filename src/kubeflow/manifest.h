// Manifest: a job's object as Voda wants it in the cluster: suspended, opted in, with workers that wait for
// their placement and know where to report progress. Whatever is right already stays as it is.
#pragma once

#include <string>

#include "kube/patch.h"
#include "kubeflow/objects.h"
#include "spec/job_spec.h"

namespace voda::kubeflow {

struct ManifestSettings {
  std::string progress_url;  // for this job; if empty, the job is told none
  std::string token;
  std::string gpu_type;
  Steering steering = Steering::kGates;
  std::string state;       // for the annotation; if empty, none is written
  std::string submission;  // the same
  std::string batch;       // the same
};

// The object to create for a submitted job, under its final name.
std::string NewObject(const JobSpec& spec, const std::string& name, const ManifestSettings& settings);

// Adds to `patch` what a job that a user applied lacks, except for its suspension. The places are those of
// this version of the object, so the patch must be for it alone. Fails if the job does not opt in.
Status AddMissing(const JobObject& job, const ManifestSettings& settings, kube::JsonPatch& patch);

}  // namespace voda::kubeflow
