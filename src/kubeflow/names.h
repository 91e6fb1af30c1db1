// Names that Voda uses on objects of others, and names of the operators that several files need.
#pragma once

#include <string_view>

#include "spec/job_spec.h"

namespace voda::kubeflow {

inline constexpr std::string_view kQueueLabel = "vodascheduler/queue";  // opts a job in
inline constexpr std::string_view kGate =
    "vodascheduler/placement";  // keeps pods pending until they are placed
inline constexpr std::string_view kTaint = "vodascheduler/hostname";  // keeps a node for pods placed on it
inline constexpr std::string_view kAcceleratorLabel = "vodascheduler/accelerator";
inline constexpr std::string_view kStateAnnotation = "vodascheduler/state";  // what a restart must know
inline constexpr std::string_view kSubmissionAnnotation = "vodascheduler/submission";  // its request
inline constexpr std::string_view kBatchAnnotation = "vodascheduler/batch";            // object_ledger.h
inline constexpr std::string_view kTouchAnnotation = "vodascheduler/hosts";            // wakes the kubelet
inline constexpr std::string_view kScheduledCondition = "vodascheduler/Scheduled";

// Variables of a job's containers.
inline constexpr std::string_view kNameVariable = "JOB_NAME";
inline constexpr std::string_view kUrlVariable = "VODA_PROGRESS_URL";
inline constexpr std::string_view kTokenVariable = "VODA_PROGRESS_TOKEN";

// Annotations in which Voda keeps its record of a job. They are not part of what the user asks for.
constexpr bool IsRecord(std::string_view annotation) {
  return annotation == kStateAnnotation || annotation == kSubmissionAnnotation ||
         annotation == kBatchAnnotation;
}

}  // namespace voda::kubeflow
