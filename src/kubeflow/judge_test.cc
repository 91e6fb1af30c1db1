#include "kubeflow/judge.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kubeflow/manifest.h"

namespace voda::kubeflow {
namespace {

using Json = nlohmann::json;
using Verdict = Judgement::Verdict;

Json Applied() {
  return Json::parse(R"({
    "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
    "metadata": {"name": "resnet", "namespace": "team", "uid": "u1", "resourceVersion": "7", "generation": 2,
                 "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"vodascheduler/queue": "default"},
                 "managedFields": [{"manager": "kubectl"}], "ownerReferences": [{"uid": "x"}]},
    "spec": {"runPolicy": {"suspend": true},
             "elasticPolicy": {"minReplicas": 1, "maxReplicas": 4},
             "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {
                "containers": [{"name": "pytorch", "image": "torch"}]}}}}},
    "status": {"conditions": [{"type": "Suspended", "status": "True"}]}})");
}

Judgement Judged(const Json& object) {
  std::string text = object.dump();
  kube::AddPadding(text);
  const auto job = DecodeJob({"kubeflow.org", "v1", "pytorchjobs", true}, JobKind::kPyTorchJob,
                             {"team", "resnet", "u1", "7"}, text);
  EXPECT_TRUE(job);
  return job ? Judge(*job, {}) : Judgement{};
}

TEST(Judge, AJobThatOptsInIsFound) {
  const Judgement judged = Judged(Applied());
  ASSERT_EQ(judged.verdict, Verdict::kFound);
  EXPECT_EQ(judged.why, "");
  EXPECT_EQ(judged.found.name, "team/resnet");
  EXPECT_EQ(judged.found.created, 1767225600);
  EXPECT_EQ(judged.found.spec.max, 4);
  EXPECT_EQ(judged.found.token, "");
}

TEST(Judge, OthersAreLeftAlone) {
  Json object = Applied();
  object["metadata"].erase("labels");
  EXPECT_EQ(Judged(object).verdict, Verdict::kNotOurs);
  object = Applied();
  object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "theirs";
  EXPECT_EQ(Judged(object).verdict, Verdict::kLeftAlone);
  EXPECT_NE(Judged(object).why.find("kueue.x-k8s.io/queue-name: theirs"), std::string::npos);
  object = Applied();
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_EQ(Judged(object).verdict, Verdict::kNotOurs);
}

TEST(Judge, WhatSpeaksAgainstIt) {
  Json object = Applied();
  object["spec"]["runPolicy"]["suspend"] = false;
  EXPECT_NE(Judged(object).why.find("spec.runPolicy.suspend: true"), std::string::npos);
  object = Applied();
  object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["hostNetwork"] = true;
  EXPECT_NE(Judged(object).why.find("hostNetwork"), std::string::npos);
  object = Applied();
  object["spec"]["elasticPolicy"]["minReplicas"] = 9;
  EXPECT_NE(Judged(object).why, "");
}

TEST(Judge, OneThatWasTakenInIsNotAskedAgain) {
  // As Voda makes it, started: the template has its gate, its variables and its state.
  Json object = Applied();
  object["metadata"].erase("managedFields");
  object.erase("status");
  const auto spec = ParseJobs(
      [&] {
        Json plain = object;
        for (const char* key :
             {"uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences"})
          plain["metadata"].erase(key);
        return plain.dump();
      }(),
      {}, RunAs::kContainers);
  ASSERT_TRUE(spec) << spec.error().message;
  ManifestSettings settings;
  settings.token = "secret";
  settings.state = R"({"job":"team/resnet"})";
  Json taken = Json::parse(NewObject(spec->front(), "resnet", settings));
  taken["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  taken["spec"]["runPolicy"]["suspend"] = false;
  const Judgement judged = Judged(taken);
  ASSERT_EQ(judged.verdict, Verdict::kFound);
  EXPECT_EQ(judged.why, "");
  EXPECT_EQ(judged.found.token, "secret");
  EXPECT_EQ(judged.found.state, R"({"job":"team/resnet"})");
}

TEST(Judge, AnEndIsToldWithItsTime) {
  Json object = Applied();
  object["status"] = Json::parse(R"({"completionTime": "2026-01-01T00:01:00Z", "conditions": [
    {"type": "Failed", "status": "True", "message": "backoff limit"}]})");
  const Judgement judged = Judged(object);
  EXPECT_EQ(judged.found.end, FoundJob::End::kFailed);
  EXPECT_EQ(judged.found.ended, 1767225660);
  EXPECT_EQ(judged.found.message, "backoff limit");
}

}  // namespace
}  // namespace voda::kubeflow
