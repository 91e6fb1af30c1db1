#include "kubeflow/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

JobObject Applied(const std::string& document) {
  JobObject job;
  job.kind = JobKind::kMpiJob;
  job.head = {"team", "mnist", "uid-1", "7"};
  job.document = document;
  return job;
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
  JobObject job = Applied(specs->front().document);
  kube::JsonPatch patch;
  patch.TestUid("uid-1");
  ASSERT_TRUE(AddAdoption(job, kSettings, patch));
  const Json operations = Json::parse(patch.Text());
  EXPECT_EQ(operations[0], Json::parse(R"({"op": "test", "path": "/metadata/uid", "value": "uid-1"})"));
  EXPECT_EQ(operations[1],
            Json::parse(R"({"op": "test", "path": "/metadata/resourceVersion", "value": "7"})"));
  Json rest = Json::array();
  for (std::size_t i = 2; i < operations.size(); ++i) rest.push_back(operations[i]);
  job.document = Json::parse(job.document).patch(rest).dump();
  EXPECT_EQ(TokenOf(job), "secret");
  kube::JsonPatch again;
  ASSERT_TRUE(AddAdoption(job, kSettings, again));
  EXPECT_TRUE(again.empty());
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
  EXPECT_EQ(TokenOf(Applied(NewObject(specs->front(), "mnist", settings))), "secret");
}

TEST(Manifest, RubbishIsAnError) {
  kube::JsonPatch patch;
  EXPECT_FALSE(AddAdoption(Applied("[1"), kSettings, patch));
  EXPECT_EQ(TokenOf(Applied("{}")), "");
}

}  // namespace
}  // namespace voda::kubeflow
