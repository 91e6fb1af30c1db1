#include "kube/request.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "document/json_text.h"
#include "kube/base64.h"
#include "kube/json_read.h"
#include "kube/patch.h"
#include "kube/retry.h"
#include "kube/time.h"
#include "support/check.h"

namespace voda::kube {
namespace {

const Resource kJobs{.group = "kubeflow.org", .version = "v1", .plural = "pytorchjobs"};
const Resource kNodes{.version = "v1", .plural = "nodes", .namespaced = false};

TEST(KubeRequest, PathsAreEscaped) {
  EXPECT_EQ(ResourcePath(kJobs, "a", "b", "scale"), "/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/b/scale");
  EXPECT_EQ(ResourcePath(kJobs, ""), "/apis/kubeflow.org/v1/pytorchjobs");
  EXPECT_EQ(ResourcePath(kNodes, "ignored", "n 1/../x"), "/api/v1/nodes/n%201%2F..%2Fx");
  EXPECT_EQ(ResourcePath(kNodes, "", ".."), "/api/v1/nodes/%2E%2E");
  EXPECT_EQ(Query({{"labelSelector", "a=b,c in (d)"}, {"none", ""}, {"limit", "5"}}),
            "?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5");
  EXPECT_EQ(Query({}), "");
  EXPECT_EQ(kJobs.ApiVersion(), "kubeflow.org/v1");
  EXPECT_EQ(kNodes.ApiVersion(), "v1");
}

TEST(KubePatch, JsonPatchTestsBeforeItWrites) {
  JsonPatch patch;
  EXPECT_TRUE(patch.empty());
  patch.TestUid("u\"1").TestResourceVersion("7").Replace("/spec/replicas", "4");
  patch.Add("/metadata/annotations/" + PointerPart("a/b~c"), Quoted("x")).Remove("/spec/old");
  EXPECT_EQ(patch.Text(), R"([{"op":"test","path":"/metadata/uid","value":"u\"1"},)"
                          R"({"op":"test","path":"/metadata/resourceVersion","value":"7"},)"
                          R"({"op":"replace","path":"/spec/replicas","value":4},)"
                          R"({"op":"add","path":"/metadata/annotations/a~1b~0c","value":"x"},)"
                          R"({"op":"remove","path":"/spec/old"}])");
  const Request request = JsonPatchRequest(kJobs, {"ns", "j"}, patch);
  EXPECT_EQ(request.content_type, "application/json-patch+json");
  EXPECT_EQ(request.verb, Verb::kPatch);
  EXPECT_EQ(request.lane, Lane::kWrite);
  EXPECT_EQ(request.flow, "ns");
}

TEST(KubePatch, OtherBodies) {
  EXPECT_EQ(MergePatch(R"({"spec":{"suspend":true}})", "u", "7"),
            R"({"metadata":{"uid":"u","resourceVersion":"7"},"spec":{"suspend":true}})");
  EXPECT_EQ(MergePatch("{}", "", "7"), R"({"metadata":{"resourceVersion":"7"}})");
  EXPECT_EQ(MergePatch(R"({"a":1})", "", ""), R"({"a":1})");
  EXPECT_EQ(DeleteBody({.uid = "u", .propagation = "Foreground", .grace_seconds = 0}),
            R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},)"
            R"("propagationPolicy":"Foreground","gracePeriodSeconds":0})");
  EXPECT_EQ(DeleteBody({}), R"({"kind":"DeleteOptions","apiVersion":"v1"})");
  const Request scale = ScaleRequest(kJobs, {"ns", "j"}, {.replicas = 3, .resource_version = "9"});
  EXPECT_EQ(scale.path, "/apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/j/scale");
  EXPECT_EQ(scale.verb, Verb::kUpdate);
  EXPECT_EQ(scale.body,
            R"({"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"j","namespace":"ns",)"
            R"("resourceVersion":"9"},"spec":{"replicas":3}})");
}

TEST(KubeError, IsTypedByReason) {
  const auto reason = [](int code, std::string_view body) { return DecodeError(code, body).reason; };
  EXPECT_EQ(reason(409, R"({"kind":"Status","reason":"AlreadyExists"})"), Reason::kAlreadyExists);
  EXPECT_EQ(reason(409, R"({"kind":"Status","reason":"Conflict"})"), Reason::kConflict);
  EXPECT_EQ(reason(410, R"({"kind":"Status","reason":"Gone"})"), Reason::kExpired);
  EXPECT_EQ(reason(404, "404 page not found"), Reason::kNotFound);
  EXPECT_EQ(reason(418, ""), Reason::kOther);
  EXPECT_EQ(reason(500, R"({"kind":"Status","reason":"SomethingNew"})"), Reason::kInternalError);
  EXPECT_EQ(
      reason(
          504,
          R"({"kind":"Status","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}})"),
      Reason::kResourceVersionTooLarge);
  const ApiError invalid = DecodeError(
      422,
      R"({"kind":"Status","reason":"Invalid","message":"no","details":{"causes":[{"reason":"FieldValueRequired","field":"action","message":"Required value"}]}})");
  EXPECT_EQ(invalid.reason, Reason::kInvalid);
  EXPECT_EQ(invalid.Text(), "Invalid (422): no; action: Required value");
}

TEST(KubeError, SaysWhenToComeBack) {
  EXPECT_EQ(DecodeError(429, R"({"kind":"Status","details":{"retryAfterSeconds":3}})").retry_after,
            Duration(3000));
  EXPECT_EQ(DecodeError(429, "", "7").retry_after, Duration(7000));
  EXPECT_EQ(DecodeError(429, "", "999999999").retry_after, Duration(86'400'000));
  EXPECT_FALSE(DecodeError(429, "", "Wed, 21 Oct 2026 07:28:00 GMT").retry_after);
  EXPECT_FALSE(DecodeError(429, "", "-1").retry_after);
}

// The error of an ERROR event whose object is this text, or has no object if the text is not JSON.
ApiError OfEvent(std::string text) {
  AddPadding(text);
  JsonDocument document;
  const auto object = document.Read(text);
  return DecodeStatusObject(object ? *object : JsonView());
}

TEST(KubeError, EventsCarryTheCodeInside) {
  const ApiError error = OfEvent(R"({"kind":"Status","code":410,"reason":"Expired","message":"too old"})");
  EXPECT_EQ(error.reason, Reason::kExpired);
  EXPECT_EQ(error.code, 410);
  EXPECT_EQ(OfEvent("{}").reason, Reason::kBadAnswer);
  EXPECT_EQ(OfEvent(R"({"kind":"Status","code":99999})").code, 0);
}

TEST(KubeError, RubbishIsAnErrorLikeAnyOther) {
  voda::testing::Check(
      [](const std::string& body, int code) {
        RC_ASSERT(DecodeError(code, body).code == code);
        OfEvent(body);
      },
      300);
}

TEST(KubeRetry, OnlyWhatIsSafe) {
  Random random(1);
  const auto delay = [&](Verb verb, const ApiError& error, int tries = 1) {
    return RetryDelay({.verb = verb}, error, tries, random);
  };
  const ApiError throttled{.reason = Reason::kTooManyRequests, .code = 429, .retry_after = Duration(1000)};
  for (const Verb verb : {Verb::kGet, Verb::kList, Verb::kCreate, Verb::kPatch, Verb::kDelete}) {
    const auto wait = delay(verb, throttled, 10);
    ASSERT_TRUE(wait);
    EXPECT_GE(*wait, Duration(1000));
    EXPECT_LE(*wait, Duration(1200));
    EXPECT_FALSE(delay(verb, throttled, 11));
    EXPECT_TRUE(
        delay(verb, {.reason = Reason::kServiceUnavailable, .code = 503, .retry_after = Duration(0)}));
    EXPECT_FALSE(delay(verb, {.reason = Reason::kServiceUnavailable, .code = 503}));
    EXPECT_FALSE(delay(verb, {.reason = Reason::kConflict, .code = 409, .retry_after = Duration(0)}));
    EXPECT_FALSE(delay(verb, {.reason = Reason::kNoAnswer}));
    const bool reads = verb == Verb::kGet || verb == Verb::kList;
    EXPECT_EQ(delay(verb, {.reason = Reason::kConnection}).has_value(), reads);
    EXPECT_EQ(delay(verb, {.reason = Reason::kConnection, .refused = true}).has_value(), reads);
  }
  EXPECT_TRUE(
      RetryDelay({.verb = Verb::kCreate, .question = true}, {.reason = Reason::kConnection}, 1, random))
      << "a review changes nothing, although it is a POST";
  EXPECT_FALSE(delay(Verb::kWatch, throttled));
  EXPECT_LE(*delay(Verb::kGet, {.code = 429, .retry_after = Duration(86'400'000)}), Duration(72'000));
  EXPECT_GE(*delay(Verb::kGet, {.reason = Reason::kConnection}, 10), Duration(5000));
}

TEST(KubeText, Times) {
  EXPECT_EQ(MicroTime(WallTime()), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(MicroTime(*ParseTime("2024-02-29T23:59:59.123456789Z")), "2024-02-29T23:59:59.123456Z");
  EXPECT_EQ(MicroTime(*ParseTime("2026-01-01T00:30:00+02:00")), "2025-12-31T22:30:00.000000Z");
  EXPECT_EQ(MicroTime(*ParseTime("1969-12-31T23:59:59.5Z")), "1969-12-31T23:59:59.500000Z");
  for (const char* bad : {"", "2026", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:00:00",
                          "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx", "2026-13-01T00:00:00Z",
                          "2026-01-01T00:00:00+1:00", "-026-01-01T00:00:00Z"}) {
    EXPECT_FALSE(ParseTime(bad)) << bad;
  }
  voda::testing::Check([] {
    const WallTime time(std::chrono::microseconds(
        *rc::gen::inRange<std::int64_t>(-60'000'000'000'000'000, 200'000'000'000'000'000)));
    RC_ASSERT(ParseTime(MicroTime(time)) == time);
  });
}

TEST(KubeText, Base64) {
  voda::testing::Check(
      [](const std::string& bytes) { RC_ASSERT(DecodeBase64(EncodeBase64(bytes)) == bytes); });
  EXPECT_EQ(EncodeBase64("ab"), "YWI=");
  EXPECT_EQ(DecodeBase64("YW\nI="), "ab");
  for (const char* bad : {"Y", "YW", "YWI", "Y===", "YWI=YWI=", "YW=I", "====", "Y-_="})
    EXPECT_FALSE(DecodeBase64(bad)) << bad;
}

}  // namespace
}  // namespace voda::kube
