#include "service/allocation_request.h"

#include <gtest/gtest.h>

#include <string>

namespace voda {
namespace {

// As the reference's scheduler sends it.
constexpr const char* kBody =
    R"({"SchedulerID": "default", "NumGpu": 8, "AlgorithmName": "ElasticFIFO", "ReadyJobs": [
  {"job_name": "a", "job_category": "a", "user": "", "kind": "MPIJob", "spec": {}, "gpu_type": "default", "priority": 0,
   "status": "Waiting", "submit_timestamp": "2021-10-15T03:50:48Z", "finish_timestamp": "9999-01-01T00:00:00Z",
   "config": {"num_proc": 2, "min_num_proc": 1, "max_num_proc": 4, "epochs": 10},
   "time_metrics": {"running_time": 0, "waiting_time": 1000000000, "gpu_time": 0, "total_time": 0,
     "last_running_time": 0, "last_waiting_time": 0, "last_gpu_time": 0,
     "first_start_timestamp": "9999-01-01T00:00:00Z", "last_update_timestamp": "2021-10-15T03:50:48Z"},
   "info": {"job_name": "a", "job_category": "a", "gpu_type": "default", "estimate_remainning_time_seconds": 120.5,
     "speedup": {"0": 0, "1": 1, "2": 1.9, "3": 2.7, "4": 3.4}, "efficiency": {"0": 0, "1": 1}}},
  {"job_name": "b", "submit_timestamp": "2021-10-15T03:50:49Z",
   "config": {"num_proc": 8, "min_num_proc": 2, "max_num_proc": 8}, "info": null}]})";

TEST(AllocationRequest, AnswersSizesPerJob) {
  const auto request = ParseAllocationRequest(kBody, 0);
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->snapshot.jobs.size(), 2U);
  EXPECT_EQ(request->snapshot.jobs[0].submit_time, 1634269848);
  EXPECT_DOUBLE_EQ(request->snapshot.jobs[0].curve->speedup(1), 1.9);
  EXPECT_DOUBLE_EQ(request->snapshot.jobs[0].remaining_seconds, 120.5);
  const auto answer = Allocate(*request);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*answer, R"({"a":4,"b":4})");
}

// Nothing known is not nothing left: under Price the job takes what is idle, and one that is told to end now
// does not.
TEST(AllocationRequest, AJobWithoutInfoIsGuessed) {
  const auto ask = [](const std::string& fields) {
    return ParseAllocationRequest(
        R"({"NumGpu": 8, "AlgorithmName": "Price", "ReadyJobs": [{"job_name": "a", "config":
      {"num_proc": 1, "min_num_proc": 1, "max_num_proc": 8}, )" +
            fields + "}]}",
        0);
  };
  const auto unknown = ask(R"("info": null)");
  ASSERT_TRUE(unknown) << unknown.error().message;
  const Job& job = unknown->snapshot.jobs[0];
  EXPECT_TRUE(job.guessed);
  EXPECT_DOUBLE_EQ(job.remaining_seconds, 3600);
  EXPECT_EQ(*Allocate(*unknown), R"({"a":8})");

  // Three hours on four GPUs: it has as long to go as it has run.
  const auto ran =
      ask(R"("time_metrics": {"running_time": 10800000000000, "gpu_time": 43200000000000}, "info": null)");
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->snapshot.jobs[0].guessed);
  EXPECT_NEAR(ran->snapshot.jobs[0].remaining_seconds, 10800 * GuessedSpeedup(4), 1e-6);

  const auto told = ask(R"("info": {"estimate_remainning_time_seconds": 0})");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_FALSE(told->snapshot.jobs[0].guessed);
  EXPECT_EQ(told->snapshot.jobs[0].remaining_seconds, 0);
  EXPECT_EQ(*Allocate(*told), R"({"a":1})");
}

TEST(AllocationRequest, ErrorsNameTheField) {
  const auto message = [](const char* body) {
    const auto request = ParseAllocationRequest(body, 0);
    return request ? std::string("accepted") : request.error().message;
  };
  EXPECT_EQ(message("[]"), "the body must be a JSON object");
  EXPECT_EQ(message("{"), "the body must be a JSON object");
  EXPECT_EQ(message(R"({"NumGpu": 1})"), "body.AlgorithmName: a string is expected");
  EXPECT_EQ(message(R"({"AlgorithmName": "FIFO", "NumGpu": -1})"),
            "body.NumGpu: -1 is not a whole number from 0 to 16777216");
  EXPECT_EQ(message(R"({"AlgorithmName": "FIFO", "NumGpu": 1, "ReadyJobs": [{}]})"),
            "ReadyJobs[0].job_name: a string is expected");
  EXPECT_EQ(
      message(
          R"({"AlgorithmName": "FIFO", "NumGpu": 1, "ReadyJobs": [{"job_name": "a", "config": {"num_proc": 1,
    "min_num_proc": 2}}]})"),
      "ReadyJobs[0].config.num_proc: 1 is not a whole number from 2 to 65536");
  EXPECT_EQ(
      message(
          R"({"AlgorithmName": "FIFO", "NumGpu": 1, "ReadyJobs": [{"job_name": "a"}, {"job_name": "a"}]})"),
      "ReadyJobs[1].job_name: \"a\" is given twice");
  EXPECT_EQ(
      message(
          R"({"AlgorithmName": "FIFO", "NumGpu": 1, "ReadyJobs": [{"job_name": "a", "config": {"epochs": {}}}]})"),
      "ReadyJobs[0].config.epochs: a number is expected");
  EXPECT_EQ(message(R"({"AlgorithmName": "FIFO", "NumGpu": 1, "SchedulerID": 3})"),
            "body.SchedulerID: a string is expected");
}

// What is built of a body takes memory in proportion to it.
TEST(AllocationRequest, MoreValuesThanABodyOfItsSizeHasAreRefusedBeforeAnythingIsBuilt) {
  const auto refused = [](std::string_view piece, std::size_t pieces) {
    std::string body = "{\"AlgorithmName\": \"FIFO\", \"ReadyJobs\": [";
    for (std::size_t i = 0; i < pieces; ++i) body += piece;
    const auto request = ParseAllocationRequest(body, 0);
    return request ? std::string("accepted") : request.error().message;
  };
  EXPECT_EQ(refused("0,", 100'000), "body: more than 51010 values; send less at once");
  EXPECT_EQ(refused("[", 100'000), "body: more than 26010 values; send less at once");
  EXPECT_EQ(refused("0,", 90), "the body must be a JSON object") << "its end is missing";
}

TEST(AllocationRequest, AnUnknownAlgorithmListsTheKnownOnes) {
  const auto request = ParseAllocationRequest(R"({"AlgorithmName": "Best", "NumGpu": 1})", 0);
  ASSERT_TRUE(request);
  const auto answer = Allocate(*request);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("ElasticFIFO"), std::string::npos) << answer.error().message;
}

}  // namespace
}  // namespace voda
