// Manifest: a job's object as Voda wants it in the cluster: suspended, opted in, with workers that wait for
// their place and know where to report progress. What is already so stays as it is.
#pragma once

#include <string>

#include "kube/patch.h"
#include "kubeflow/objects.h"
#include "spec/job_spec.h"

namespace voda::kubeflow {

struct ManifestSettings {
  std::string progress_url;  // of this job; empty: none is told
  std::string token;
  std::string gpu_type;
  Steering steering = Steering::kGates;
  std::string state;       // for the annotation; empty: none
  std::string submission;  // the same
};

// The object to create for a submitted job, under its final name.
std::string NewObject(const JobSpec& spec, const std::string& name, const ManifestSettings& settings);

// Adds to `patch` what a job that a user applied lacks, besides being suspended; nothing where it lacks
// nothing. Then only the same version of the object takes the patch. Fails where the document cannot be read.
Status AddAdoption(const JobObject& job, const ManifestSettings& settings, kube::JsonPatch& patch);

// VODA_PROGRESS_TOKEN of the object's own template: whoever leads next needs no other record of it.
std::string TokenOf(const JobObject& job);

}  // namespace voda::kubeflow
