#include "kubeflow/review.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace voda::kubeflow {
namespace {

using Json = nlohmann::json;

TEST(Review, TokenRequest) {
  const kube::Request request = TokenReview("a\"b", {});
  EXPECT_EQ(request.verb, kube::Verb::kCreate);
  EXPECT_EQ(request.path, "/apis/authentication.k8s.io/v1/tokenreviews");
  EXPECT_EQ(request.lane, kube::Lane::kRead) << "writes must not wait for the tokens of strangers";
  EXPECT_TRUE(request.question) << "a connection that was closed while it was idle must not cost an answer";
  EXPECT_EQ(Json::parse(request.body), Json::parse(R"({"apiVersion": "authentication.k8s.io/v1",
    "kind": "TokenReview", "spec": {"token": "a\"b"}})"));
  EXPECT_EQ(Json::parse(TokenReview("t", {"voda", "b"}).body)["spec"]["audiences"], Json({"voda", "b"}));
}

TEST(Review, AccessRequestHasAllOfTheIdentity) {
  const Identity who{"jane", "u1", {"a", "b"}, {{"scopes", {"x", "y"}}, {"example.org/k", {}}}};
  const Permission scale{"update", "kubeflow.org", "mpijobs", "scale", "team-b", "mnist", ""};
  const kube::Request request = AccessReview(who, scale);
  EXPECT_EQ(request.path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  EXPECT_EQ(Json::parse(request.body), Json::parse(R"({"apiVersion": "authorization.k8s.io/v1",
    "kind": "SubjectAccessReview", "spec": {"user": "jane", "uid": "u1", "groups": ["a", "b"],
    "extra": {"scopes": ["x", "y"], "example.org/k": []}, "resourceAttributes": {"verb": "update",
    "group": "kubeflow.org", "resource": "mpijobs", "subresource": "scale", "namespace": "team-b", "name": "mnist"}}})"));
  EXPECT_EQ(Json::parse(AccessReview({"jane", "", {}, {}}, {.verb = "get", .path = "/metrics"}).body)["spec"],
            Json::parse(R"({"user": "jane", "nonResourceAttributes": {"verb": "get", "path": "/metrics"}})"));
}

TEST(Review, PermissionsInWords) {
  EXPECT_EQ(Text({.verb = "create", .group = "kubeflow.org", .resource = "mpijobs", .name_space = "team-b"}),
            "create mpijobs.kubeflow.org in namespace team-b");
  EXPECT_EQ(Text({.verb = "get", .resource = "pods", .subresource = "log", .name_space = "a", .name = "p"}),
            "get pods/log p in namespace a");
  EXPECT_EQ(Text({.verb = "list", .resource = "nodes"}), "list nodes at the cluster scope");
  EXPECT_EQ(Text({.verb = "get", .path = "/metrics"}), "get /metrics");
}

TEST(Review, TokenAnswers) {
  const auto yes = ReadTokenReview(R"({"kind": "TokenReview", "status": {"authenticated": true, "user":
    {"username": "jane", "uid": "u1", "groups": ["a", "b"], "extra": {"k": ["v"]}}, "audiences": ["x"]}})",
                                   {});
  ASSERT_TRUE(yes);
  EXPECT_TRUE(yes->authenticated);
  EXPECT_EQ(yes->who.user, "jane");
  EXPECT_EQ(yes->who.uid, "u1");
  EXPECT_EQ(yes->who.groups, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(yes->who.extra.at("k"), std::vector<std::string>{"v"});
  const auto no = ReadTokenReview(
      R"({"kind": "TokenReview", "status": {"user": {}, "error": "invalid bearer token"}})", {});
  ASSERT_TRUE(no);
  EXPECT_FALSE(no->authenticated);
  EXPECT_EQ(no->why_not, "invalid bearer token");
}

TEST(Review, ATokenForOthersIsNotForUs) {
  const auto authenticated = [](const std::string& audiences) {
    const auto answer = ReadTokenReview(
        R"({"kind": "TokenReview", "status": {"authenticated": true, "user": {"username": "j"})" + audiences +
            "}}",
        {"voda", "b"});
    return answer && answer->authenticated;
  };
  EXPECT_TRUE(authenticated(R"(, "audiences": ["voda"])"));
  EXPECT_TRUE(authenticated(R"(, "audiences": ["x", "b"])"));
  EXPECT_FALSE(authenticated(R"(, "audiences": ["https://kubernetes.default.svc"])"));
  EXPECT_FALSE(authenticated("")) << "a server that knows no audiences";
}

TEST(Review, AccessAnswers) {
  const auto read = [](const std::string& status) {
    return *ReadAccessReview(R"({"kind": "SubjectAccessReview", "status": {)" + status + "}}");
  };
  EXPECT_TRUE(read(R"("allowed": true, "reason": "RBAC")").allowed);
  EXPECT_FALSE(read(R"("allowed": true, "denied": true)").allowed);
  EXPECT_FALSE(read(R"("allowed": "true")").allowed);
  EXPECT_FALSE(read("").allowed);
  EXPECT_EQ(read(R"("allowed": false, "evaluationError": "role not found")").reason, "role not found");
}

TEST(Review, WhatIsNoReviewIsAnError) {
  for (const std::string text :
       {"", "x", "[]", "{}", R"({"status": {"authenticated": true, "allowed": true}})",
        R"({"kind": "TokenReview"})", R"({"kind": "TokenReview", "status": 1})",
        R"({"kind": "TokenReview", "status": {"authenticated": true}})",
        R"({"kind": "TokenReview", "status": {"authenticated": true, "user": {"username": ""}}})"}) {
    EXPECT_FALSE(ReadTokenReview(text, {})) << text;
    EXPECT_FALSE(ReadAccessReview(text)) << text;
  }
}

}  // namespace
}  // namespace voda::kubeflow
