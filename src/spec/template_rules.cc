#include "spec/template_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "base/enum_array.h"
#include "base/text.h"
#include "document/field.h"
#include "document/json_text.h"
#include "document/path.h"

namespace voda {

namespace {

constexpr std::size_t kMostMessages = 20;
constexpr int kMostPort = 65535;

enum class Rule : std::uint8_t {
  kHostPath,
  kHostNetwork,
  kHostPid,
  kHostIpc,
  kHostPort,
  kHostProcess,
  kPrivileged,
  kEscalation,
  kCapabilities,
  kProcMount,
  kSeccomp,
  kAppArmor,
  kSeLinux,
  kSysctls,
  kServiceAccount,
  kNodeName,
  kTolerations,
  kPriorityClass,
  kScheduler,
  kFinalizers,
  kOwners,
  kReservedKeys,
};

constexpr EnumArray<RuleInfo, Rule::kReservedKeys> kRules = {{
    {"hostPath", "mounts a folder of the node", "use a PersistentVolumeClaim"},
    {"hostNetwork", "shares the node's network", "remove it"},
    {"hostPID", "sees the processes of the node", "remove it"},
    {"hostIPC", "shares memory with the processes of the node",
     "use an emptyDir of medium Memory where /dev/shm is too small"},
    {"hostPort", "takes a port of the node", "remove it and use the pod's own port"},
    {"hostProcess", "runs on a Windows node as if there were no container", "remove it"},
    {"privileged", "is root on the node", "remove it: GPUs need no privileges"},
    {"allowPrivilegeEscalation", "lets a process gain more rights than its parent", "set it to false"},
    {"capabilities", "gives a container rights of the kernel", "remove it"},
    {"procMount", "unmasks parts of /proc that belong to the node", "remove it"},
    {"seccompProfile", "opens every system call", "use RuntimeDefault"},
    {"appArmorProfile", "switches AppArmor off", "use RuntimeDefault"},
    {"seLinuxOptions", "leaves SELinux's class of containers", "remove it"},
    {"sysctls", "changes a setting of the kernel that is not safe to change", "remove it"},
    {"serviceAccountName", "takes the rights of another account", "remove it"},
    {"nodeName", "goes past the scheduler to a node", "remove it: Voda places workers"},
    {"tolerations", "reaches nodes that are kept for others (any taint, or Voda's own)",
     "name the keys of the taints that are meant"},
    {"priorityClassName", "ranks with the cluster's own pods and evicts others", "remove it"},
    {"schedulerName", "hands pods to another scheduler", "remove it"},
    {"finalizers", "keeps objects from being deleted", "remove it"},
    {"ownerReferences", "ties the job's life to another object's", "remove it"},
    {"reservedKeys", "stands under a key by which Voda or an operator knows its objects", "remove it"},
}};
static_assert(kRules[Rule::kReservedKeys].name == "reservedKeys");

// Those of kubernetes.io/docs/tasks/administer-cluster/sysctl-cluster/#safe-and-unsafe-sysctls.
constexpr std::array<std::string_view, 12> kSafeSysctls = {"kernel.shm_rmid_forced",
                                                           "net.ipv4.ip_local_port_range",
                                                           "net.ipv4.tcp_syncookies",
                                                           "net.ipv4.ping_group_range",
                                                           "net.ipv4.tcp_keepalive_time",
                                                           "net.ipv4.ip_unprivileged_port_start",
                                                           "net.ipv4.tcp_keepalive_intvl",
                                                           "net.ipv4.ip_local_reserved_ports",
                                                           "net.ipv4.tcp_keepalive_probes",
                                                           "net.ipv4.tcp_fin_timeout",
                                                           "net.ipv4.tcp_rmem",
                                                           "net.ipv4.tcp_wmem"};
constexpr std::string_view kOurs = "vodascheduler/";
constexpr std::string_view kHostnameTaint = "vodascheduler/hostname";
constexpr std::string_view kOperators = "training.kubeflow.org/";
constexpr std::string_view kAppArmorKey = "container.apparmor.security.beta.kubernetes.io/";
// What users set.
constexpr std::array<std::string_view, 5> kUserKeys = {"vodascheduler/queue", "vodascheduler/accelerator",
                                                       "vodascheduler/category", "vodascheduler/priority",
                                                       "vodascheduler/preemptible"};

// Empty text is none to Kubernetes.
std::string TextOf(const Field& field) {
  return field.Text().value_or("");
}

class Search {
 public:
  explicit Search(const std::set<std::string, std::less<>>& allowed) : allowed_(allowed) {}

  void Job(const Field& root) {
    Metadata(root.At("metadata"), false);
    const Field body = root.At("spec");
    for (const Field& policy : {body, body.At("runPolicy")}) {
      PriorityClass(policy.At("schedulingPolicy").At("priorityClass"));
    }
    for (const std::string_view kind : {"mpiReplicaSpecs", "pytorchReplicaSpecs"}) {
      for (const auto& [type, replica] : body.At(kind).Members()) {
        const Field pod = replica.At("template");
        Metadata(pod.At("metadata"), true);
        Pod(pod.At("spec"), type == "Launcher");
      }
    }
  }

  std::vector<std::string> Take() {
    if (more_ > 0) messages_.push_back(fmt::format("and {} more of this kind", more_));
    return std::move(messages_);
  }

 private:
  void Found(Rule rule, const Field& field, const std::string& value) {
    const RuleInfo& info = kRules[rule];
    if (allowed_.contains(info.name)) return;
    if (messages_.size() >= kMostMessages) {
      ++more_;
      return;
    }
    messages_.push_back(fmt::format("{}: {} {}; {}, or ask whoever runs Voda to allow it (--allow {})",
                                    field.path(), value, info.what, info.fix, info.name));
  }
  void Found(Rule rule, const Field& field) { Found(rule, field, field.Show()); }

  void NotTrue(Rule rule, const Field& field) {
    if (field.Flag() == true) Found(rule, field);
  }
  // Text other than none and those that are harmless.
  void Only(std::initializer_list<std::string_view> harmless, Rule rule, const Field& field) {
    const std::string text = TextOf(field);
    if (!text.empty() && !In(harmless, text)) Found(rule, field);
  }

  void Metadata(const Field& metadata, bool of_template) {
    for (const Field& finalizer : metadata.At("finalizers").Items()) Found(Rule::kFinalizers, finalizer);
    for (const Field& owner : metadata.At("ownerReferences").Items()) {
      Found(Rule::kOwners, owner, owner.At("name").Show());
    }
    for (const std::string_view kind : {"labels", "annotations"}) {
      for (const auto& [key, field] : metadata.At(kind).Members()) {
        const bool ours = key.starts_with(kOurs) && !In(kUserKeys, key);
        const bool operators = of_template && kind == "labels" && key.starts_with(kOperators);
        if (ours || operators) Found(Rule::kReservedKeys, field);
        if (key.starts_with(kAppArmorKey) && TextOf(field) == "unconfined") Found(Rule::kAppArmor, field);
      }
    }
  }

  void Pod(const Field& pod, bool launcher) {
    NotTrue(Rule::kHostNetwork, pod.At("hostNetwork"));
    NotTrue(Rule::kHostPid, pod.At("hostPID"));
    NotTrue(Rule::kHostIpc, pod.At("hostIPC"));
    for (const Field& volume : pod.At("volumes").Items()) {
      const Field host = volume.At("hostPath");
      if (host.present()) Found(Rule::kHostPath, host, host.At("path").Show());
    }
    SecurityContext(pod.At("securityContext"));
    for (const std::string_view kind : {"initContainers", "containers", "ephemeralContainers"}) {
      for (const Field& container : pod.At(kind).Items()) Container(container);
    }
    // The second is the first's old name.
    for (const std::string_view name : {"serviceAccountName", "serviceAccount"}) {
      Only({"default"}, Rule::kServiceAccount, pod.At(name));
    }
    Only({}, Rule::kNodeName, pod.At("nodeName"));
    for (const Field& toleration : pod.At("tolerations").Items()) {
      if (!launcher || !GivenToLaunchers(toleration)) Toleration(toleration);
    }
    PriorityClass(pod.At("priorityClassName"));
    Only({"default-scheduler"}, Rule::kScheduler, pod.At("schedulerName"));
  }

  void Container(const Field& container) {
    SecurityContext(container.At("securityContext"));
    for (const Field& port : container.At("ports").Items()) {
      const Field host = port.At("hostPort");
      if (host.Whole(0, kMostPort).value_or(0) != 0) Found(Rule::kHostPort, host);
    }
  }

  // Of a pod or a container: each has some of these.
  void SecurityContext(const Field& context) {
    NotTrue(Rule::kPrivileged, context.At("privileged"));
    NotTrue(Rule::kEscalation, context.At("allowPrivilegeEscalation"));
    NotTrue(Rule::kHostProcess, context.At("windowsOptions").At("hostProcess"));
    for (const Field& capability : context.At("capabilities").At("add").Items()) {
      Found(Rule::kCapabilities, capability);
    }
    Only({"Default"}, Rule::kProcMount, context.At("procMount"));
    Only({"RuntimeDefault", "Localhost"}, Rule::kSeccomp, context.At("seccompProfile").At("type"));
    Only({"RuntimeDefault", "Localhost"}, Rule::kAppArmor, context.At("appArmorProfile").At("type"));
    const Field se_linux = context.At("seLinuxOptions");
    Only({}, Rule::kSeLinux, se_linux.At("user"));
    Only({}, Rule::kSeLinux, se_linux.At("role"));
    Only({"container_t", "container_init_t", "container_kvm_t", "container_engine_t"}, Rule::kSeLinux,
         se_linux.At("type"));
    for (const Field& sysctl : context.At("sysctls").Items()) {
      const Field name = sysctl.At("name");
      if (!In(kSafeSysctls, TextOf(name))) Found(Rule::kSysctls, name);
    }
  }

  // Where nodes are steered by taints, Voda writes this into the template of every launcher itself.
  static bool GivenToLaunchers(const Field& toleration) {
    return TextOf(toleration.At("key")) == kHostnameTaint && TextOf(toleration.At("operator")) == "Exists" &&
           toleration.Members().size() == 2;
  }

  void Toleration(const Field& toleration) {
    const Field key = toleration.At("key");
    const std::string text = TextOf(key);
    if (text.empty()) {
      Found(Rule::kTolerations, toleration, "a toleration without a key");
    } else if (text.starts_with(kOurs)) {
      Found(Rule::kTolerations, key);
    }
  }

  void PriorityClass(const Field& field) {
    if (TextOf(field).starts_with("system-")) Found(Rule::kPriorityClass, field);
  }

  const std::set<std::string, std::less<>>& allowed_;
  std::vector<std::string> messages_;
  std::size_t more_ = 0;
};

}  // namespace

const std::vector<RuleInfo>& TemplateRules() {
  static const std::vector<RuleInfo> rules(kRules.begin(), kRules.end());
  return rules;
}

Status CheckRuleNames(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const RuleInfo& rule : kRules) known.push_back(rule.name);
  std::string unknown;
  for (const std::string& name : names) {
    if (In(known, name)) continue;
    const std::string_view nearest = NearestName(name, known);
    unknown += fmt::format("{}{}{}", unknown.empty() ? "" : ", ", QuotedBrief(name),
                           nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest));
  }
  if (unknown.empty()) return Ok{};
  return Error{
      fmt::format("no rule for pod templates is named {}; there are {}", unknown, fmt::join(known, ", "))};
}

std::vector<std::string> DangersOf(const Value& document, const std::set<std::string, std::less<>>& allowed) {
  Report report;
  const Field root(&document, "", report);
  if (!root.present()) return {"no job in it"};
  Search search(allowed);
  search.Job(root);
  std::vector<std::string> messages = search.Take();
  // A value of another type than Kubernetes has there may be read as one that is dangerous.
  if (!report.ok()) messages.push_back(report.error());
  return messages;
}

}  // namespace voda
