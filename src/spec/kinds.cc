#include "spec/kinds.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "document/json_text.h"

namespace voda::spec {

namespace {

constexpr std::array<std::string_view, 7> kRunPolicyFields = {
    "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds",
    "backoffLimit",   "schedulingPolicy",        "suspend",
    "managedBy"};
// What only an operator does. Of cleanPodPolicy nothing is left to do where there are no pods.
constexpr std::array<std::string_view, 4> kOfOperators = {"ttlSecondsAfterFinished", "activeDeadlineSeconds",
                                                          "schedulingPolicy", "managedBy"};

}  // namespace

void ReadRunPolicy(const Field& field, JobSpec& spec) {
  const Field policy = field.At("runPolicy");
  policy.OnlyKnown(kRunPolicyFields);
  constexpr int kMost = std::numeric_limits<std::int32_t>::max();
  const auto outer = field.At("backoffLimit").Whole(0, kMost);
  const auto inner = policy.At("backoffLimit").Whole(0, kMost);
  if (outer || inner) spec.backoff_limit = static_cast<int>(inner ? *inner : *outer);
  policy.At("suspend").Flag();  // Voda starts and stops the job either way
  for (const std::string_view name : kOfOperators) {
    if (field.At(name).present() || policy.At(name).present()) field.report().Ignore(name);
  }
}

void TakeGpuType(const Replica& workers, const Replica& other, JobSpec& spec, Report& report) {
  spec.gpu_type = workers.gpu_type;
  if (other.gpu_type.empty() || other.gpu_type == workers.gpu_type) return;
  report.Fail(
      other.gpu_type_path,
      workers.gpu_type.empty()
          ? fmt::format("{} here and nothing in {}; the GPU type is that of the workers, give it there",
                        QuotedBrief(other.gpu_type), workers.path)
          : fmt::format("{} here and {} in {}; a job runs on one GPU type, give the same",
                        QuotedBrief(other.gpu_type), QuotedBrief(workers.gpu_type), workers.path));
}

}  // namespace voda::spec
