// Refusals that come from the API server, or from what is in it.
#pragma once

#include "base/refusal.h"
#include "kube/api_error.h"

namespace voda::kubeflow {

Refusal ToRefusal(const kube::ApiError& error);

inline constexpr const char* kSameName =
    "a job of the other kind has this name already, and their pods would have the same names; choose another";

}  // namespace voda::kubeflow
