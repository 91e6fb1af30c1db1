#include "kubeflow/objects.h"

#include <gtest/gtest.h>

#include "kubeflow/test_objects.h"

namespace voda::kubeflow {
namespace {

using testing::Decoded;
using testing::Job;

PodObject Pod(const std::string& json, Steering steering = Steering::kGates) {
  return Decoded(json, [&](const kube::ObjectHead& head, const kube::JsonView& object) {
    return DecodePod(steering, head, object);
  });
}
NodeObject Node(const std::string& json) {
  return Decoded(json, DecodeNode);
}

TEST(JobObject, IsReadWithItsSizeGateAndLabels) {
  const JobObject job =
      Job(R"({"metadata": {"labels": {"vodascheduler/queue": "default"}, "annotations": {"a": "b"},
    "creationTimestamp": "1970-01-01T00:01:00Z"}, "spec": {"runPolicy": {"suspend": true}, "mpiReplicaSpecs": {"Worker":
    {"replicas": 3, "template": {"spec": {"schedulingGates": [{"name": "x"}, {"name": "vodascheduler/placement"}]}}}}}})");
  EXPECT_TRUE(job.suspended);
  EXPECT_TRUE(job.gated);
  EXPECT_FALSE(job.deleting);
  EXPECT_EQ(job.replicas, 3);
  EXPECT_EQ(job.labels.at("vodascheduler/queue"), "default");
  EXPECT_EQ(job.annotations.at("a"), "b");
  EXPECT_DOUBLE_EQ(job.created, 60);
  EXPECT_EQ(job.end, JobObject::End::kNone);
}

TEST(JobObject, AMasterIsOneOfItsWorkers) {
  const JobObject job =
      Job(R"({"spec": {"pytorchReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}}})",
          JobKind::kPyTorchJob);
  EXPECT_TRUE(job.master);
  EXPECT_EQ(job.replicas, 3);
  EXPECT_EQ(Job(R"({"spec": {"pytorchReplicaSpecs": {"Master": {}}}})", JobKind::kPyTorchJob).replicas, 1);
  EXPECT_EQ(Job(R"({"spec": {"pytorchReplicaSpecs": {"Worker": {}}}})", JobKind::kPyTorchJob).replicas, 1);
}

// mpi-operator reports Failed=True for an evicted worker while the launcher still runs.
TEST(JobObject, HasEndedOnlyWithACompletionTime) {
  const std::string failed = R"("conditions": [{"type": "Running", "status": "True"},
    {"type": "Failed", "status": "True", "reason": "MPIJobEvicted", "message": "evicted"}])";
  EXPECT_EQ(Job("{\"status\": {" + failed + "}}").end, JobObject::End::kNone);
  const JobObject job = Job("{\"status\": {\"completionTime\": \"2026-01-01T00:00:00Z\", " + failed + "}}");
  EXPECT_EQ(job.end, JobObject::End::kFailed);
  EXPECT_EQ(job.message, "evicted");
}

const char* const kApplied =
    R"({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "a",
  "namespace": "ns", "uid": "u", "resourceVersion": "%", "generation": 1,
  "labels": {"vodascheduler/queue": "default"}, "annotations": {"vodascheduler/state": "%"}},
  "spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [{"name": "pytorch", "image": "x"}]}}}}},
  "status": {"conditions": [{"type": "Created", "lastUpdateTime": "%"}]}})";

// The object in the version of this number, with some parts changed.
std::string Version(int number, const std::string& part = {}, const std::string& other = {}) {
  std::string text = kApplied;
  for (auto at = text.find('%'); at != text.npos; at = text.find('%'))
    text.replace(at, 1, std::to_string(number));
  if (!part.empty()) text.replace(text.find(part), part.size(), other);
  return text;
}

TEST(JobObject, VersionsThatAskForTheSameShareWhatWasReadOfIt) {
  const JobObject first = Job(Version(1), JobKind::kPyTorchJob);
  ASSERT_TRUE(first.applied);
  ASSERT_TRUE(first.applied->spec) << first.applied->error;
  const JobObject later = Job(Version(2), JobKind::kPyTorchJob, &first);
  EXPECT_EQ(later.head.resource_version, "2");
  EXPECT_EQ(later.annotations.at("vodascheduler/state"), "2") << "the rest is new";
  EXPECT_EQ(later.applied, first.applied);
  for (const auto& [part, other] :
       {std::pair("\"generation\": 1", "\"generation\": 2"), std::pair("\"uid\": \"u\"", "\"uid\": \"v\""),
        std::pair("\"default\"", "\"another\""),
        std::pair("{\"vodascheduler/state\"", "{\"a\": \"b\", \"vodascheduler/state\""),
        std::pair("\"generation\": 1,", "")}) {
    const JobObject changed = Job(Version(2, part, other), JobKind::kPyTorchJob, &first);
    EXPECT_NE(changed.applied, first.applied) << part;
    EXPECT_NE(changed.applied->number, first.applied->number);
  }
  EXPECT_FALSE(Job(Version(2, "vodascheduler/queue", "a/b"), JobKind::kPyTorchJob, &first).applied)
      << "it does not opt in any more";
}

TEST(PodObject, RolesOfBothOperators) {
  const auto labels = [](const std::string& name, const std::string& text) {
    return Pod(R"({"metadata": {"name": ")" + name +
               R"(", "labels": {"training.kubeflow.org/job-name": "j", )" + text + "}}}");
  };
  const PodObject launcher = labels("j-launcher", R"("training.kubeflow.org/job-role": "launcher")");
  EXPECT_TRUE(launcher.launcher);
  EXPECT_EQ(launcher.index, -1);
  const PodObject worker =
      labels("j-worker-4",
             R"("training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": "4")");
  EXPECT_EQ(worker.index, 4);
  EXPECT_EQ(worker.job, "j");
  // Worker 0 of a job without a Master has the role, too.
  const PodObject first =
      labels("j-worker-0",
             R"("training.kubeflow.org/job-role": "master", "training.kubeflow.org/replica-type": "worker",
    "training.kubeflow.org/replica-index": "0")");
  EXPECT_FALSE(first.master);
  EXPECT_EQ(first.index, 0);
  const PodObject master =
      labels("j-master-0",
             R"("training.kubeflow.org/replica-type": "master", "training.kubeflow.org/replica-index": "0")");
  EXPECT_TRUE(master.master);
  EXPECT_EQ(master.index, 0);
  EXPECT_EQ(Pod("{}").job, "");
}

TEST(PodObject, SaysWhereItSitsAndWhyNot) {
  const PodObject pod = Pod(R"({"spec": {"nodeName": "n1", "affinity": {"nodeAffinity":
    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields":
    [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}}}, "containers": [
    {"resources": {"requests": {"nvidia.com/gpu": "2", "cpu": "1500m", "memory": "1Gi"}}},
    {"resources": {"requests": {"nvidia.com/gpu": 1}}}]}, "status": {"phase": "Failed", "reason": "Evicted", "message": "low"}})");
  EXPECT_EQ(pod.node, "n1");
  EXPECT_EQ(pod.pinned, "n1");
  EXPECT_TRUE(pod.over());
  EXPECT_EQ(pod.reason, "Evicted: low");
  EXPECT_EQ(pod.requests.at("nvidia.com/gpu"), 3);
  EXPECT_EQ(pod.requests.at("cpu"), 2);
  EXPECT_FALSE(pod.requests.contains("memory"));
  EXPECT_EQ(
      Pod(R"({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
    "message": "0/3 nodes"}]}})")
          .reason,
      "0/3 nodes");
  EXPECT_EQ(
      Pod(R"({"status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
    "message": "gated"}]}})")
          .reason,
      "");
}

TEST(PodObject, HoldsWhatItsInitContainersHold) {
  const PodObject pod = Pod(R"({"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": 1}}}],
    "initContainers": [{"resources": {"requests": {"nvidia.com/gpu": 3}}},
                       {"resources": {"requests": {"nvidia.com/gpu": 2, "amd.com/gpu": 1}}}]}})");
  EXPECT_EQ(pod.requests.at("nvidia.com/gpu"), 3);
  EXPECT_EQ(pod.requests.at("amd.com/gpu"), 1);
  const PodObject beside =
      Pod(R"({"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": 1}}}],
    "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"nvidia.com/gpu": 1}}}]}})");
  EXPECT_EQ(beside.requests.at("nvidia.com/gpu"), 2);
}

TEST(PodObject, AnIndexIsNotBelievedForEver) {
  const auto index = [](const std::string& text) {
    return Pod(R"({"metadata": {"name": "j-worker-)" + text +
               R"(", "labels": {"training.kubeflow.org/job-name": "j",
      "training.kubeflow.org/replica-index": ")" +
               text + "\"}}}")
        .index;
  };
  EXPECT_EQ(index("3"), 3);
  EXPECT_EQ(index("03"), -1);
  for (const char* text : {"2000000000", "65536", "-1", "99999999999999999999", "x", ""})
    EXPECT_EQ(index(text), -1) << text;
}

TEST(NodeObject, LeavesForTaintsThatMeanIt) {
  const auto tainted = [](const std::string& key, const std::string& effect) {
    return Node(R"({"spec": {"taints": [{"key": ")" + key + R"(", "effect": ")" + effect + "\"}]}}").leaving;
  };
  EXPECT_TRUE(tainted("maintenance", "NoExecute"));
  EXPECT_FALSE(tainted("maintenance", "NoSchedule"));
  EXPECT_TRUE(tainted("ToBeDeletedByClusterAutoscaler", "NoSchedule"));
  EXPECT_FALSE(tainted("node.kubernetes.io/not-ready", "NoExecute"));
  EXPECT_FALSE(tainted("vodascheduler/hostname", "NoExecute"));
}

TEST(NodeObject, CountsWholeUnits) {
  const NodeObject node = Node(R"({"metadata": {"labels": {"vodascheduler/accelerator": "v100"}},
    "spec": {"unschedulable": true}, "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "3920m"},
    "conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:00:10Z"}]}})");
  EXPECT_EQ(node.gpu_type, "v100");
  EXPECT_EQ(node.allocatable.at("nvidia.com/gpu"), 8);
  EXPECT_EQ(node.allocatable.at("cpu"), 3);
  EXPECT_TRUE(node.cordoned);
  EXPECT_FALSE(node.ready);
  EXPECT_DOUBLE_EQ(node.not_ready_since, 10);
}

TEST(Objects, RubbishIsAnErrorOrNothing) {
  for (std::string text : {"{", ""}) {
    kube::AddPadding(text);
    EXPECT_FALSE(kube::JsonDocument().Read(text)) << text;
  }
  const PodObject pod =
      Pod(R"({"metadata": {"labels": ["x"]}, "spec": 3, "status": {"phase": {}, "conditions": {}}})");
  EXPECT_EQ(pod.job, "");
  EXPECT_EQ(Job(R"({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": -5}}}})").replicas, 0);
  EXPECT_EQ(Job(R"({"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 9999999999}}}})").replicas, 65536);
}

TEST(Objects, ByTaintsAWorkerWaitsForItsToleration) {
  const auto worker = [](const std::string& spec, const char* role = "worker") {
    return Pod(
        R"({"metadata":{"labels":{"training.kubeflow.org/job-name":"j","training.kubeflow.org/job-role":")" +
            std::string(role) + R"(","training.kubeflow.org/replica-index":"0"}},"spec":)" + spec + "}",
        Steering::kTaints);
  };
  EXPECT_TRUE(worker("{}").gated);
  const PodObject placed = worker(
      R"({"tolerations":[{"key":"other","operator":"Exists"},
         {"key":"vodascheduler/hostname","operator":"Equal","value":"n1","effect":"NoExecute"}]})");
  EXPECT_FALSE(placed.gated);
  EXPECT_EQ(placed.pinned, "n1");
  EXPECT_FALSE(worker(R"({"nodeName":"n2"})").gated) << "it runs already";
  EXPECT_FALSE(worker("{}", "launcher").gated) << "launchers go where they like";
}

TEST(Objects, ANodeIsTaintedWithItsOwnNameOnly) {
  const auto node = [](const char* value) {
    return Node(std::string(R"({"spec":{"taints":[{"key":"vodascheduler/hostname","value":")") + value +
                R"(","effect":"NoExecute"}]}})");
  };
  EXPECT_EQ(node("name").own_taint, 0);
  EXPECT_EQ(node("another").own_taint, -1);
  EXPECT_FALSE(node("name").leaving) << "its own taint moves nobody";
}

}  // namespace
}  // namespace voda::kubeflow
