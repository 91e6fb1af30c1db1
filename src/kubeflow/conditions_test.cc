#include "kubeflow/conditions.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/fake_io.h"
#include "kubeflow/test_objects.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {
namespace {

using Json = nlohmann::json;

JobObject MakeJob(bool suspended, const Json& conditions = Json::array()) {
  JobObject job = testing::Job(Json{{"status", {{"conditions", conditions}}}}.dump());
  job.head = {"ns", "job", "the-uid", "7"};
  job.suspended = suspended;
  job.handled = true;
  return job;
}

const JobWord kStarted{"Started", "3 workers on a: arrived", false};

Json Patched(const kube::Request& request) {
  return Json::parse(request.body);
}

TEST(ConditionRequest, AddsOneBesideThoseOfTheOperator) {
  const JobObject job = MakeJob(false, {{{"type", "Created"}, {"status", "True"}}});
  const auto request = ConditionRequest(job, kStarted, {});
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->path.ends_with("/mpijobs/job/status")) << request->path;
  EXPECT_EQ(request->lane, kube::Lane::kStatus);
  const Json patch = Patched(*request);
  ASSERT_EQ(patch.size(), 3U);
  EXPECT_EQ(patch[0]["value"], "the-uid");
  EXPECT_EQ(patch[1]["value"], "7");
  EXPECT_EQ(patch[2]["op"], "add");
  EXPECT_EQ(patch[2]["path"], "/status/conditions/0") << "kubectl get shows the type of the last one";
  EXPECT_EQ(patch[2]["value"]["type"], "vodascheduler/Scheduled");
  EXPECT_EQ(patch[2]["value"]["status"], "True");
  EXPECT_EQ(patch[2]["value"]["reason"], "Started");
}

TEST(ConditionRequest, ReplacesItsOwnAndKeepsTheTimeOfTheLastTransition) {
  const Json ours = {{"type", kScheduledCondition}, {"status", "True"},
                     {"reason", "Started"},         {"message", "3 workers on a: arrived"},
                     {"lastUpdateTime", "then"},    {"lastTransitionTime", "then"}};
  const Json conditions = {ours, {{"type", "Created"}}};
  EXPECT_FALSE(ConditionRequest(MakeJob(false, conditions), kStarted, {})) << "it says so already";

  const auto resized = ConditionRequest(MakeJob(false, conditions), {"Resized", "2", false}, {});
  ASSERT_TRUE(resized);
  const Json patch = Patched(*resized)[2];
  EXPECT_EQ(patch["op"], "replace");
  EXPECT_EQ(patch["path"], "/status/conditions/0");
  EXPECT_EQ(patch["value"]["lastTransitionTime"], "then");
  EXPECT_NE(patch["value"]["lastUpdateTime"], "then");

  const auto halted = ConditionRequest(MakeJob(true, conditions), {"Suspended", "0", false}, {});
  ASSERT_TRUE(halted);
  EXPECT_EQ(Patched(*halted)[2]["value"]["status"], "False");
  EXPECT_NE(Patched(*halted)[2]["value"]["lastTransitionTime"], "then");
}

TEST(ConditionRequest, OneThatStandsBehindTheOperatorsIsPutBeforeThem) {
  const Json ours = {{"type", kScheduledCondition},
                     {"status", "True"},
                     {"reason", "Started"},
                     {"message", "3 workers on a: arrived"},
                     {"lastTransitionTime", "then"}};
  const Json before = {{{"type", "Created"}}, {{"type", "Running"}}, ours};
  const auto request = ConditionRequest(MakeJob(false, before), kStarted, {});
  ASSERT_TRUE(request) << "an earlier Voda wrote it last, where kubectl shows it as the job's state";
  Json operations = Patched(*request);
  operations.erase(0);
  operations.erase(0);  // uid and version
  const Json after = Json{{"status", {{"conditions", before}}}}.patch(operations)["status"]["conditions"];
  ASSERT_EQ(after.size(), 3U);
  EXPECT_EQ(after[0]["type"], kScheduledCondition);
  EXPECT_EQ(after[0]["lastTransitionTime"], "then");
  EXPECT_EQ(after[2]["type"], "Running");
}

TEST(ConditionRequest, AJobThatHasEndedOrIsReleasedIsNotScheduled) {
  JobObject job = MakeJob(false);
  EXPECT_EQ(Patched(*ConditionRequest(job, {"Released", "", false}, {}))[2]["value"]["status"], "False");
  job.end = JobObject::End::kSucceeded;
  EXPECT_EQ(Patched(*ConditionRequest(job, {"Completed", "", false}, {}))[2]["value"]["status"], "False");
}

TEST(ConditionRequest, ARefusedJobIsNotScheduledAlthoughItRuns) {
  const auto request = ConditionRequest(MakeJob(false), {"Refused", std::string(5000, 'x'), true}, {});
  ASSERT_TRUE(request);
  EXPECT_EQ(Patched(*request)[2]["value"]["status"], "False");
  EXPECT_LE(Patched(*request)[2]["value"]["message"].get<std::string>().size(), 1024U);
}

TEST(ConditionRequest, IsNoneWithoutAStatus) {
  for (const char* document : {"{}", R"({"status":{}})", R"({"status":[]})", R"("rubbish")"}) {
    EXPECT_FALSE(ConditionRequest(testing::Job(document), kStarted, {})) << document;
  }
}

class Writing : public ::testing::Test {
 protected:
  static constexpr kube::Duration kShort{1}, kPause = Conditions::kPause;
  kube::testing::FakeIo io;
  std::map<std::string, JobObject> jobs{{"a", MakeJob(false)}, {"b", MakeJob(false)}};
  bool leads = true;
  Conditions conditions{io,
                        [this](const std::string& name) {
                          const auto at = jobs.find(name);
                          return at == jobs.end() ? nullptr : &at->second;
                        },
                        [this] { return leads; }};
};

TEST_F(Writing, WhatHappensShortlyAfterEachOtherIsOneWrite) {
  conditions.Put("a", {"Queued", "", false});
  io.Pass(kShort);
  conditions.Put("a", kStarted);
  io.Pass(kPause * 3);
  ASSERT_EQ(io.open.size(), 1U);
  EXPECT_NE(io.Asked().body.find("Started"), std::string::npos);
  io.Answer(200, "{}");
  io.Pass(kPause * 10);
  EXPECT_TRUE(io.open.empty());
  EXPECT_EQ(io.timers(), 0U) << "nothing is left to do";
}

TEST_F(Writing, OneIsOutAtATime) {
  conditions.Put("a", kStarted);
  conditions.Put("b", kStarted);
  io.Pass(kPause * 3);
  EXPECT_EQ(io.open.size(), 1U);
  io.Answer(200, "{}");
  EXPECT_EQ(io.open.size(), 1U);
  io.Answer(200, "{}");
  EXPECT_TRUE(io.open.empty());
}

// A thousand jobs that were told that they wait do not keep anybody from learning that one runs.
TEST_F(Writing, WhatPeopleWaitForComesFirst) {
  for (int i = 0; i < 100; ++i) {
    const std::string name = "queued" + std::to_string(i);
    jobs[name] = MakeJob(true);
    conditions.Put(name, {"Queued", "", false});
  }
  io.Pass(kPause * 3);
  conditions.Put("a", kStarted);
  for (int written = 0; written < 3; ++written) {
    io.Pass(Conditions::kQuiet);
    ASSERT_EQ(io.open.size(), 1U);
    if (io.Asked().body.find("Started") != std::string::npos) return;
    io.Answer(200, "{}");
  }
  FAIL() << "it waits behind those that nobody waits for";
}

// How often something is written within so many seconds while every write is refused.
int Tries(kube::testing::FakeIo& io, int seconds) {
  int tries = 0;
  for (int second = 0; second < seconds; ++second) {
    io.Pass(kube::Duration(1'000));
    if (io.open.empty()) continue;
    ++tries;
    io.Answer(409, R"({"kind":"Status","reason":"Conflict"})");
  }
  return tries;
}

TEST_F(Writing, AConflictIsTriedAgainAndNotForEver) {
  jobs["a"] = MakeJob(false, {{{"type", kScheduledCondition}, {"status", "True"}}});
  conditions.Put("a", {"Resized", "2 workers", false});
  EXPECT_EQ(Tries(io, 100), Conditions::kTries);
  EXPECT_EQ(io.timers(), 0U);
}

TEST_F(Writing, WhatTurnsTheConditionIsTriedUntilItStands) {
  conditions.Put("a", kStarted);
  EXPECT_EQ(Tries(io, 40), Conditions::kTries);
  const int more = Tries(io, 300);
  EXPECT_GE(more, 9) << "every 30 s";
  EXPECT_LE(more, 11);
  io.Pass(Conditions::kSeldom * 2);
  ASSERT_EQ(io.open.size(), 1U);
  io.Answer(200, "{}");
  EXPECT_EQ(io.timers(), 0U);
}

TEST_F(Writing, WhatWasSaidDuringAWriteIsWrittenBehindIt) {
  conditions.Put("a", kStarted);
  io.Pass(kPause * 3);
  ASSERT_EQ(io.open.size(), 1U);
  conditions.Put("a", {"Resized", "", false});
  io.Answer(200, "{}");
  io.Pass(kPause * 3);
  ASSERT_EQ(io.open.size(), 1U);
  EXPECT_NE(io.Asked().body.find("Resized"), std::string::npos);
}

TEST_F(Writing, NothingIsWrittenWithoutTheLeadOrTheRightOrTheObject) {
  leads = false;
  conditions.Put("a", kStarted);
  io.Pass(kPause * 3);
  EXPECT_TRUE(io.open.empty());
  leads = true;
  io.Pass(kPause * 3);
  ASSERT_EQ(io.open.size(), 1U);
  io.Answer(403, R"({"kind":"Status","reason":"Forbidden"})");
  jobs.erase("b");
  conditions.Put("b", kStarted);
  io.Pass(kPause * 10);
  EXPECT_TRUE(io.open.empty());
  EXPECT_EQ(io.timers(), 0U);
}

TEST_F(Writing, AnObjectThatOthersWriteIsLeftForLater) {
  conditions.Put("a", kStarted);
  for (int version = 10; version < 20; ++version) {
    jobs["a"].head.resource_version = std::to_string(version);
    io.Pass(kPause);
    EXPECT_TRUE(io.open.empty());
  }
  io.Pass(Conditions::kQuiet * 2);
  EXPECT_EQ(io.open.size(), 1U);
}

TEST_F(Writing, AnObjectThatItsOperatorHasNotSeenIsLeftForLater) {
  jobs["a"].handled = false;
  conditions.Put("a", kStarted);
  io.Pass(kPause * 2);
  EXPECT_TRUE(io.open.empty());
  jobs["a"].handled = true;
  io.Pass(kPause * 4);
  EXPECT_EQ(io.open.size(), 1U);
}

}  // namespace
}  // namespace voda::kubeflow
