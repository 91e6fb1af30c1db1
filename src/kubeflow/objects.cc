#include "kubeflow/objects.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "kube/json_text.h"
#include "model/job.h"
#include "spec/quantity.h"

namespace voda::kubeflow {

namespace {

namespace dom = simdjson::dom;

// Taints after which a node's workers have to move, whatever their effect.
constexpr std::string_view kLeavingTaints[] = {
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    "aws-node-termination-handler/spot-itn",
    "cloud.google.com/impending-node-termination",
    "kubernetes.azure.com/scheduledevent",
};
// NoExecute taints that Kubernetes sets for a node that does not answer: those wait for the grace of
// NotReady.
constexpr std::string_view kNotReadyTaints[] = {"node.kubernetes.io/not-ready",
                                                "node.kubernetes.io/unreachable"};

template <class List>
bool Contains(const List& list, std::string_view value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

Result<dom::element> Parse(dom::parser& parser, std::string_view json) {
  dom::element root;
  if (const auto error = parser.parse(json.data(), json.size(), false).get(root)) {
    return Error{fmt::format("not JSON: {}", simdjson::error_message(error))};
  }
  return root;
}

dom::parser& Parser() {
  thread_local dom::parser parser;
  return parser;
}

std::string_view Text(const dom::element& root, std::string_view pointer) {
  std::string_view text;
  if (root.at_pointer(pointer).get(text)) return {};
  return text;
}

bool Flag(const dom::element& root, std::string_view pointer) {
  bool value = false;
  return !root.at_pointer(pointer).get(value) && value;
}

template <class Look>
void ForEach(const dom::element& root, std::string_view pointer, const Look& look) {
  dom::array array;
  if (root.at_pointer(pointer).get(array)) return;
  for (const dom::element element : array) look(element);
}

template <class Look>
void ForMembers(const dom::element& root, std::string_view pointer, const Look& look) {
  dom::object object;
  if (root.at_pointer(pointer).get(object)) return;
  for (const auto& [key, value] : object) look(key, value);
}

Strings Texts(const dom::element& root, std::string_view pointer) {
  Strings texts;
  ForMembers(root, pointer, [&](std::string_view key, const dom::element& value) {
    std::string_view text;
    if (!value.get(text)) texts.emplace(key, text);
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
  if (error == std::errc() && std::string_view(rest, static_cast<std::size_t>(end - rest)) == "m") {
    return (milli + (up ? 999 : 0)) / 1000;
  }
  const auto whole = spec::ParseQuantity(text);
  return whole ? *whole : 0;
}

// Amounts that Voda can count: whole units; "500m" of cpu takes one, an allocatable "3500m" gives three.
void AddAmounts(const dom::element& root, std::string_view pointer, bool up,
                std::map<std::string, std::int64_t, std::less<>>& into) {
  ForMembers(root, pointer, [&](std::string_view key, const dom::element& value) {
    if (key != "cpu" && key.find('/') == key.npos) return;
    std::string text;
    std::string_view given;
    std::int64_t number = 0;
    if (!value.get(given)) {
      text = given;
    } else if (!value.get(number)) {
      text = std::to_string(number);
    }
    into[std::string(key)] += WholeUnits(text, up);
  });
}

// The place of our gate in a list of gates; -1: it is not there.
int FindGate(const dom::element& root, std::string_view pointer) {
  int found = -1;
  int at = 0;
  ForEach(root, pointer, [&](const dom::element& gate) {
    if (Text(gate, "/name") == kGate) found = at;
    ++at;
  });
  return found;
}

// The node of a required affinity that names one, as our patch writes it.
std::string Pinned(const dom::element& root) {
  constexpr std::string_view kTerm =
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0";
  std::string node;
  dom::element term;
  if (root.at_pointer(kTerm).get(term)) return node;
  ForEach(term, "/matchFields", [&](const dom::element& field) {
    if (Text(field, "/key") == "metadata.name" && Text(field, "/operator") == "In")
      node = Text(field, "/values/0");
  });
  return node;
}

}  // namespace

Result<JobObject> DecodeJob(const kube::Resource& resource, JobKind kind, const kube::ObjectHead& head,
                            std::string_view json) {
  const auto parsed = Parse(Parser(), json);
  if (!parsed) return parsed.error();
  const dom::element& root = *parsed;
  JobObject job;
  job.kind = kind;
  job.resource = resource;
  job.head = head;
  job.labels = Texts(root, "/metadata/labels");
  job.annotations = Texts(root, "/metadata/annotations");
  job.created = Time(Text(root, "/metadata/creationTimestamp"));
  job.deleting = !Text(root, "/metadata/deletionTimestamp").empty();
  job.suspended = Flag(root, "/spec/runPolicy/suspend");
  const std::string specs =
      kind == JobKind::kMpiJob ? "/spec/mpiReplicaSpecs/Worker" : "/spec/pytorchReplicaSpecs/Worker";
  std::int64_t replicas = 1;  // the operators' default where there is a Worker
  dom::element worker;
  if (!root.at_pointer(specs).get(worker)) {
    if (!root.at_pointer(specs + "/replicas").get(replicas))
      replicas = std::clamp<std::int64_t>(replicas, 0, kMaxWorkers);
  } else {
    replicas = 0;
  }
  dom::element master;
  job.master =
      kind == JobKind::kPyTorchJob && !root.at_pointer("/spec/pytorchReplicaSpecs/Master").get(master);
  job.replicas = static_cast<int>(replicas) + (job.master ? 1 : 0);
  job.gated = FindGate(root, specs + "/template/spec/schedulingGates") >= 0;
  job.ended = Time(Text(root, "/status/completionTime"));
  const bool ended = !Text(root, "/status/completionTime").empty();
  ForEach(root, "/status/conditions", [&](const dom::element& condition) {
    job.handled = true;
    if (!ended || Text(condition, "/status") != "True") return;
    const std::string_view type = Text(condition, "/type");
    if (type != "Succeeded" && type != "Failed") return;
    job.end = type == "Succeeded" ? JobObject::End::kSucceeded : JobObject::End::kFailed;
    job.message = Text(condition, "/message");
    if (job.message.empty()) job.message = Text(condition, "/reason");
  });
  job.document = std::string(json);
  return job;
}

Result<PodObject> DecodePod(Steering steering, const kube::ObjectHead& head, std::string_view json) {
  const auto parsed = Parse(Parser(), json);
  if (!parsed) return parsed.error();
  const dom::element& root = *parsed;
  PodObject pod;
  pod.head = head;
  const Strings labels = Texts(root, "/metadata/labels");
  const auto label = [&](std::string_view key) {
    const auto at = labels.find(key);
    return at == labels.end() ? std::string() : at->second;
  };
  pod.job = label("training.kubeflow.org/job-name");
  if (!pod.job.empty()) {
    // mpi-operator v2 has only the role, the training operator the replica type; its role "master" is also
    // on worker 0 of a job without a Master.
    const std::string role = label("training.kubeflow.org/job-role");
    const std::string type = label("training.kubeflow.org/replica-type");
    pod.launcher = role == "launcher" || type == "launcher";
    pod.master = type == "master";
    const std::string index = label("training.kubeflow.org/replica-index");
    if (!pod.launcher) std::from_chars(index.data(), index.data() + index.size(), pod.index);
    // Labels are what anybody writes on a pod.
    if (pod.index < 0 || pod.index >= kMaxWorkers) pod.index = -1;
  }
  pod.node = Text(root, "/spec/nodeName");
  pod.pinned = Pinned(root);
  pod.gate = FindGate(root, "/spec/schedulingGates");
  pod.gated = pod.gate >= 0;
  if (steering == Steering::kTaints && !pod.job.empty() && !pod.launcher) {
    ForEach(root, "/spec/tolerations", [&](const dom::element& toleration) {
      if (Text(toleration, "/key") == kTaint) pod.pinned = Text(toleration, "/value");
    });
    pod.gated = pod.gated || (pod.pinned.empty() && pod.node.empty());
  }
  dom::element affinity;
  if (!root.at_pointer("/spec/affinity").get(affinity)) pod.affinity = simdjson::minify(affinity);
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
  ForEach(root, "/status/conditions", [&](const dom::element& condition) {
    if (!pod.reason.empty() || Text(condition, "/type") != "PodScheduled" ||
        Text(condition, "/status") != "False" || Text(condition, "/reason") == "SchedulingGated")
      return;
    pod.reason = Text(condition, "/message");
  });
  pod.container = Text(root, "/spec/containers/0/name");
  ForEach(root, "/status/containerStatuses", [&](const dom::element& status) {
    std::int64_t code = 0;
    if (!pod.reason.empty() || status.at_pointer("/state/terminated/exitCode").get(code) || code == 0) return;
    pod.reason = fmt::format("exit code {}", code);
    if (const std::string_view why = Text(status, "/state/terminated/reason"); !why.empty() && why != "Error")
      pod.reason += fmt::format(" ({})", why);
  });
  const auto add = [&](const dom::element& container) {
    AddAmounts(container, "/resources/requests", true, pod.requests);
  };
  ForEach(root, "/spec/containers", add);
  ForEach(root, "/spec/initContainers", [&](const dom::element& container) {
    if (Text(container, "/restartPolicy") == "Always") return add(container);  // it stays beside the others
    std::map<std::string, std::int64_t, std::less<>> alone;
    AddAmounts(container, "/resources/requests", true, alone);
    for (const auto& [resource, amount] : alone) {
      std::int64_t& held = pod.requests[resource];
      held = std::max(held, amount);
    }
  });
  return pod;
}

Result<NodeObject> DecodeNode(const kube::ObjectHead& head, std::string_view json) {
  const auto parsed = Parse(Parser(), json);
  if (!parsed) return parsed.error();
  const dom::element& root = *parsed;
  NodeObject node;
  node.head = head;
  ForMembers(root, "/metadata/labels", [&](std::string_view key, const dom::element& value) {
    std::string_view text;
    if (key == kAcceleratorLabel && !value.get(text)) node.gpu_type = text;
  });
  AddAmounts(root, "/status/allocatable", false, node.allocatable);
  ForEach(root, "/status/conditions", [&](const dom::element& condition) {
    if (Text(condition, "/type") != "Ready") return;
    node.ready = Text(condition, "/status") == "True";
    if (!node.ready) node.not_ready_since = Time(Text(condition, "/lastTransitionTime"));
  });
  node.cordoned = Flag(root, "/spec/unschedulable");
  ForEach(root, "/spec/taints", [&](const dom::element& taint) {
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
