#include "spec/template_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "document/documents.h"
#include "support/job_files.h"

namespace voda::spec {
namespace {

using Allowed = std::set<std::string, std::less<>>;

// Of a text that is one document.
std::vector<std::string> DangersIn(const std::string& text, const Allowed& allowed = {}) {
  const auto documents = ReadDocuments(text, {});
  EXPECT_TRUE(documents && documents->size() == 1) << text;
  return documents ? DangersOf(documents->front(), allowed) : std::vector<std::string>();
}

const std::string kWorker = "spec.pytorchReplicaSpecs.Worker.template";

// A job of a worker with these members of its pod's spec, as JSON.
std::string WithPod(const std::string& pod) {
  return R"({"metadata":{"name":"a"},"spec":{"pytorchReplicaSpecs":{"Worker":{"template":{"spec":{)" + pod +
         "}}}}}}";
}
std::string WithContext(const std::string& members) {
  return WithPod(R"("containers":[{"name":"pytorch","securityContext":{)" + members + "}}]");
}
std::string WithMetadata(const std::string& members) {
  return R"({"metadata":{"name":"a",)" + members + R"(},"spec":{}})";
}
std::string WithTemplateMetadata(const std::string& members) {
  return R"({"spec":{"pytorchReplicaSpecs":{"Worker":{"template":{"metadata":{)" + members + "}}}}}}";
}

TEST(TemplateRules, AMessageNamesFieldValueFixAndFlag) {
  EXPECT_EQ(DangersIn(WithPod(R"("volumes":[{"name":"a","hostPath":{"path":"/etc"}}])"), {}),
            std::vector<std::string>{
                kWorker + ".spec.volumes[0].hostPath: \"/etc\" mounts a folder of the node; use a "
                          "PersistentVolumeClaim, or ask whoever runs Voda to allow it (--allow hostPath)"});
}

struct Case {
  std::string document;
  std::string rule;
  std::string path;   // of the field
  std::string value;  // in the message
};

std::vector<Case> Dangerous() {
  const std::string pod = kWorker + ".spec.";
  const std::string context = pod + "containers[0].securityContext.";
  const std::string metadata = kWorker + ".metadata.";
  return {
      {WithPod(R"("volumes":[{"emptyDir":{}},{"hostPath":{"path":"/"}}])"), "hostPath",
       pod + "volumes[1].hostPath", "\"/\""},
      {WithPod(R"("volumes":[{"hostPath":{}}])"), "hostPath", pod + "volumes[0].hostPath", "null"},
      {WithPod(R"("hostNetwork":true)"), "hostNetwork", pod + "hostNetwork", "true"},
      {WithPod(R"("hostPID":true)"), "hostPID", pod + "hostPID", "true"},
      {WithPod(R"("hostIPC":true)"), "hostIPC", pod + "hostIPC", "true"},
      {WithPod(R"("containers":[{"ports":[{"hostPort":80}]}])"), "hostPort",
       pod + "containers[0].ports[0].hostPort", "80"},
      {WithPod(R"("securityContext":{"windowsOptions":{"hostProcess":true}})"), "hostProcess",
       pod + "securityContext.windowsOptions.hostProcess", "true"},
      {WithContext(R"("privileged":true)"), "privileged", context + "privileged", "true"},
      {WithContext(R"("allowPrivilegeEscalation":true)"), "allowPrivilegeEscalation",
       context + "allowPrivilegeEscalation", "true"},
      {WithContext(R"("capabilities":{"drop":["ALL"],"add":["SYS_ADMIN"]})"), "capabilities",
       context + "capabilities.add[0]", "\"SYS_ADMIN\""},
      {WithContext(R"("procMount":"Unmasked")"), "procMount", context + "procMount", "\"Unmasked\""},
      {WithContext(R"("seccompProfile":{"type":"Unconfined"})"), "seccompProfile",
       context + "seccompProfile.type", "\"Unconfined\""},
      {WithContext(R"("appArmorProfile":{"type":"Unconfined"})"), "appArmorProfile",
       context + "appArmorProfile.type", "\"Unconfined\""},
      {WithTemplateMetadata(
           R"("annotations":{"container.apparmor.security.beta.kubernetes.io/a":"unconfined"})"),
       "appArmorProfile", metadata + "annotations[\"container.apparmor.security.beta.kubernetes.io/a\"]",
       "\"unconfined\""},
      {WithContext(R"("seLinuxOptions":{"user":"u"})"), "seLinuxOptions", context + "seLinuxOptions.user",
       "\"u\""},
      {WithContext(R"("seLinuxOptions":{"role":"r"})"), "seLinuxOptions", context + "seLinuxOptions.role",
       "\"r\""},
      {WithContext(R"("seLinuxOptions":{"type":"spc_t"})"), "seLinuxOptions", context + "seLinuxOptions.type",
       "\"spc_t\""},
      {WithPod(R"("securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}]})"), "sysctls",
       pod + "securityContext.sysctls[0].name", "\"kernel.msgmax\""},
      {WithPod(R"("serviceAccountName":"admin")"), "serviceAccountName", pod + "serviceAccountName",
       "\"admin\""},
      {WithPod(R"("serviceAccount":"admin")"), "serviceAccountName", pod + "serviceAccount", "\"admin\""},
      {WithPod(R"("nodeName":"n1")"), "nodeName", pod + "nodeName", "\"n1\""},
      {WithPod(R"("tolerations":[{"operator":"Exists"}])"), "tolerations", pod + "tolerations[0]",
       "a toleration without a key"},
      {WithPod(R"("tolerations":[{"key":"a"},{"key":"","operator":"Exists","effect":"NoExecute"}])"),
       "tolerations", pod + "tolerations[1]", "a toleration without a key"},
      {WithPod(R"("tolerations":[{"key":"vodascheduler/hostname","value":"n1"}])"), "tolerations",
       pod + "tolerations[0].key", "\"vodascheduler/hostname\""},
      {WithPod(R"("priorityClassName":"system-node-critical")"), "priorityClassName",
       pod + "priorityClassName", "\"system-node-critical\""},
      {R"({"spec":{"runPolicy":{"schedulingPolicy":{"priorityClass":"system-x"}}}})", "priorityClassName",
       "spec.runPolicy.schedulingPolicy.priorityClass", "\"system-x\""},
      {R"({"spec":{"schedulingPolicy":{"priorityClass":"system-x"}}})", "priorityClassName",
       "spec.schedulingPolicy.priorityClass", "\"system-x\""},
      {WithPod(R"("schedulerName":"mine")"), "schedulerName", pod + "schedulerName", "\"mine\""},
      {WithMetadata(R"("finalizers":["a/b"])"), "finalizers", "metadata.finalizers[0]", "\"a/b\""},
      {WithTemplateMetadata(R"("finalizers":["a/b"])"), "finalizers", metadata + "finalizers[0]", "\"a/b\""},
      {WithMetadata(R"("ownerReferences":[{"name":"o"}])"), "ownerReferences", "metadata.ownerReferences[0]",
       "\"o\""},
      {WithMetadata(R"("labels":{"vodascheduler/state":"x"})"), "reservedKeys",
       "metadata.labels[\"vodascheduler/state\"]", "\"x\""},
      {WithMetadata(R"("annotations":{"vodascheduler/state":"x"})"), "reservedKeys",
       "metadata.annotations[\"vodascheduler/state\"]", "\"x\""},
      {WithTemplateMetadata(R"("annotations":{"vodascheduler/hosts":"x"})"), "reservedKeys",
       metadata + "annotations[\"vodascheduler/hosts\"]", "\"x\""},
      {WithTemplateMetadata(R"("labels":{"training.kubeflow.org/replica-type":"launcher"})"), "reservedKeys",
       metadata + "labels[\"training.kubeflow.org/replica-type\"]", "\"launcher\""},
  };
}

TEST(TemplateRules, EachIsRefusedUnlessAllowed) {
  std::set<std::string, std::less<>> tested;
  for (const Case& danger : Dangerous()) {
    const std::vector<std::string> messages = DangersIn(danger.document, {});
    ASSERT_EQ(messages.size(), 1u) << danger.document;
    EXPECT_TRUE(messages[0].starts_with(danger.path + ": " + danger.value + " ")) << messages[0];
    EXPECT_TRUE(messages[0].ends_with("(--allow " + danger.rule + ")")) << messages[0];
    EXPECT_TRUE(DangersIn(danger.document, {danger.rule}).empty()) << danger.document;
    EXPECT_EQ(DangersIn(danger.document, {"something", "else"}).size(), 1u);
    tested.insert(danger.rule);
  }
  for (const RuleInfo& rule : TemplateRules()) EXPECT_TRUE(tested.contains(rule.name)) << rule.name;
}

TEST(TemplateRules, EveryContainerOfEveryReplicaIsLookedAt) {
  for (const std::string kind : {"mpiReplicaSpecs", "pytorchReplicaSpecs"}) {
    for (const std::string type : {"Launcher", "Master", "Worker", "Other"}) {
      for (const std::string list : {"containers", "initContainers", "ephemeralContainers"}) {
        const std::string text = fmt::format(
            R"({{"spec":{{"{}":{{"{}":{{"template":{{"spec":{{"{}":[{{}},{{"securityContext":{{"privileged":true}}}}]}}}}}}}}}}}})",
            kind, type, list);
        const auto messages = DangersIn(text, {});
        ASSERT_EQ(messages.size(), 1u) << text;
        EXPECT_TRUE(messages[0].starts_with(fmt::format("spec.{}.{}.template.spec.{}[1].", kind, type, list)))
            << messages[0];
      }
    }
  }
}

TEST(TemplateRules, WhatIsHarmlessPasses) {
  const std::vector<std::string> harmless = {
      WithPod(R"("hostNetwork":false,"hostPID":null,"hostUsers":false,"automountServiceAccountToken":true)"),
      WithPod(R"("volumes":[{"emptyDir":{"medium":"Memory"}},{"persistentVolumeClaim":{"claimName":"a"}}])"),
      WithPod(R"("containers":[{"ports":[{"containerPort":80,"hostPort":0}]}])"),
      WithContext(
          R"("privileged":false,"allowPrivilegeEscalation":false,"runAsUser":0,"procMount":"Default")"),
      WithContext(R"("capabilities":{"drop":["ALL"],"add":[]},"seccompProfile":{"type":"RuntimeDefault"})"),
      WithContext(R"("seLinuxOptions":{"level":"s0:c1","type":"container_t"})"),
      WithPod(R"("securityContext":{"sysctls":[{"name":"net.ipv4.tcp_syncookies","value":"1"}]})"),
      WithPod(
          R"("serviceAccountName":"default","serviceAccount":"","nodeName":"","schedulerName":"default-scheduler")"),
      WithPod(R"("tolerations":[{"key":"nvidia.com/gpu","operator":"Exists"}],"priorityClassName":"low")"),
      WithMetadata(R"("finalizers":[],"ownerReferences":null,"labels":{"vodascheduler/queue":"a","b":"c"})"),
      WithMetadata(R"("annotations":{"vodascheduler/category":"a","vodascheduler/priority":"1"})"),
      WithMetadata(R"("annotations":{"vodascheduler/preemptible":"false"})"),
      WithTemplateMetadata(R"("labels":{"vodascheduler/accelerator":"v100"},"annotations":{"a":"b"})"),
  };
  for (const std::string& text : harmless) {
    const auto messages = DangersIn(text, {});
    EXPECT_TRUE(messages.empty()) << text << "\n" << messages[0];
  }
}

TEST(TemplateRules, JobsOfTheDocumentationPass) {
  for (const std::string& text : {MpiV2(), PyTorch(), WithMaster()}) {
    EXPECT_TRUE(DangersIn(Parsed(text).document, {}).empty());
  }
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(VODA_SOURCE_DIR) / "examples/jobs")) {
    if (entry.path().extension() != ".yaml") continue;
    const auto jobs = ParseJobs(ReadJobFile("examples/jobs/" + entry.path().filename().string()));
    ASSERT_TRUE(jobs.has_value());
    for (const JobSpec& job : *jobs) {
      for (const std::string& message : DangersIn(job.document, {})) {
        ADD_FAILURE() << entry.path() << ": " << message;
      }
    }
  }
}

// A reader that is less strict than ours may take "true" for true.
TEST(TemplateRules, ValuesOfAnotherTypeAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {WithPod(R"("hostNetwork":"true")"), "hostNetwork: \"true\" is not true or false"},
      {WithPod(R"("volumes":{"hostPath":{}})"), "volumes: a mapping is not a list"},
      {WithPod(R"("containers":[{"ports":[{"hostPort":"80"}]}])"), "hostPort: \"80\" is not a whole number"},
      {WithPod(R"("nodeName":7)"), "nodeName: 7 is not text"},
      {WithContext(R"("capabilities":["SYS_ADMIN"])"), "capabilities: a list is not a mapping"},
      {R"({"spec":[]})", "spec: a list is not a mapping"},
      {R"(["a"])", "a list is not a mapping"},
      {"null", "no job in it"},
  };
  for (const auto& [text, wanted] : cases) {
    const auto messages = DangersIn(text, {});
    ASSERT_EQ(messages.size(), 1u) << text;
    EXPECT_NE(messages[0].find(wanted), std::string::npos) << messages[0];
  }
}

TEST(TemplateRules, MessagesAreBounded) {
  std::string volumes;
  for (int i = 0; i < 500; ++i) volumes += std::string(i > 0 ? "," : "") + R"({"hostPath":{"path":"/a"}})";
  const auto messages = DangersIn(WithPod("\"volumes\":[" + volumes + "]"), {});
  ASSERT_EQ(messages.size(), 21u);
  EXPECT_EQ(messages.back(), "and 480 more of this kind");
  const auto long_value = DangersIn(WithPod("\"nodeName\":\"" + std::string(60'000, 'a') + "\""), {});
  ASSERT_EQ(long_value.size(), 1u);
  EXPECT_LT(long_value[0].size(), 1000u);
}

TEST(TemplateRules, NamesOfRules) {
  std::vector<std::string> all;
  for (const RuleInfo& rule : TemplateRules()) {
    all.emplace_back(rule.name);
    EXPECT_FALSE(rule.what.empty());
    EXPECT_FALSE(rule.fix.empty());
  }
  EXPECT_TRUE(CheckRuleNames({}));
  EXPECT_TRUE(CheckRuleNames(all));
  const Status wrong = CheckRuleNames({"hostPath", "hostpid", "everything"});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(
      wrong.error().message.starts_with("no rule for pod templates is named \"hostpid\" (did you mean "
                                        "hostPID?), \"everything\"; there are hostPath, hostNetwork, "))
      << wrong.error().message;
}

}  // namespace
}  // namespace voda::spec
