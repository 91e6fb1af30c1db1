#include "kubeflow/refusals.h"

#include <fmt/format.h>

namespace voda::kubeflow {

Refusal ToRefusal(const kube::ApiError& error) {
  switch (error.reason) {
    case kube::Reason::kBadRequest:
    case kube::Reason::kInvalid:
    case kube::Reason::kTooLarge:
      return Invalid("Kubernetes: " + error.message);
    case kube::Reason::kNotFound:
      return Invalid(fmt::format("Kubernetes has no such namespace or kind of job: {}", error.message));
    case kube::Reason::kForbidden:
      return {403, "forbidden", "Kubernetes: " + error.message};
    case kube::Reason::kAlreadyExists:
    case kube::Reason::kConflict:
      return Conflict("Kubernetes: " + error.message);
    default:
      return Unavailable("Kubernetes: " + error.Text());
  }
}

}  // namespace voda::kubeflow
