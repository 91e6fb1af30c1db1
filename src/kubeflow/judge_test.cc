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

TEST(Judge, ANameThatHasItsTimeAlreadyNeedsNoRoomForIt) {
  Json object = Applied();
  object["metadata"]["name"] =
      "resnet50-imagenet-with-augmentation-20260101-120000";  // 51, with -worker-NNNN 63
  EXPECT_EQ(Judged(object).why, "");
  object["metadata"]["name"] = "resnet50-imagenet-with-augmentation1-20260101-120000";
  EXPECT_NE(Judged(object).why.find("52 characters, the limit is 51: the number of the worker is added"),
            std::string::npos)
      << Judged(object).why;
}

TEST(AmountPerWorker, CountsTheResourceOfTheType) {
  Json object = Applied();
  object.erase("status");
  auto& pod = object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  pod["containers"][0]["resources"] = {{"limits", {{"habana.ai/gaudi", 8}, {"cpu", "3500m"}}},
                                       {"requests", {{"cpu", "1"}, {"example.com/npu", "2"}}}};
  pod["containers"].push_back({{"name", "side"}, {"resources", {{"requests", {{"cpu", 2}}}}}});
  const auto spec = ParseJobs(object.dump(), {}, RunAs::kContainers);
  ASSERT_TRUE(spec) << spec.error().message;
  const auto amount = [&](const char* resource) { return AmountPerWorker(spec->front(), "t", resource); };
  EXPECT_EQ(*amount("habana.ai/gaudi"), 8);
  EXPECT_EQ(*amount("cpu"), 6) << "limits first, and every container";
  EXPECT_EQ(*amount("example.com/npu"), 2);
  EXPECT_EQ(*amount("nvidia.com/gpu"), 1) << "a worker that asks for none holds one slot";
  ASSERT_FALSE(amount("other.com/x"));
  EXPECT_EQ(amount("other.com/x").error().message,
            "resnet: nodes with vodascheduler/accelerator: t are counted in other.com/x, of which a Worker "
            "asks for "
            "0; give its container limits other.com/x: 1 to 1024");
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

TEST(Judge, OneForAnotherQueueIsNotSubmittedThroughVoda) {
  Json object = Applied();
  for (const char* key :
       {"uid", "resourceVersion", "generation", "creationTimestamp", "ownerReferences", "managedFields"})
    object["metadata"].erase(key);
  object.erase("status");
  auto spec = ParseJobs(object.dump(), {}, RunAs::kContainers);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(OfAnotherQueue(spec->front()), "");
  object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "theirs";
  spec = ParseJobs(object.dump(), {}, RunAs::kContainers);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_NE(OfAnotherQueue(spec->front()).find("kueue.x-k8s.io/queue-name: theirs"), std::string::npos);
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

  // Applied once more as its user wrote it, it has lost the variables and is still the job that runs.
  for (auto& container : taken["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"])
    container.erase("env");
  const Judgement again = Judged(taken);
  EXPECT_EQ(again.why, "");
  EXPECT_EQ(again.found.token, "");
  EXPECT_EQ(again.found.state, R"({"job":"team/resnet"})");
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
