#include "kubeflow/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"
#include "kube/time.h"
#include "model/job.h"
#include "spec/quantity.h"

namespace voda::kubeflow {

namespace {

using kube::JsonView;

// Taints after which a node's workers must move, whatever the effect of the taint.
constexpr std::string_view kLeavingTaints[] = {
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
    "kubernetes.azure.com/scheduledevent",
};
// NoExecute taints that Kubernetes sets on a node that does not answer: they wait for the grace period of
// NotReady.
constexpr std::string_view kNotReadyTaints[] = {"node.kubernetes.io/not-ready",
                                                "node.kubernetes.io/unreachable"};

template <class List>
bool Contains(const List& list, std::string_view value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

std::string_view Text(const JsonView& root, std::string_view pointer) {
  return root.At(pointer).Text();
}

Strings Texts(const JsonView& map) {
  Strings texts;
  map.ForMembers([&](std::string_view key, const JsonView& value) {
    if (value.kind() == JsonView::Kind::kText) texts.emplace(key, value.Text());
  });
  return texts;
}

double Time(std::string_view text) {
  const auto time = kube::ParseTime(text);
  return time ? std::chrono::duration<double>(time->time_since_epoch()).count() : 0;
}

std::int64_t WholeUnits(std::string_view text, bool up) {
  std::int64_t milli = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, milli);
  if (error == std::errc() && std::string_view(rest, end) == "m") {
    return (milli + (up ? 999 : 0)) / 1000;
  }
  const auto whole = spec::ParseQuantity(text);
  return whole ? *whole : 0;
}

// Amounts in whole units, which Voda can count: "500m" of cpu takes one, an allocatable "3500m" gives three.
void AddAmounts(const JsonView& amounts, bool up, std::map<std::string, std::int64_t, std::less<>>& into) {
  amounts.ForMembers([&](std::string_view key, const JsonView& value) {
    if (key != "cpu" && key.find('/') == key.npos) return;
    const auto number = value.Integer();
    into[std::string(key)] += WholeUnits(number ? std::to_string(*number) : std::string(value.Text()), up);
  });
}

// The position of our gate in a list of gates; -1 if it is not there.
int FindGate(const JsonView& gates) {
  int found = -1;
  int at = 0;
  gates.ForEach([&](const JsonView& gate) {
    if (Text(gate, "/name") == kGate) found = at;
    ++at;
  });
  return found;
}

// The node that a required affinity names, as our patch writes it.
std::string Pinned(const JsonView& root) {
  constexpr std::string_view kFields =
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/"
      "matchFields";
  std::string node;
  root.At(kFields).ForEach([&](const JsonView& field) {
    if (Text(field, "/key") == "metadata.name" && Text(field, "/operator") == "In")
      node = Text(field, "/values/0");
  });
  return node;
}

void ReadStatus(const JsonView& status, JobObject& job) {
  const std::string_view completed = Text(status, "/completionTime");
  job.ended = Time(completed);
  const JsonView conditions = status.At("/conditions");
  job.has_conditions = conditions.list();
  int at = 0;
  conditions.ForEach([&](const JsonView& condition) {
    job.handled = true;
    const std::string_view type = Text(condition, "/type");
    if (type == kScheduledCondition && job.condition.at < 0) {
      job.condition = {at, std::string(Text(condition, "/status")), std::string(Text(condition, "/reason")),
                       std::string(Text(condition, "/message")),
                       std::string(Text(condition, "/lastTransitionTime"))};
    }
    ++at;
    if (completed.empty() || Text(condition, "/status") != "True") return;
    if (type != "Succeeded" && type != "Failed") return;
    job.end = type == "Succeeded" ? JobObject::End::kSucceeded : JobObject::End::kFailed;
    job.message = Text(condition, "/message");
    if (job.message.empty()) job.message = Text(condition, "/reason");
  });
}

Strings WithoutRecord(Strings annotations) {
  std::erase_if(annotations, [](const auto& annotation) { return IsRecord(annotation.first); });
  return annotations;
}

// The generation of the API server counts every change of a spec, but not of labels and annotations.
bool AsksForTheSame(const JobObject& before, const JobObject& job) {
  return before.applied && before.head.uid == job.head.uid && job.generation > 0 &&
         before.generation == job.generation && before.labels == job.labels &&
         WithoutRecord(before.annotations) == WithoutRecord(job.annotations);
}

}  // namespace

kube::ObjectKey KeyOf(std::string_view job) {
  const auto [name_space, name] = SplitName(job);
  return {std::string(name_space), std::string(name)};
}

std::string JobId(const JobObject& job) {
  return job.head.name_space + "/" + job.head.name;
}

JobObject DecodeJob(const JobRules& rules, const kube::ObjectHead& head, const JsonView& root,
                    const JobObject* before) {
  JobObject job;
  job.kind = rules.kind;
  job.resource = rules.resource;
  job.head = head;
  job.labels = Texts(root.At("/metadata/labels"));
  job.annotations = Texts(root.At("/metadata/annotations"));
  job.generation = root.At("/metadata/generation").Integer().value_or(0);
  job.created = Time(Text(root, "/metadata/creationTimestamp"));
  job.deleting = !Text(root, "/metadata/deletionTimestamp").empty();
  job.suspended = root.At("/spec/runPolicy/suspend").Flag();
  const JsonView worker = root.At(std::string(ReplicaSpecs(rules.kind)) + "/Worker");
  // By default the operators have one worker if there is a Worker.
  const std::int64_t replicas = worker.present() ? worker.At("/replicas").Integer().value_or(1) : 0;
  job.master = rules.kind == JobKind::kPyTorchJob && root.At("/spec/pytorchReplicaSpecs/Master").present();
  job.replicas = static_cast<int>(std::clamp<std::int64_t>(replicas, 0, kMaxWorkers)) + (job.master ? 1 : 0);
  job.gated = FindGate(worker.At("/template/spec/schedulingGates")) >= 0;
  ReadStatus(root.At("/status"), job);
  if (job.labels.contains(kQueueLabel)) {
    job.applied = before != nullptr && AsksForTheSame(*before, job)
                      ? before->applied
                      : ReadAppliedJob(rules.kind, root, rules.allowed);
  }
  return job;
}

PodObject DecodePod(Steering steering, const kube::ObjectHead& head, const JsonView& root) {
  PodObject pod;
  pod.head = head;
  const Strings labels = Texts(root.At("/metadata/labels"));
  const auto label = [&](std::string_view key) {
    const auto at = labels.find(key);
    return at == labels.end() ? std::string() : at->second;
  };
  pod.job = label("training.kubeflow.org/job-name");
  if (!pod.job.empty()) {
    // mpi-operator v2 sets only the role, the training operator the replica type; its role "master" is also
    // on worker 0 of a job without a Master.
    const std::string role = label("training.kubeflow.org/job-role");
    const std::string type = label("training.kubeflow.org/replica-type");
    pod.launcher = role == "launcher" || type == "launcher";
    pod.master = type == "master";
    const std::string index = label("training.kubeflow.org/replica-index");
    if (!pod.launcher) std::from_chars(index.data(), index.data() + index.size(), pod.index);
    // Anybody can write labels on a pod.
    const bool named =
        head.name == fmt::format("{}-{}-{}", pod.job, pod.master ? "master" : "worker", pod.index);
    if (pod.index < 0 || pod.index >= kMaxWorkers || !named || (pod.master && pod.index > 0)) pod.index = -1;
  }
  pod.node = Text(root, "/spec/nodeName");
  pod.pinned = Pinned(root);
  pod.gate = FindGate(root.At("/spec/schedulingGates"));
  pod.gated = pod.gate >= 0;
  if (steering == Steering::kTaints && !pod.job.empty() && !pod.launcher) {
    root.At("/spec/tolerations").ForEach([&](const JsonView& toleration) {
      if (Text(toleration, "/key") == kTaint) pod.pinned = Text(toleration, "/value");
    });
    pod.gated = pod.gated || (pod.pinned.empty() && pod.node.empty());
  }
  pod.affinity = root.At("/spec/affinity").Compact();
  const std::string_view gone_by = Text(root, "/metadata/deletionTimestamp");
  pod.deleting = !gone_by.empty();
  if (pod.deleting) pod.gone_by = Time(gone_by);
  const std::string_view phase = Text(root, "/status/phase");
  pod.phase = phase == "Running"     ? PodObject::Phase::kRunning
              : phase == "Succeeded" ? PodObject::Phase::kSucceeded
              : phase == "Failed"    ? PodObject::Phase::kFailed
                                     : PodObject::Phase::kPending;
  pod.reason = Text(root, "/status/reason");
  if (const std::string_view message = Text(root, "/status/message"); !message.empty()) {
    pod.reason += pod.reason.empty() ? "" : ": ";
    pod.reason += message;
  }
  root.At("/status/conditions").ForEach([&](const JsonView& condition) {
    if (!pod.reason.empty() || Text(condition, "/type") != "PodScheduled" ||
        Text(condition, "/status") != "False" || Text(condition, "/reason") == "SchedulingGated")
      return;
    pod.reason = Text(condition, "/message");
  });
  pod.container = Text(root, "/spec/containers/0/name");
  root.At("/status/containerStatuses").ForEach([&](const JsonView& status) {
    const std::int64_t code = status.At("/state/terminated/exitCode").Integer().value_or(0);
    if (!pod.reason.empty() || code == 0) return;
    pod.reason = fmt::format("exit code {}", code);
    if (const std::string_view why = Text(status, "/state/terminated/reason"); !why.empty() && why != "Error")
      pod.reason += fmt::format(" ({})", why);
  });
  const auto add = [&](const JsonView& container) {
    AddAmounts(container.At("/resources/requests"), true, pod.requests);
  };
  root.At("/spec/containers").ForEach(add);
  root.At("/spec/initContainers").ForEach([&](const JsonView& container) {
    if (Text(container, "/restartPolicy") == "Always") return add(container);  // it runs beside the others
    std::map<std::string, std::int64_t, std::less<>> alone;
    AddAmounts(container.At("/resources/requests"), true, alone);
    for (const auto& [resource, amount] : alone) {
      std::int64_t& held = pod.requests[resource];
      held = std::max(held, amount);
    }
  });
  return pod;
}

NodeObject DecodeNode(const kube::ObjectHead& head, const JsonView& root) {
  NodeObject node;
  node.head = head;
  node.gpu_type = Text(root, "/metadata/labels/vodascheduler~1accelerator");
  AddAmounts(root.At("/status/allocatable"), false, node.allocatable);
  root.At("/status/conditions").ForEach([&](const JsonView& condition) {
    if (Text(condition, "/type") != "Ready") return;
    node.ready = Text(condition, "/status") == "True";
    if (!node.ready) node.not_ready_since = Time(Text(condition, "/lastTransitionTime"));
  });
  node.cordoned = root.At("/spec/unschedulable").Flag();
  root.At("/spec/taints").ForEach([&](const JsonView& taint) {
    const std::string_view key = Text(taint, "/key");
    const int at = node.taints++;
    if (key == kTaint && Text(taint, "/effect") == "NoExecute" && Text(taint, "/value") == head.name)
      node.own_taint = at;
    const bool evicts =
        Text(taint, "/effect") == "NoExecute" && !Contains(kNotReadyTaints, key) && key != kTaint;
    if (evicts || Contains(kLeavingTaints, key)) node.leaving = true;
  });
  node.deleting = !Text(root, "/metadata/deletionTimestamp").empty();
  return node;
}

}  // namespace voda::kubeflow
