#include "kubeflow/adoption.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kubeflow/manifest.h"
#include "kubeflow/test_objects.h"

namespace voda::kubeflow {
namespace {

using Json = nlohmann::json;

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

JobObject Seen(const Json& object, const JobObject* before = nullptr) {
  return testing::Job(object.dump(), JobKind::kPyTorchJob, before);
}

std::optional<FoundJob> Classified(const Json& object) {
  return Classify(Seen(object));
}

TEST(Classify, AJobThatOptsInIsFound) {
  const auto found = Classified(Applied());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->refusal, "");
  EXPECT_EQ(found->name, "team/resnet");
  EXPECT_EQ(found->created, 1767225600);
  EXPECT_EQ(found->spec->limits.max, 4);
  EXPECT_EQ(found->token, "");
}

TEST(Classify, ANameThatHasItsTimeAlreadyNeedsNoRoomForIt) {
  Json object = Applied();
  object["metadata"]["name"] =
      "resnet50-imagenet-with-augmentation-20260101-120000";  // 51 characters; with -worker-NNNN 63
  EXPECT_EQ(Classified(object)->refusal, "");
  object["metadata"]["name"] = "resnet50-imagenet-with-augmentation1-20260101-120000";
  EXPECT_NE(
      Classified(object)->refusal.find("52 characters, the limit is 51: the number of the worker is added"),
      std::string::npos)
      << Classified(object)->refusal;
}

TEST(OfAnotherVersion, NamesApiVersionAndFlag) {
  JobSpec spec;
  spec.kind = JobKind::kMpiJob;
  spec.api_version = "kubeflow.org/v1";
  EXPECT_EQ(OfAnotherVersion(spec, "v1"), "");
  EXPECT_EQ(
      OfAnotherVersion(spec, "v2beta1"),
      "apiVersion: kubeflow.org/v1: this Voda schedules MPIJobs of kubeflow.org/v2beta1; change apiVersion, "
      "or have whoever runs Voda start it with --mpi-version v1");
  spec.kind = JobKind::kPyTorchJob;
  EXPECT_EQ(OfAnotherVersion(spec, "v2beta1"), "");
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

TEST(Classify, OthersAreLeftAlone) {
  Json object = Applied();
  object["metadata"].erase("labels");
  EXPECT_FALSE(Classified(object));
  object = Applied();
  object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "theirs";
  EXPECT_FALSE(Classified(object)->spec);
  EXPECT_NE(Classified(object)->refusal.find("kueue.x-k8s.io/queue-name: theirs"), std::string::npos);
  object = Applied();
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  EXPECT_FALSE(Classified(object));
}

TEST(Classify, OneForAnotherQueueIsNotSubmittedThroughVoda) {
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

TEST(Classify, WhatSpeaksAgainstIt) {
  Json object = Applied();
  object["spec"]["runPolicy"]["suspend"] = false;
  EXPECT_NE(Classified(object)->refusal.find("spec.runPolicy.suspend: true"), std::string::npos);
  object = Applied();
  object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["hostNetwork"] = true;
  EXPECT_NE(Classified(object)->refusal.find("hostNetwork"), std::string::npos);
  object = Applied();
  object["spec"]["elasticPolicy"]["minReplicas"] = 9;
  EXPECT_NE(Classified(object)->refusal, "");
}

TEST(Classify, ARefusalNamesTheAnnotation) {
  Json object = Applied();
  object["metadata"]["annotations"]["note"] = std::string(70'000, 'x');
  EXPECT_NE(Classified(object)->refusal.find("metadata.annotations.note: a text of 70000 bytes"),
            std::string::npos)
      << Classified(object)->refusal;
  object["metadata"]["annotations"] = {{"vodascheduler/priority", "high"}};
  EXPECT_NE(Classified(object)->refusal.find("annotations[\"vodascheduler/priority\"]"), std::string::npos)
      << Classified(object)->refusal;
}

TEST(Classify, OneThatWasTakenInIsNotAskedAgain) {
  // This is an object that Voda made and started: the template has its gate, its variables and its state.
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
  const auto found = Classified(taken);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->refusal, "");
  EXPECT_EQ(found->token, "secret");
  EXPECT_EQ(found->state, JobState());

  // Its user applies it again as before: it has lost the variables and is still the job that runs.
  for (auto& container : taken["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"])
    container.erase("env");
  const auto again = Classified(taken);
  EXPECT_EQ(again->refusal, "");
  EXPECT_EQ(again->token, "");
  EXPECT_EQ(again->state, JobState());
}

TEST(Classify, ACopyOfAnObjectIsAJobOfItsOwn) {
  Json object = Applied();
  object["metadata"]["annotations"] = {{"vodascheduler/state", R"({"job":"team/original","priority":5})"}};
  auto& pod = object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  pod["containers"][0]["env"] = {{{"name", "VODA_PROGRESS_TOKEN"}, {"value", "of the original"}}};
  const auto copy = Classified(object);
  EXPECT_EQ(copy->refusal, "");
  EXPECT_EQ(copy->token, "");
  EXPECT_FALSE(copy->state);
  object["spec"]["runPolicy"]["suspend"] = false;
  EXPECT_NE(Classified(object)->refusal.find("spec.runPolicy.suspend: true"), std::string::npos);
  object["metadata"]["annotations"]["vodascheduler/state"] = R"({"job":"team/resnet","priority":5})";
  EXPECT_EQ(Classified(object)->state->priority, 5);
}

TEST(Classify, AnEndIsToldWithItsTime) {
  Json object = Applied();
  object["status"] = Json::parse(R"({"completionTime": "2026-01-01T00:01:00Z", "conditions": [
    {"type": "Failed", "status": "True", "message": "backoff limit"}]})");
  const auto found = Classified(object);
  EXPECT_EQ(found->end, FoundJob::End::kFailed);
  EXPECT_EQ(found->ended, 1767225660);
  EXPECT_EQ(found->message, "backoff limit");
}

// A user may set the variable by which Voda recognizes objects that it started.
TEST(Classify, ATokenWithoutAStateDoesNotGoPastTheRules) {
  Json object = Applied();
  auto& pod = object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  pod["hostNetwork"] = true;
  pod["containers"][0]["env"] = {{{"name", "VODA_PROGRESS_TOKEN"}, {"value", "x"}}};
  EXPECT_NE(Classified(object)->refusal.find("hostNetwork"), std::string::npos)
      << Classified(object)->refusal;
}

// Both marks of a job that was taken in stand on the object, and whoever makes the object can write them.
TEST(Classify, ForgedMarksDoNotGoPastTheRules) {
  Json object = Applied();
  object["metadata"]["annotations"] = {{"vodascheduler/state", R"({"job":"team/resnet"})"}};
  auto& pod = object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"];
  pod["hostPID"] = true;
  pod["containers"][0]["securityContext"] = {{"privileged", true}};
  pod["containers"][0]["env"] = {{{"name", "VODA_PROGRESS_TOKEN"}, {"value", "x"}}};
  for (const bool suspended : {true, false}) {
    object["spec"]["runPolicy"]["suspend"] = suspended;
    const std::string refusal = Classified(object)->refusal;
    EXPECT_NE(refusal.find("hostPID"), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("privileged"), std::string::npos) << refusal;
  }
}

TEST(Possible, AnHonestStateIsLeftAsItIs) {
  JobState state;
  state.held = true;
  state.priority = 7;
  state.limits = {1, 2, 64};
  state.waited = 1000.5;
  state.ran = 2599.5;
  state.gpu_seconds = 2599.5 * 64 * 8;
  state.attained = 1e5;
  state.waiting = 30;
  state.running = 2500;
  state.work_done = 2599.5 * 20;
  state.accounted = 13'600;
  state.first_started = 10'100;
  state.last_change = 13'599;
  state.last_start = 13'000;
  state.starts = 3;
  state.epoch = 4;
  state.total_epochs = 10;
  state.reported = true;
  EXPECT_EQ(Possible(state, 10'000, 13'700), state);
  EXPECT_EQ(Possible(state, 10'060, 13'700), state) << "its object came a minute after it was submitted";
}

// Tiresias promotes who has waited for long, and orders by the first start: neither may be made up.
TEST(Possible, AJobIsNotOlderThanItsObject) {
  JobState forged;
  forged.waited = forged.waiting = forged.ran = forged.running = 1e9;
  forged.gpu_seconds = forged.attained = forged.work_done = 1e308;
  forged.accounted = 1e12;
  forged.first_started = 1;
  forged.last_change = forged.last_start = 1e12;
  const double created = 10'000;
  const double now = 13'600;
  JobState state = Possible(forged, created, now);
  EXPECT_EQ(state.accounted, now);
  EXPECT_LE(state.ran + state.waited, now - created + 120);
  EXPECT_LE(state.running + state.waiting, now - created + 120);
  EXPECT_LE(state.attained, 1e15);
  EXPECT_LE(state.gpu_seconds, 1e15);
  EXPECT_LE(state.work_done, 1e12);
  EXPECT_EQ(state.first_started, created);
  EXPECT_EQ(state.last_change, now);
  EXPECT_EQ(state.last_start, now);

  // Who says that nothing was counted for long gets that time as waiting, and no more.
  forged.running = forged.ran = 0;
  forged.accounted = 1;
  state = Possible(forged, created, now);
  EXPECT_LE(state.waiting, 120);
  EXPECT_LE(state.waited, 120);

  // An object from the future, where the clock of Voda is behind.
  state = Possible(forged, now + 50, now);
  EXPECT_LE(state.waiting, 120);
  EXPECT_EQ(state.first_started, now + 50);
}

// What Voda itself writes into the template of a launcher breaks no rule.
TEST(Classify, ALauncherThatWasStartedWithTaintsIsStillAccepted) {
  const Json plain = Json::parse(R"({
    "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "hvd", "namespace": "team"},
    "spec": {"mpiReplicaSpecs": {
      "Launcher": {"replicas": 1, "template": {"spec": {"containers": [{"name": "l", "image": "hvd"}]}}},
      "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "w", "image": "hvd"}]}}}}}})");
  const auto spec = ParseJobs(plain.dump(), {}, RunAs::kContainers);
  ASSERT_TRUE(spec) << spec.error().message;
  ManifestSettings settings;
  settings.token = "secret";
  settings.state = R"({"job":"team/hvd"})";
  settings.steering = Steering::kTaints;
  Json taken = Json::parse(NewObject(spec->front(), "hvd", settings));
  EXPECT_EQ(Classify(testing::Job(taken.dump()))->refusal, "");
  auto& tolerations = taken["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["tolerations"];
  ASSERT_EQ(tolerations.size(), 1U);
  taken["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["tolerations"] = tolerations;
  EXPECT_NE(Classify(testing::Job(taken.dump()))->refusal.find("Worker"), std::string::npos)
      << "the taints keep workers where they belong";
}

TEST(Sightings, AThousandChangesOfTheStatusAreNotClassified) {
  Sightings sightings;
  Json object = Applied();
  JobObject job = Seen(object);
  ASSERT_TRUE(sightings.Look(job));
  for (int i = 0; i < 1000; ++i) {
    object["metadata"]["resourceVersion"] = std::to_string(8 + i);
    object["status"]["conditions"][0]["lastUpdateTime"] = std::to_string(i);
    object["status"]["replicaStatuses"]["Worker"]["active"] = i;
    job = Seen(object, &job);
    EXPECT_FALSE(sightings.Look(job));
  }
  EXPECT_EQ(sightings.classified(), 1U);
  object["spec"]["elasticPolicy"]["maxReplicas"] = 8;
  object["metadata"]["generation"] = 3;
  const auto changed = sightings.Look(Seen(object, &job));
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->spec->limits.max, 8);
  EXPECT_EQ(sightings.classified(), 2U);
}

TEST(Sightings, TheSameIsNotSaidTwiceAndOursNever) {
  Sightings sightings;
  Json object = Applied();
  object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "theirs";
  ASSERT_TRUE(sightings.Look(Seen(object)));
  object["metadata"]["generation"] = 3;  // its queue starts it
  object["spec"]["runPolicy"]["suspend"] = false;
  EXPECT_FALSE(sightings.Look(Seen(object))) << "still left to the other queue";
  sightings.ForgetOthers();
  EXPECT_TRUE(sightings.Look(Seen(object)));

  object = Applied();
  sightings.Forget("team/resnet", JobKind::kPyTorchJob);
  sightings.MarkOurs("team/resnet", JobKind::kPyTorchJob);
  sightings.ForgetOthers();
  EXPECT_FALSE(sightings.Look(Seen(object)));
  sightings.Forget("team/resnet", JobKind::kPyTorchJob);
  EXPECT_TRUE(sightings.Look(Seen(object)));
}

}  // namespace
}  // namespace voda::kubeflow
