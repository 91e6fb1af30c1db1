// Permissions: what a caller of Voda's API must be allowed in Kubernetes for each request, so that nobody can
// do more through Voda than with kubectl. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "kube/request.h"
#include "kubeflow/review.h"
#include "spec/job_spec.h"

namespace voda {

struct PermissionQuestion {
  std::string_view method;
  std::string_view pattern;     // of the route: "/api/v1/jobs/{}/hold"
  std::string job;              // "team-a/resnet" where the request is about one
  std::optional<JobKind> kind;  // of that job; nothing: not known, so both kinds count
  std::string name_space;       // that a list is restricted to; empty: all
};

// Nothing: any authenticated caller may. `settings` is the ConfigMap that holds what is set at run time:
// whoever may change that may change it through Voda.
std::vector<kubeflow::Permission> PermissionsFor(const PermissionQuestion& question,
                                                 const kube::ObjectKey& settings);

// To create what was submitted.
std::vector<kubeflow::Permission> PermissionsToCreate(const std::vector<JobSpec>& specs);

// An Idempotency-Key as it is kept: it is known again only where the same user submits to the same
// namespaces. Anybody else who comes upon the key would be told of jobs that are not theirs, and would get
// none.
std::string ScopedKey(std::string_view key, const std::vector<JobSpec>& specs, const std::string& user);

}  // namespace voda
