// AppliedJob: what the user of an object asks for, as far as Voda needs it. It is read when the object
// first appears and when the user's part of it changes; versions that differ only in their status share it.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kube/json_read.h"
#include "kubeflow/outline.h"
#include "spec/job_spec.h"

namespace voda::kubeflow {

struct AppliedJob {
  std::uint64_t number = 0;             // unique
  std::shared_ptr<const JobSpec> spec;  // null if Voda cannot schedule it, for this reason:
  std::string error;
  // The rules for pod templates that it breaks, also where its spec cannot be read; empty: none.
  std::vector<std::string> dangers;
  std::string token;  // VODA_PROGRESS_TOKEN of its templates; empty if it was never started
  Outline outline;
};

// `allowed` are the rules for pod templates that may be broken.
std::shared_ptr<const AppliedJob> ReadAppliedJob(JobKind kind, const kube::JsonView& object,
                                                 const std::set<std::string, std::less<>>& allowed);

}  // namespace voda::kubeflow
