// For the tests: makes objects of their JSON, as the reflector does.
#pragma once

#include <string>

#include "base/check.h"
#include "kubeflow/objects.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow::testing {

template <class Decode>
auto Decoded(std::string json, const Decode& decode) {
  kube::AddPadding(json);
  kube::JsonDocument document;
  const auto object = document.Read(json);
  VODA_CHECK(object.has_value());
  const auto head = kube::ReadHead(*object);
  return decode(head && !head->name.empty() ? *head : kube::ObjectHead{"ns", "name", "uid", "1"}, *object);
}

inline JobObject Job(const std::string& json, JobKind kind = JobKind::kMpiJob,
                     const JobObject* before = nullptr) {
  const JobRules rules{JobResource(kind, kind == JobKind::kMpiJob ? "v2beta1" : "v1"), kind, {}};
  return Decoded(json, [&](const kube::ObjectHead& head, const kube::JsonView& object) {
    return DecodeJob(rules, head, object, before);
  });
}

}  // namespace voda::kubeflow::testing
