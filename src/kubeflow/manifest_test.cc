#include "kubeflow/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kubeflow/test_objects.h"

namespace voda::kubeflow {
namespace {

using Json = nlohmann::json;

const char* const kMpi = R"(
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mnist, namespace: team, labels: {a: b}}
spec:
  mpiReplicaSpecs:
    Launcher:
      template: {spec: {containers: [{name: l, command: [horovodrun], env: [{name: JOB_NAME, value: mnist}]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: w, command: [sshd]}]}}
)";

const ManifestSettings kSettings{.progress_url = "http://voda/progress",
                                 .token = "secret",
                                 .gpu_type = "v100",
                                 .steering = Steering::kGates};

// The object as a user applies it, with what the API server adds.
Json Applied(const std::string& document) {
  Json object = Json::parse(document);
  object["metadata"].update(
      {{"name", "mnist"}, {"namespace", "team"}, {"uid", "uid-1"}, {"resourceVersion", "7"}});
  object["metadata"]["labels"]["vodascheduler/queue"] = "default";
  return object;
}

// The object after the patch that adds what it lacks; the patch is empty if it lacks nothing.
Json Completed(const Json& object, const ManifestSettings& settings, JobKind kind = JobKind::kMpiJob) {
  kube::JsonPatch patch;
  EXPECT_TRUE(AddMissing(testing::Job(object.dump(), kind), settings, patch));
  if (patch.empty()) return {};
  return object.patch(Json::parse(patch.Text()));
}

TEST(Manifest, ASubmittedJobIsSuspendedOptedInAndGated) {
  const auto specs = ParseJobs(kMpi);
  ASSERT_TRUE(specs) << specs.error().message;
  const Json object = Json::parse(NewObject(specs->front(), "mnist-20260101-120000", kSettings));
  EXPECT_EQ(object["metadata"]["name"], "mnist-20260101-120000");
  EXPECT_EQ(object["metadata"]["namespace"], "team");
  EXPECT_EQ(object["metadata"]["labels"], Json({{"a", "b"}, {"vodascheduler/queue", "default"}}));
  EXPECT_EQ(object["spec"]["runPolicy"]["suspend"], true);
  const Json& worker = object["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
  EXPECT_EQ(worker["schedulingGates"], Json::parse(R"([{"name": "vodascheduler/placement"}])"));
  EXPECT_EQ(worker["nodeSelector"]["vodascheduler/accelerator"], "v100");
  const Json& launcher = object["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"];
  EXPECT_FALSE(launcher.contains("schedulingGates"));
  EXPECT_EQ(launcher["containers"][0]["env"], Json::parse(R"([
    {"name": "JOB_NAME", "value": "mnist-20260101-120000"},
    {"name": "VODA_PROGRESS_URL", "value": "http://voda/progress"},
    {"name": "VODA_PROGRESS_TOKEN", "value": "secret"}])"));
}

TEST(Manifest, AnAppliedJobGetsWhatItLacksInOnePatchAndThenNoMore) {
  const auto specs = ParseJobs(kMpi);
  ASSERT_TRUE(specs);
  const Json object = Applied(specs->front().document);
  kube::JsonPatch patch;
  patch.TestUid("uid-1");
  ASSERT_TRUE(AddMissing(testing::Job(object.dump()), kSettings, patch));
  EXPECT_EQ(Json::parse(patch.Text())[0],
            Json::parse(R"({"op": "test", "path": "/metadata/uid", "value": "uid-1"})"));
  const Json completed = Completed(object, kSettings);
  EXPECT_EQ(testing::Job(completed.dump()).applied->token, "secret");
  EXPECT_TRUE(Completed(completed, kSettings).is_null());
  // The result equals a submitted job.
  Json submitted = Json::parse(NewObject(specs->front(), "mnist", kSettings));
  submitted["spec"]["runPolicy"].erase("suspend");
  EXPECT_EQ(completed["spec"], submitted["spec"]);
}

// Everything is there already, but some of it differs from what Voda needs.
TEST(Manifest, WhatIsThereIsChangedInItsPlace) {
  Json object = Applied(ParseJobs(kMpi)->front().document);
  object["metadata"]["annotations"] = {{"a", "b"}, {"vodascheduler/state", "old"}};
  object["spec"]["runPolicy"]["cleanPodPolicy"] = "None";
  Json& worker = object["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
  worker["nodeSelector"] = {{"zone", "x"}, {"vodascheduler/accelerator", "k80"}};
  worker["schedulingGates"] = {{{"name", "another"}}};
  worker["containers"][0]["env"] = Json::parse(
      R"([{"name": "A", "value": "1"}, {"name": "VODA_PROGRESS_TOKEN", "value": "old"}, {"name": "JOB_NAME",
          "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}])");
  worker["containers"].push_back({{"name", "side"}});
  ManifestSettings settings = kSettings;
  settings.state = "new";
  settings.submission = "key";
  const Json completed = Completed(object, settings);
  EXPECT_EQ(completed["metadata"]["annotations"],
            Json({{"a", "b"}, {"vodascheduler/state", "new"}, {"vodascheduler/submission", "key"}}));
  EXPECT_EQ(completed["spec"]["runPolicy"], Json({{"cleanPodPolicy", "None"}}));
  const Json& after = completed["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"];
  EXPECT_EQ(after["nodeSelector"], Json({{"zone", "x"}, {"vodascheduler/accelerator", "v100"}}));
  EXPECT_EQ(after["schedulingGates"],
            Json::parse(R"([{"name": "another"}, {"name": "vodascheduler/placement"}])"));
  EXPECT_EQ(after["containers"][0]["env"], Json::parse(R"([{"name": "A", "value": "1"},
    {"name": "VODA_PROGRESS_TOKEN", "value": "secret"}, {"name": "JOB_NAME", "value": "mnist"},
    {"name": "VODA_PROGRESS_URL", "value": "http://voda/progress"}])"));
  EXPECT_EQ(after["containers"][1]["env"].size(), 3U);
  EXPECT_TRUE(Completed(completed, settings).is_null());
}

TEST(Manifest, ByTaintsALauncherMayGoAnywhere) {
  Json object = Applied(ParseJobs(kMpi)->front().document);
  ManifestSettings settings = kSettings;
  settings.steering = Steering::kTaints;
  const Json anywhere = Json::parse(R"({"key": "vodascheduler/hostname", "operator": "Exists"})");
  const auto pod = [](const Json& of, const char* type) {
    return of["spec"]["mpiReplicaSpecs"][type]["template"]["spec"];
  };
  Json completed = Completed(object, settings);
  EXPECT_EQ(pod(completed, "Launcher")["tolerations"], Json::array({anywhere}));
  EXPECT_FALSE(pod(completed, "Worker").contains("tolerations"));
  EXPECT_FALSE(pod(completed, "Worker").contains("schedulingGates"));
  EXPECT_TRUE(Completed(completed, settings).is_null());
  const Json other = Json::parse(R"({"key": "other", "operator": "Exists"})");
  object["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["tolerations"] = Json::array({other});
  EXPECT_EQ(pod(Completed(object, settings), "Launcher")["tolerations"], Json::array({other, anywhere}));
}

TEST(Manifest, AnElasticPyTorchJobMayRestartAsOftenAsItIsResized) {
  const Json object =
      Applied(R"({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {}, "spec": {
    "elasticPolicy": {"minReplicas": 1, "rdzvBackend": "etcd"}, "pytorchReplicaSpecs": {"Worker": {"template": {"spec": {
    "containers": [{"name": "pytorch", "image": "x"}]}}}}}})");
  const Json policy = Completed(object, kSettings, JobKind::kPyTorchJob)["spec"]["elasticPolicy"];
  EXPECT_EQ(policy, Json::parse(R"({"minReplicas": 1, "rdzvBackend": "etcd", "maxRestarts": 1000000})"));
}

TEST(Manifest, WorkersOfAnMpiJobEndWithItUnlessItsUserSaysOtherwise) {
  const auto specs = ParseJobs(kMpi);
  ASSERT_TRUE(specs);
  const auto policy = [&](JobSpec spec, const char* pointer, const char* given) {
    Json object = Json::parse(spec.document);
    if (given != nullptr) object[Json::json_pointer(pointer)] = given;
    spec.document = object.dump();
    return Json::parse(NewObject(spec, "mnist", kSettings))["spec"]["runPolicy"].value("cleanPodPolicy", "");
  };
  EXPECT_EQ(policy(specs->front(), "", nullptr), "Running");
  EXPECT_EQ(policy(specs->front(), "/spec/runPolicy/cleanPodPolicy", "None"), "None");
  EXPECT_EQ(policy(specs->front(), "/spec/cleanPodPolicy", "All"), "") << "as v1 has it";
}

TEST(Manifest, TheTokenSaysThatAJobWasTakenInAlsoWhereNobodyReports) {
  const auto specs = ParseJobs(kMpi);
  ASSERT_TRUE(specs);
  ManifestSettings settings = kSettings;
  settings.progress_url.clear();
  EXPECT_EQ(testing::Job(NewObject(specs->front(), "mnist", settings)).applied->token, "secret");
}

TEST(Manifest, AnObjectThatDoesNotOptInIsAnError) {
  kube::JsonPatch patch;
  EXPECT_FALSE(AddMissing(testing::Job("{}"), kSettings, patch));
  const Json labelled = {{"metadata", {{"labels", {{"vodascheduler/queue", "default"}}}}}};
  EXPECT_EQ(testing::Job(labelled.dump()).applied->token, "");
}

// Its places and its template are known of that version only.
TEST(Manifest, AJobIsResumedOnlyInTheVersionThatWasLookedAt) {
  const auto specs = ParseJobs(kMpi);
  ASSERT_TRUE(specs);
  const Json object = Applied(specs->front().document);
  for (const Json& one : {object, Completed(object, kSettings)}) {
    const auto resume =
        ToRequest({.kind = Write::Kind::kResume, .replicas = 2}, testing::Job(one.dump()), kSettings);
    ASSERT_TRUE(resume);
    EXPECT_EQ(Json::parse(resume->body)[1],
              Json::parse(R"({"op": "test", "path": "/metadata/resourceVersion", "value": "7"})"));
  }
}

}  // namespace
}  // namespace voda::kubeflow
