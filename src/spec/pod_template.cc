#include "spec/pod_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "document/json_text.h"
#include "document/path.h"
#include "model/job.h"
#include "spec/container.h"
#include "spec/names.h"

namespace voda::spec {

namespace {

constexpr int kLongestGrace = 86'400;
constexpr std::size_t kMostContainers = 64;
constexpr std::string_view kAccelerator = "vodascheduler/accelerator";
constexpr std::array<std::string_view, 3> kReplicaFields = {"replicas", "restartPolicy", "template"};
constexpr std::array<std::string_view, 2> kTemplateFields = {"metadata", "spec"};
// What Voda reads of a pod's spec. The rest is the cluster's business: ignored, but for typos of these.
constexpr std::array<std::string_view, 4> kPodFields = {"containers", "nodeSelector", "restartPolicy",
                                                        "terminationGracePeriodSeconds"};

std::optional<RestartPolicy> ParseRestartPolicy(const Field& field, bool always, bool exit_code) {
  const auto text = field.Text();
  if (!text) return std::nullopt;
  if (*text == "Never") return RestartPolicy::kNo;
  if (*text == "OnFailure") return RestartPolicy::kOnFailure;
  if (*text == "Always" && always) return RestartPolicy::kAlways;
  if (*text == "ExitCode" && exit_code) return RestartPolicy::kExitCode;
  field.Fail(fmt::format("{} is not a restart policy here; give Never{}{}{}", field.Show(),
                         always || exit_code ? ", OnFailure" : " or OnFailure",
                         always ? (exit_code ? ", Always" : " or Always") : "",
                         exit_code ? " or ExitCode" : ""));
  return std::nullopt;
}

std::string ContainerName(const Field& container) {
  return container.At("name").Text().value_or("");
}

// The one container that is run.
std::optional<Field> ChooseContainer(const Field& field, const ReplicaRules& rules) {
  const std::vector<Field> containers = field.Items();
  if (containers.empty()) {
    field.Fail("no container; give one with name, image and command");
    return std::nullopt;
  }
  if (containers.size() == 1) return containers[0];
  if (containers.size() > kMostContainers) {
    field.Fail(fmt::format("{} containers, the limit is {}", containers.size(), kMostContainers));
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const Field& container : containers) names.push_back(ContainerName(container));
  auto chosen = names.end();
  for (const std::string_view wanted : rules.containers) {
    if (chosen == names.end()) chosen = std::find(names.begin(), names.end(), wanted);
  }
  if (chosen == names.end() && rules.first_container) chosen = names.begin();
  if (chosen == names.end()) {
    field.Fail(fmt::format("{} containers and none of them is named {}; name the one that trains so",
                           containers.size(), fmt::join(rules.containers, " or ")));
    return std::nullopt;
  }
  const Field& container = containers.begin()[chosen - names.begin()];
  if (rules.run_as == RunAs::kContainers) return container;
  std::vector<std::string> others;
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name != chosen) others.push_back(QuotedBrief(*name));
  }
  field.report().Warn(fmt::format("{}: only the container {} is run; its sidecars {} are ignored.",
                                  field.path(), QuotedBrief(*chosen), fmt::join(others, ", ")));
  return container;
}

void ReadGpuType(const Field& selector, Replica& replica) {
  for (const auto& [key, field] : selector.Members()) {
    if (key != kAccelerator) {
      const std::array known = {kAccelerator};
      if (!NearestName(key, known).empty()) {
        field.Fail(fmt::format("unknown label; did you mean {}?", kAccelerator));
      }
      selector.report().Ignore(fmt::format("nodeSelector {}", QuotedBrief(key)));
      continue;
    }
    const auto type = field.Text();
    if (!type) {
      if (!field.present()) field.Fail("null is no GPU type; name one, or leave the label out");
      continue;
    }
    if (!IsLabelValue(*type)) {
      field.Fail(fmt::format("{} is not a label value; give at most 63 letters, digits, '-', '_' or '.'",
                             field.Show()));
    }
    replica.gpu_type = *type;
    replica.gpu_type_path = field.path();
  }
}

void ReadPod(const Field& pod, const ReplicaRules& rules, Replica& replica) {
  for (const auto& [key, field] : pod.Members()) {
    if (std::find(kPodFields.begin(), kPodFields.end(), key) != kPodFields.end()) continue;
    const std::string_view nearest = NearestName(key, kPodFields);
    if (!nearest.empty()) field.Fail(fmt::format("unknown field; did you mean {}?", nearest));
    if (field.present()) pod.report().Ignore(MemberPath("", key));
  }
  ReadGpuType(pod.At("nodeSelector"), replica);
  const Field grace = pod.At("terminationGracePeriodSeconds");
  if (const auto seconds = grace.Whole(0, kLongestGrace)) replica.grace_seconds = static_cast<int>(*seconds);
  const auto policy = ParseRestartPolicy(pod.At("restartPolicy"), true, false);
  if (!replica.restart_policy) {
    replica.restart_policy = policy;
  }
  if (const auto container = ChooseContainer(pod.At("containers"), rules)) {
    ReadContainer(*container, rules, replica);
  }
}

}  // namespace

Replica ReadReplica(const Field& field, const ReplicaRules& rules) {
  Replica replica;
  replica.path = field.path();
  replica.present = field.present();
  if (!field.present()) return replica;
  field.OnlyKnown(kReplicaFields);
  if (const auto replicas = field.At("replicas").Whole(1, kMaxWorkers)) {
    replica.replicas = static_cast<int>(*replicas);
  }
  const Field policy = field.At("restartPolicy");
  replica.restart_policy = ParseRestartPolicy(policy, rules.all_restart_policies, rules.all_restart_policies);
  const Field pod_template = field.At("template");
  pod_template.OnlyKnown(kTemplateFields);
  const Field pod = pod_template.At("spec");
  if (!pod.present()) pod.Fail("missing; give the pod's spec with its containers");
  ReadPod(pod, rules, replica);
  return replica;
}

}  // namespace voda::spec
