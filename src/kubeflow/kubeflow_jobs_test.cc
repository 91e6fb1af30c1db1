// Jobs of Kubernetes as the service sees them, from the bytes of a watch to the writes that bring a pod to
// its node, with an API server that the test stands for.
#include "kubeflow/kubeflow_jobs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/fake_sink.h"
#include "document/documents.h"
#include "kube/fake_io.h"
#include "kubeflow/adoption.h"
#include "kubeflow/step.h"
#include "kubeflow/submissions.h"
#include "kubeflow/test_objects.h"

namespace voda::kubeflow {
namespace {

using Json = nlohmann::json;

Json Resnet() {
  return Json::parse(R"({
    "apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
    "metadata": {"name": "resnet", "namespace": "team", "uid": "u1", "resourceVersion": "20", "generation": 1,
                 "creationTimestamp": "2023-11-14T22:00:00Z", "labels": {"vodascheduler/queue": "default"}},
    "spec": {"runPolicy": {"suspend": true}, "elasticPolicy": {"minReplicas": 1, "maxReplicas": 4},
             "pytorchReplicaSpecs": {"Worker": {"replicas": 1, "template": {"spec": {
                "containers": [{"name": "pytorch", "image": "torch"}]}}}}},
    "status": {"conditions": [{"type": "Created", "status": "True"}]}})");
}

Json Worker() {
  return Json::parse(R"({
    "metadata": {"name": "resnet-worker-0", "namespace": "team", "uid": "p0", "resourceVersion": "30",
                 "labels": {"training.kubeflow.org/job-name": "resnet",
                            "training.kubeflow.org/replica-type": "worker",
                            "training.kubeflow.org/replica-index": "0"}},
    "spec": {"schedulingGates": [{"name": "vodascheduler/placement"}], "containers": [{"name": "pytorch"}]},
    "status": {"phase": "Pending"}})");
}

// How many texts were parsed so far, by either reader.
std::uint64_t Parses() {
  return kube::JsonDocument::TextsRead() + TextsRead();
}

class KubeflowJobsTest : public ::testing::Test {
 protected:
  KubeflowJobsTest() {
    jobs_ = KubeflowJobs::Create(io_, counters_, {}, sink_, [] { return true; });
    jobs_->Start();
    io_.Answer(404, "");  // no settings yet
  }
  ~KubeflowJobsTest() override { jobs_.reset(); }

  // The first lists: one node with eight GPUs, and these jobs.
  void Begin(const std::vector<Json>& applied = {}) {
    for (int lists = 0; lists < 4; ++lists) {
      const auto list = std::find_if(io_.open.begin(), io_.open.end(),
                                     [](const auto& one) { return one.request.verb == kube::Verb::kList; });
      ASSERT_NE(list, io_.open.end());
      Json items = Json::array();
      if (list->request.path.find("/nodes") != std::string::npos) {
        items.push_back(Json::parse(R"({"metadata": {"name": "n", "uid": "n", "resourceVersion": "1",
          "labels": {"vodascheduler/accelerator": "a100"}}, "status": {"allocatable": {"nvidia.com/gpu": "8"},
          "conditions": [{"type": "Ready", "status": "True"}]}})"));
      } else if (list->request.path.find("/pytorchjobs") != std::string::npos) {
        items = applied;
      }
      kube::Reply reply{.code = 200,
                        .body = Json{{"metadata", {{"resourceVersion", "10"}}}, {"items", items}}.dump()};
      kube::AddPadding(reply.body);
      const auto done = std::move(list->done);
      io_.open.erase(list);
      done(std::move(reply));
    }
    io_.RunPosted();
    ASSERT_EQ(sink_.ready.size(), 1U);
  }

  void Watch(const char* plural, const char* type, const Json& object) {
    const auto watch = std::find_if(io_.open.begin(), io_.open.end(), [&](const auto& one) {
      return one.request.verb == kube::Verb::kWatch && one.request.path.find(plural) != std::string::npos;
    });
    ASSERT_NE(watch, io_.open.end());
    EXPECT_TRUE(watch->stream.on_data(Json{{"type", type}, {"object", object}}.dump() + "\n"));
    io_.RunPosted();
  }

  // Begins, and a user applies this job, which the service then accepts.
  void BeginWithAccepted(const Json& object) {
    Begin();
    Watch("/pytorchjobs", "ADDED", object);
    ASSERT_EQ(sink_.found.size(), 1U);
    jobs_->AddJob(
        {.id = 1, .name = "team/resnet", .gpu_type = "a100", .token = "secret", .spec = sink_.found[0].spec},
        false);
    io_.RunPosted();
  }

  // The oldest write that is not answered, about this path.
  std::string Written(const std::string& path) {
    for (const auto& one : io_.open) {
      if (one.request.verb == kube::Verb::kPatch && one.request.path == path) return one.request.body;
    }
    return {};
  }
  void Answer(const std::string& path, const Json& object) {
    const auto at = std::find_if(io_.open.begin(), io_.open.end(),
                                 [&](const auto& one) { return one.request.path == path; });
    ASSERT_NE(at, io_.open.end());
    kube::Reply reply{.code = 200, .body = object.dump()};
    kube::AddPadding(reply.body);
    const auto done = std::move(at->done);
    io_.open.erase(at);
    done(std::move(reply));
    io_.RunPosted();
  }

  static constexpr const char* kJobPath = "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs/resnet";
  static constexpr const char* kPodPath = "/api/v1/namespaces/team/pods/resnet-worker-0";

  kube::testing::FakeIo io_;
  kube::Counters counters_;
  voda::testing::FakeSink sink_;
  std::unique_ptr<KubeflowJobs> jobs_;
};

TEST_F(KubeflowJobsTest, WhatIsThereAtTheStartComesAtOnce) {
  Begin({Resnet()});
  const auto& [contents, nodes] = sink_.ready.front();
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].gpu_type, "a100");
  EXPECT_EQ(std::get<NodeAdded>(nodes[0].event).node.gpus, 8);
  ASSERT_EQ(contents.jobs.size(), 1U);
  EXPECT_EQ(contents.jobs[0].name, "team/resnet");
  EXPECT_TRUE(sink_.found.empty());
}

TEST_F(KubeflowJobsTest, AJobOfAnotherQueueIsLeftAlone) {
  Begin();
  Json object = Resnet();
  object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "theirs";
  Watch("/pytorchjobs", "ADDED", object);
  EXPECT_TRUE(sink_.found.empty());
  EXPECT_TRUE(std::any_of(io_.open.begin(), io_.open.end(), [](const auto& one) {
    return one.request.body.find("LeftAlone") != std::string::npos;
  })) << "its user is told";
}

TEST_F(KubeflowJobsTest, ARequestIsKnownByTheObjectThatItMadeAndNotByACopyOfIt) {
  Json object = Resnet();
  object["metadata"]["annotations"] = {{"vodascheduler/state", R"({"job":"team/resnet"})"},
                                       {"vodascheduler/submission", Submissions::Text({"key", "body"}, 0)}};
  Json copy = object;
  copy["metadata"]["name"] = "copy";
  copy["metadata"]["uid"] = "u2";
  copy["metadata"]["creationTimestamp"] = "2023-11-14T22:10:00Z";
  Begin({object, copy});
  EXPECT_EQ(sink_.ready.front().first.jobs.size(), 2U);
  const auto known = jobs_->ledger().Find("key").value();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->body_hash, "body");
  EXPECT_EQ(known->jobs, std::vector<std::string>{"team/resnet"});
}

// Somebody who guesses the key of another writes it on an object of their own.
TEST_F(KubeflowJobsTest, ARequestIsNotKnownByAnObjectOfAnotherNamespace) {
  const auto object = [](const char* name_space, const char* uid, const char* body) {
    Json made = Resnet();
    made["metadata"]["namespace"] = name_space;
    made["metadata"]["uid"] = uid;
    made["metadata"]["annotations"] = {
        {"vodascheduler/state", fmt::format(R"({{"job":"{}/resnet"}})", name_space)},
        {"vodascheduler/submission", Submissions::Text({"nightly team, eve", body}, 0)}};
    return made;
  };
  Begin({object("mallory", "u2", "forged")});
  EXPECT_FALSE(jobs_->ledger().Find("nightly team, eve").value()) << "or Eve's job is never made";
  Watch("/pytorchjobs", "ADDED", object("team", "u1", "body"));
  Watch("/pytorchjobs", "ADDED", object("zoe", "u3", "forged"));
  const auto known = jobs_->ledger().Find("nightly team, eve").value();
  ASSERT_TRUE(known);
  EXPECT_EQ(known->body_hash, "body");
  EXPECT_EQ(known->jobs, std::vector<std::string>{"team/resnet"});
}

TEST_F(KubeflowJobsTest, AForgedPastIsBelievedAsFarAsItIsPossible) {
  Json object = Resnet();
  object["metadata"]["annotations"] = {
      {"vodascheduler/state",
       R"({"job":"team/resnet","priority":3,"waited":1e9,"waiting":1e9,"at":1e12,"firstStarted":1})"}};
  Begin({object});
  const auto& contents = sink_.ready.front().first;
  ASSERT_EQ(contents.jobs.size(), 1U);
  const JobState& state = contents.jobs[0].state.value();
  const double now = std::chrono::duration<double>(io_.Wall().time_since_epoch()).count();
  EXPECT_EQ(state.priority, 3) << "whoever may change a job may change that";
  EXPECT_LE(state.waiting, now - contents.jobs[0].created + 120);
  EXPECT_EQ(state.first_started, contents.jobs[0].created);
  EXPECT_LE(state.accounted, now);
}

// kubectl apply, the first pod, and the pod on its node: each version of an object is parsed once.
TEST_F(KubeflowJobsTest, AnObjectIsParsedOnceFromKubectlToItsPod) {
  Begin();
  const std::uint64_t before = Parses();
  Watch("/pytorchjobs", "ADDED", Resnet());
  ASSERT_EQ(sink_.found.size(), 1U);
  EXPECT_EQ(sink_.found[0].spec->limits.max, 4);
  EXPECT_EQ(sink_.found[0].refusal, "");
  jobs_->AddJob(
      {.id = 1, .name = "team/resnet", .gpu_type = "a100", .token = "secret", .spec = sink_.found[0].spec},
      false);
  jobs_->PortFor("a100").Execute({.id = 7, .kind = ActionKind::kStart, .job = "team/resnet", .workers = {0}},
                                 {{.name = "n", .gpus = 8}});
  io_.RunPosted();
  io_.Pass(kube::Duration(2'000));
  const Json resume = Json::parse(Written(kJobPath), nullptr, false);
  ASSERT_TRUE(resume.is_array());
  EXPECT_EQ(Parses() - before, 1U) << "the line of the watch, and nothing else";

  // What the API server makes of the write, and then the operator.
  Json object = Resnet().patch(resume);
  object["metadata"]["resourceVersion"] = "21";
  object["metadata"]["generation"] = 2;
  Answer(kJobPath, object);
  Watch("/pytorchjobs", "MODIFIED", object);
  Watch("/pods", "ADDED", Worker());
  EXPECT_NE(Written(kPodPath), "");
  EXPECT_EQ(Parses() - before, 4U) << "one for each answer and each event";

  Json pod = Worker();
  pod["metadata"]["resourceVersion"] = "31";
  pod["spec"] = Json::parse(R"({"nodeName": "n", "containers": [{"name": "pytorch"}]})");
  Answer(kPodPath, pod);
  Watch("/pods", "MODIFIED", pod);
  ASSERT_FALSE(sink_.posted.empty());
  EXPECT_EQ(std::get<ActionDone>(sink_.posted.back()).id, 7U);
}

// The rules are checked whenever the object changes: its template as much as the one that was accepted.
TEST_F(KubeflowJobsTest, AnAcceptedJobWhoseTemplateIsChangedAgainstTheRulesIsNotStarted) {
  ASSERT_NO_FATAL_FAILURE(BeginWithAccepted(Resnet()));
  Json object = Resnet();
  object["metadata"]["resourceVersion"] = "21";
  object["metadata"]["generation"] = 2;
  object["spec"]["elasticPolicy"]["minReplicas"] = 9;  // beside it, so that the spec cannot be read at all
  object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["hostPID"] = true;
  Watch("/pytorchjobs", "MODIFIED", object);
  EXPECT_EQ(sink_.gone, std::vector<std::string>{"team/resnet"});
  ASSERT_EQ(sink_.found.size(), 2U);
  EXPECT_NE(sink_.found[1].refusal, "");
  jobs_->PortFor("a100").Execute({.id = 7, .kind = ActionKind::kStart, .job = "team/resnet", .workers = {0}},
                                 {{.name = "n", .gpus = 8}});
  io_.RunPosted();
  io_.Pass(kube::Duration(5'000));
  EXPECT_EQ(Written(kJobPath), "");
}

// Nobody stops it: it is only Voda's no more, and the Event and the condition say so.
TEST_F(KubeflowJobsTest, AJobThatLosesItsLabelIsReleased) {
  ASSERT_NO_FATAL_FAILURE(BeginWithAccepted(Resnet()));
  Json object = Resnet();
  object["metadata"]["resourceVersion"] = "21";
  object["metadata"].erase("labels");
  Watch("/pytorchjobs", "MODIFIED", object);
  EXPECT_EQ(sink_.gone, std::vector<std::string>{"team/resnet"});
  EXPECT_TRUE(std::any_of(io_.open.begin(), io_.open.end(), [](const auto& one) {
    return one.request.body.find("Released") != std::string::npos;
  }));
}

TEST_F(KubeflowJobsTest, AJobThatHasEndedIsNotScheduledAnyMore) {
  ASSERT_NO_FATAL_FAILURE(BeginWithAccepted(Resnet()));
  Json object = Resnet();
  object["metadata"]["resourceVersion"] = "21";
  object["spec"]["runPolicy"]["suspend"] = false;
  object["status"] = Json::parse(R"({"completionTime": "2023-11-14T22:10:00Z", "conditions": [
    {"type": "vodascheduler/Scheduled", "status": "True", "reason": "Started", "message": "on n"},
    {"type": "Succeeded", "status": "True"}]})");
  Watch("/pytorchjobs", "MODIFIED", object);
  io_.Pass(kube::Duration(5'000));
  const std::string written = Written(std::string(kJobPath) + "/status");
  EXPECT_NE(written.find(R"("status":"False","reason":"Completed")"), std::string::npos) << written;
}

// It ended while nobody led, and the replica that leads now has never heard of it.
TEST_F(KubeflowJobsTest, AJobThatHadEndedBeforeIsNotScheduledAnyMore) {
  Json object = Resnet();
  object["spec"]["runPolicy"]["suspend"] = false;
  object["metadata"]["annotations"] = {{"vodascheduler/state", R"({"job":"team/resnet"})"}};
  object["status"] = Json::parse(R"({"completionTime": "2023-11-14T22:10:00Z", "conditions": [
    {"type": "vodascheduler/Scheduled", "status": "True", "reason": "Started", "message": "on n"},
    {"type": "Succeeded", "status": "True"}]})");
  Begin({object});
  io_.Pass(kube::Duration(5'000));
  const std::string written = Written(std::string(kJobPath) + "/status");
  EXPECT_NE(written.find(R"("status":"False","reason":"Completed")"), std::string::npos) << written;
}

// It runs, and our condition says so.
Json Running() {
  Json object = Resnet();
  object["metadata"]["resourceVersion"] = "21";
  object["spec"]["runPolicy"]["suspend"] = false;
  object["status"] = Json::parse(R"({"conditions": [
    {"type": "vodascheduler/Scheduled", "status": "True", "reason": "Started", "message": "on n"},
    {"type": "Running", "status": "True"}]})");
  return object;
}

TEST_F(KubeflowJobsTest, AJobThatGoesToAnotherQueueIsNotScheduledByUsAnyMore) {
  ASSERT_NO_FATAL_FAILURE(BeginWithAccepted(Resnet()));
  Json object = Running();
  Watch("/pytorchjobs", "MODIFIED", object);
  object["metadata"]["resourceVersion"] = "22";
  object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "theirs";
  Watch("/pytorchjobs", "MODIFIED", object);
  io_.Pass(kube::Duration(5'000));
  const std::string written = Written(std::string(kJobPath) + "/status");
  EXPECT_NE(written.find(R"("status":"False","reason":"LeftAlone")"), std::string::npos) << written;
}

TEST_F(KubeflowJobsTest, AJobThatWentWhileNobodyLedIsNotScheduledByUsAnyMore) {
  Json object = Running();
  object["metadata"].erase("labels");
  Begin({object});
  io_.Pass(kube::Duration(5'000));
  const std::string written = Written(std::string(kJobPath) + "/status");
  EXPECT_NE(written.find(R"("status":"False","reason":"Released")"), std::string::npos) << written;
}

// Pods are named by their operators, so what is named otherwise was labelled by somebody else.
TEST_F(KubeflowJobsTest, TheGpusOfAPodThatOnlyLooksLikeAWorkerAreNotOffered) {
  ASSERT_NO_FATAL_FAILURE(BeginWithAccepted(Resnet()));
  int left = 8;
  for (const char* name : {"resnet-worker-7", "resnet-worker-00", "resnet-master-0", "other"}) {
    Json pod = Worker();
    pod["metadata"]["name"] = name;
    pod["metadata"]["uid"] = name;
    pod["metadata"]["labels"]["training.kubeflow.org/replica-type"] =
        std::string_view(name).find("master") == std::string_view::npos ? "worker" : "master";
    pod["spec"] = Json::parse(R"({"nodeName": "n", "containers": [
      {"name": "c", "resources": {"requests": {"nvidia.com/gpu": 2}}}]})");
    Watch("/pods", "ADDED", pod);
    ASSERT_FALSE(sink_.posted.empty()) << name;
    left -= 2;
    EXPECT_EQ(std::get<NodeChanged>(sink_.posted.back()).gpus, left) << name;
  }
}

TEST_F(KubeflowJobsTest, APodWithoutTheResourcesOfTheTemplateIsNoWorker) {
  for (const bool asks : {false, true}) {
    Json object = Resnet();
    object["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"] = {
        {"limits", {{"nvidia.com/gpu", 1}}}};
    const JobObject job = testing::Job(object.dump(), JobKind::kPyTorchJob);
    Json pod = Worker();
    pod["spec"] = Json::parse(R"({"nodeName": "n", "containers": [{"name": "pytorch"}]})");
    if (asks) pod["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1";
    const PodObject read =
        testing::Decoded(pod.dump(), [](const kube::ObjectHead& head, const kube::JsonView& view) {
          return DecodePod(Steering::kGates, head, view);
        });
    EXPECT_EQ(Seats(MakeView(job, {&read}, false)),
              asks ? std::vector<std::string>{"n"} : std::vector<std::string>{});
  }
}

TEST_F(KubeflowJobsTest, WhereMpiJobsOfTheVersionAreNotInstalledTheLogNamesTheFlag) {
  const auto list = std::find_if(io_.open.begin(), io_.open.end(), [](const auto& one) {
    return one.request.path.find("/mpijobs") != std::string::npos;
  });
  ASSERT_NE(list, io_.open.end());
  std::iter_swap(io_.open.begin(), list);
  ::testing::internal::CaptureStderr();
  io_.Answer(404, "404 page not found");
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("--mpi-version"), std::string::npos) << logged;
}

// Whoever only asks what would become of a job is told as well.
TEST_F(KubeflowJobsTest, AnMpiJobOfAnotherVersionIsRefusedBeforeItIsSubmitted) {
  JobSpec spec;
  spec.name = "horovod";
  spec.kind = JobKind::kMpiJob;
  spec.api_version = "kubeflow.org/v1";
  const auto gpus = jobs_->GpusPerWorker(spec, "a100");
  ASSERT_FALSE(gpus);
  EXPECT_NE(gpus.error().message.find("--mpi-version v1"), std::string::npos) << gpus.error().message;
  spec.api_version = "kubeflow.org/v2beta1";
  EXPECT_TRUE(jobs_->GpusPerWorker(spec, "a100"));
}

// From the body of a request to the object in the API server. Whoever asks something of the job on its way
// asks the spec; only what becomes the object is read from the document that the ledger was given.
TEST_F(KubeflowJobsTest, ASubmittedJobIsParsedForItsSpecAndForItsObject) {
  Begin();
  Json body = Resnet();
  body.erase("status");
  body["metadata"] = {{"name", "resnet"}, {"namespace", "team"}};
  const std::uint64_t before = Parses();
  const std::set<std::string, std::less<>> allowed;
  SpecLimits limits;
  limits.allowed = &allowed;
  const auto specs = ParseJobs(body.dump(), limits, RunAs::kContainers);
  ASSERT_TRUE(specs) << specs.error().message;
  EXPECT_FALSE(AmountPerWorker(specs->front(), "npu", "example.com/npu")) << "it asks for none";

  bool accepted = false;
  LedgerJob job;
  job.name = "team/resnet";
  job.gpu_type = "a100";
  job.token = "secret";
  job.spec = std::make_shared<const JobSpec>(specs->front());
  jobs_->ledger().Accept({job}, std::nullopt, [&](const auto& refused) { accepted = !refused; });
  io_.RunPosted();
  EXPECT_EQ(Parses() - before, 2U) << "the body, and the document that becomes the object";
  Answer("/apis/kubeflow.org/v1/namespaces/team/pytorchjobs", Resnet());
  EXPECT_TRUE(accepted);
  EXPECT_EQ(Parses() - before, 3U) << "and the answer";
}

TEST_F(KubeflowJobsTest, ChangesOfTheStatusAreNotToldAgain) {
  Begin();
  Json object = Resnet();
  object["spec"]["runPolicy"]["suspend"] = false;  // so that it is refused, and nobody manages it
  Watch("/pytorchjobs", "ADDED", object);
  ASSERT_EQ(sink_.found.size(), 1U);
  EXPECT_NE(sink_.found[0].refusal, "");
  for (int i = 0; i < 100; ++i) {
    object["metadata"]["resourceVersion"] = std::to_string(21 + i);
    object["status"]["replicaStatuses"]["Worker"]["active"] = i;
    Watch("/pytorchjobs", "MODIFIED", object);
  }
  EXPECT_EQ(sink_.found.size(), 1U);
  jobs_->ledger().LookAgain();
  io_.RunPosted();
  EXPECT_EQ(sink_.found.size(), 2U) << "what spoke against it may be gone";
  Watch("/pytorchjobs", "DELETED", object);
  EXPECT_EQ(sink_.gone, std::vector<std::string>{"team/resnet"});
}

}  // namespace
}  // namespace voda::kubeflow
