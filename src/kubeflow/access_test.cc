#include "kubeflow/access.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "kube/fake_io.h"

namespace voda::kubeflow {
namespace {

using Granted = AccessResult::Kind;
using kube::Duration;

const Permission kCreate{
    .verb = "create", .group = "kubeflow.org", .resource = "mpijobs", .name_space = "team-b"};
const Permission kGet{.verb = "get", .group = "kubeflow.org", .resource = "mpijobs", .name_space = "team-b"};

class AccessTest : public ::testing::Test {
 protected:
  // Returns the place into which the result will come.
  std::shared_ptr<std::optional<AccessResult>> Check(const std::string& token,
                                                     std::vector<Permission> needed) {
    auto place = std::make_shared<std::optional<AccessResult>>();
    access_->Check(token, std::move(needed), [place](AccessResult result) {
      EXPECT_FALSE(place->has_value()) << "answered twice";
      *place = std::move(result);
    });
    io_.RunPosted();
    return place;
  }
  bool Asks(std::string_view what) const {
    return io_.open.size() == 1 && io_.Asked().path.find(what) != std::string::npos;
  }
  void AnswerToken(const std::string& user) {
    ASSERT_TRUE(Asks("/tokenreviews"));
    io_.Answer(201, R"({"kind": "TokenReview", "status": {"authenticated": true, "user": {"username": ")" +
                        user + R"(", "uid": "u1", "groups": ["g"]}}})");
  }
  void RefuseToken() {
    ASSERT_TRUE(Asks("/tokenreviews"));
    io_.Answer(201, R"({"kind": "TokenReview", "status": {"user": {}, "error": "invalid bearer token"}})");
  }
  void AnswerAccess(bool allowed) {
    ASSERT_TRUE(Asks("/subjectaccessreviews"));
    io_.Answer(201, std::string(R"({"kind": "SubjectAccessReview", "status": {"allowed": )") +
                        (allowed ? "true}}" : "false}}"));
  }
  // Checks something that needs no more questions.
  AccessResult Known(const std::string& token, std::vector<Permission> needed) {
    const auto result = Check(token, std::move(needed));
    EXPECT_TRUE(io_.open.empty());
    EXPECT_TRUE(result->has_value());
    return result->value_or(AccessResult());
  }
  bool AllowedNow(const std::string& token, const Permission& permission) {
    return Known(token, {permission}).kind == Granted::kAllowed;
  }
  void Allow(const std::string& token, const Permission& permission) {
    const auto result = Check(token, {permission});
    AnswerToken("jane");
    AnswerAccess(true);
    ASSERT_TRUE(result->has_value());
    ASSERT_EQ((*result)->kind, Granted::kAllowed);
  }
  void Use(AccessConfig config) { access_ = std::make_unique<Access>(io_, std::move(config)); }

  kube::testing::FakeIo io_;
  std::unique_ptr<Access> access_ = std::make_unique<Access>(io_);
};

TEST_F(AccessTest, AsksWhoseTheTokenIsAndWhatTheyMay) {
  const auto result = Check("secret", {kCreate});
  EXPECT_NE(io_.Asked().body.find("\"token\":\"secret\""), std::string::npos);
  AnswerToken("jane");
  EXPECT_NE(io_.Asked().body.find("\"user\":\"jane\""), std::string::npos);
  EXPECT_NE(io_.Asked().body.find("\"groups\":[\"g\"]"), std::string::npos);
  EXPECT_FALSE(result->has_value());
  AnswerAccess(true);
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->kind, Granted::kAllowed);
  EXPECT_EQ((*result)->user, "jane");
  EXPECT_EQ((*result)->message, "");
}

TEST_F(AccessTest, NothingNeededIsJustAnOwner) {
  const auto result = Check("secret", {});
  AnswerToken("jane");
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->kind, Granted::kAllowed);
  EXPECT_EQ((*result)->user, "jane");
}

TEST_F(AccessTest, ARefusalNamesUserVerbResourceAndNamespace) {
  const auto result = Check("secret", {kCreate});
  AnswerToken("jane");
  io_.Answer(201, R"({"kind": "SubjectAccessReview", "status": {"allowed": false, "reason": "no role"}})");
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->kind, Granted::kForbidden);
  EXPECT_EQ((*result)->user, "jane");
  EXPECT_EQ(
      (*result)->message,
      "user jane may not create mpijobs.kubeflow.org in namespace team-b (no role); ask whoever runs the "
      "cluster for a role that allows it");
}

TEST_F(AccessTest, ARefusalNamesNoMoreThanItMay) {
  Permission get = kGet;
  get.told = "get any of it";
  const auto result = Check("secret", {get});
  AnswerToken("jane");
  io_.Answer(201, R"({"kind": "SubjectAccessReview", "status": {"allowed": false, "reason": "no mpijobs"}})");
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->message,
            "user jane may not get any of it; ask whoever runs the cluster for a role that allows it");
}

TEST_F(AccessTest, ATokenOfNobody) {
  const auto result = Check("secret", {kCreate});
  RefuseToken();
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->kind, Granted::kUnauthenticated);
  EXPECT_EQ((*result)->user, "");
  EXPECT_EQ(
      (*result)->message,
      "the token is not valid: invalid bearer token; get a new one, for example with: kubectl create token "
      "ACCOUNT");
  EXPECT_TRUE(io_.open.empty());
}

TEST_F(AccessTest, NoTokenAndTooLongOnesAreNotAskedAbout) {
  EXPECT_EQ(Known("", {kCreate}).kind, Granted::kUnauthenticated);
  EXPECT_EQ(Known("", {}).message.substr(0, 8), "no token");
  EXPECT_NE(Known("", {}).message.find("kubectl create token"), std::string::npos);
  const AccessResult longer = Known(std::string(16385, 'a'), {});
  EXPECT_EQ(longer.kind, Granted::kUnauthenticated);
  EXPECT_EQ(longer.message, "the token has 16385 bytes, the limit is 16384");
  Check(std::string(16384, 'a'), {});
  EXPECT_TRUE(Asks("/tokenreviews"));
}

TEST_F(AccessTest, OnlyTheRightAudienceCounts) {
  Use({.audiences = {"voda"}});
  const auto result = Check("secret", {});
  EXPECT_NE(io_.Asked().body.find("\"audiences\":[\"voda\"]"), std::string::npos);
  AnswerToken("jane");  // the answer names no audience
  ASSERT_TRUE(result->has_value());
  EXPECT_EQ((*result)->kind, Granted::kUnauthenticated);
  EXPECT_NE((*result)->message.find("it is not for the audience voda"), std::string::npos);
  EXPECT_NE((*result)->message.find("kubectl create token ACCOUNT --audience voda"), std::string::npos);
}

TEST_F(AccessTest, AllOfThePermissionsMustBeGiven) {
  const auto both = Check("secret", {kGet, kCreate});
  AnswerToken("jane");
  AnswerAccess(true);
  EXPECT_FALSE(both->has_value());
  AnswerAccess(false);
  ASSERT_TRUE(both->has_value());
  EXPECT_EQ((*both)->kind, Granted::kForbidden);
  EXPECT_NE((*both)->message.find("may not create"), std::string::npos);
  const auto first = Known("secret", {kCreate, {.verb = "delete", .resource = "pods"}});
  EXPECT_EQ(first.kind, Granted::kForbidden) << "the rest is not asked any more";
}

TEST_F(AccessTest, AnswersAreBelievedForAWhile) {
  Allow("secret", kCreate);
  EXPECT_TRUE(AllowedNow("secret", kCreate));
  io_.Pass(Duration(29'999));
  EXPECT_TRUE(AllowedNow("secret", kCreate));
  io_.Pass(Duration(1));
  auto result = Check("secret", {kCreate});
  AnswerAccess(false);
  EXPECT_EQ((*result)->kind, Granted::kForbidden) << "the right was taken away";
  io_.Pass(Duration(9'999));
  EXPECT_EQ(Known("secret", {kCreate}).kind, Granted::kForbidden);
  io_.Pass(Duration(1));
  result = Check("secret", {kCreate});
  AnswerAccess(true);
  EXPECT_EQ((*result)->kind, Granted::kAllowed);
  io_.Pass(Duration(20'000));
  result = Check("secret", {kCreate});
  RefuseToken();
  EXPECT_EQ((*result)->kind, Granted::kUnauthenticated) << "a minute is over";
  io_.Pass(Duration(9'999));
  EXPECT_EQ(Known("secret", {}).kind, Granted::kUnauthenticated);
  io_.Pass(Duration(1));
  Check("secret", {});
  EXPECT_TRUE(Asks("/tokenreviews"));
}

TEST_F(AccessTest, AnotherTokenUserPermissionOrNamespaceIsAnotherQuestion) {
  Allow("secret", kCreate);
  Permission elsewhere = kCreate;
  elsewhere.name_space = "team-c";
  auto result = Check("secret", {elsewhere});
  AnswerAccess(false);
  EXPECT_EQ((*result)->kind, Granted::kForbidden);
  result = Check("other", {kCreate});
  AnswerToken("joe");
  AnswerAccess(false);
  EXPECT_EQ((*result)->kind, Granted::kForbidden);
  EXPECT_TRUE(AllowedNow("secret", kCreate));
  result = Check("third", {kCreate});
  AnswerToken("jane");  // the same owner
  EXPECT_EQ((*result)->kind, Granted::kAllowed);
}

TEST_F(AccessTest, TheSameQuestionIsAskedOnce) {
  const auto a = Check("secret", {kCreate});
  const auto b = Check("secret", {kCreate, kGet});
  const auto c = Check("secret", {});
  AnswerToken("jane");
  EXPECT_TRUE(c->has_value());
  EXPECT_FALSE(a->has_value());
  AnswerAccess(true);
  ASSERT_TRUE(a->has_value());
  EXPECT_EQ((*a)->kind, Granted::kAllowed);
  EXPECT_FALSE(b->has_value());
  AnswerAccess(false);
  ASSERT_TRUE(b->has_value());
  EXPECT_EQ((*b)->kind, Granted::kForbidden);
  EXPECT_TRUE(io_.open.empty());
}

TEST_F(AccessTest, WhatWentWrongIsNotKept) {
  const auto a = Check("secret", {kCreate});
  const auto b = Check("secret", {kCreate});
  io_.Fail({.reason = kube::Reason::kNoAnswer, .message = "no answer in 10 s"});
  for (const auto& result : {a, b}) {
    ASSERT_TRUE(result->has_value());
    EXPECT_EQ((*result)->kind, Granted::kUnavailable);
    EXPECT_NE((*result)->message.find("failed: NoAnswer: no answer in 10 s; try again"), std::string::npos)
        << (*result)->message;
  }
  const auto again = Check("secret", {kCreate});
  AnswerToken("jane");
  io_.Answer(500, "boom");
  EXPECT_EQ((*again)->kind, Granted::kUnavailable);
  EXPECT_EQ((*again)->user, "jane");
  const auto last = Check("secret", {kCreate});
  AnswerAccess(true);
  EXPECT_EQ((*last)->kind, Granted::kAllowed);
}

TEST_F(AccessTest, RightsThatVodaLacksAreNamed) {
  const std::string forbidden = R"({"kind": "Status", "reason": "Forbidden", "code": 403, "message": "no"})";
  auto result = Check("secret", {kCreate});
  io_.Answer(403, forbidden);
  EXPECT_EQ((*result)->kind, Granted::kUnavailable) << "not the caller's fault";
  EXPECT_EQ((*result)->message,
            "the rights of callers cannot be checked: Voda's account may not create "
            "tokenreviews.authentication.k8s.io; "
            "bind it to the ClusterRole system:auth-delegator");
  result = Check("secret", {kCreate});
  AnswerToken("jane");
  io_.Answer(403, forbidden);
  EXPECT_EQ((*result)->kind, Granted::kUnavailable);
  EXPECT_NE((*result)->message.find("may not create subjectaccessreviews.authorization.k8s.io"),
            std::string::npos);
  result = Check("secret", {kCreate});
  io_.Answer(401, R"({"kind": "Status", "reason": "Unauthorized", "code": 401, "message": "Unauthorized"})");
  EXPECT_EQ((*result)->kind, Granted::kUnavailable);
  EXPECT_NE((*result)->message.find("Voda's own credentials"), std::string::npos);
}

TEST_F(AccessTest, AnAnswerOfAnotherKindAllowsNothing) {
  auto result = Check("secret", {kCreate});
  io_.Answer(200, "<html>sign in</html>");
  EXPECT_EQ((*result)->kind, Granted::kUnavailable);
  result = Check("secret", {kCreate});
  AnswerToken("jane");
  io_.Answer(200, R"({"allowed": true, "status": {"allowed": true}})");
  EXPECT_EQ((*result)->kind, Granted::kUnavailable);
}

TEST_F(AccessTest, EntriesAreBounded) {
  Use({.entries = 3});
  for (const std::string token : {"a", "b", "c", "d"}) {
    Check(token, {});
    AnswerToken(token);
  }
  for (const std::string token : {"b", "c", "d"}) EXPECT_EQ(Known(token, {}).user, token);
  Check("a", {});
  EXPECT_TRUE(Asks("/tokenreviews")) << "the oldest made room";
}

TEST_F(AccessTest, OpenChecksAreBounded) {
  Use({.checks_open = 2});
  const auto a = Check("secret", {});
  Check("secret", {});
  const auto turned_away = Check("secret", {});
  ASSERT_TRUE(turned_away->has_value());
  EXPECT_EQ((*turned_away)->kind, Granted::kUnavailable);
  AnswerToken("jane");
  EXPECT_TRUE(a->has_value());
  EXPECT_EQ(Known("secret", {}).kind, Granted::kAllowed);
}

TEST_F(AccessTest, NoRecursionThroughManyPermissions) {
  Allow("secret", kCreate);
  EXPECT_EQ(Known("secret", std::vector<Permission>(10'000, kCreate)).kind, Granted::kAllowed);
}

TEST_F(AccessTest, MayBeDestroyedAtAnyMoment) {
  const auto posted = std::make_shared<std::optional<AccessResult>>();
  access_->Check("secret", {}, [posted](AccessResult result) { *posted = std::move(result); });
  access_.reset();
  io_.RunPosted();
  EXPECT_TRUE(io_.open.empty());
  EXPECT_FALSE(posted->has_value());

  Use({});
  const auto at_token = Check("secret", {kCreate});
  access_.reset();
  AnswerToken("jane");
  EXPECT_FALSE(at_token->has_value());

  Use({});
  const auto at_access = Check("secret", {kCreate});
  AnswerToken("jane");
  access_.reset();
  AnswerAccess(true);
  EXPECT_FALSE(at_access->has_value());
}

TEST_F(AccessTest, MayBeDestroyedByWhoIsAnswered) {
  int answers = 0;
  const auto destroy = [&](const AccessResult&) {
    ++answers;
    access_.reset();
  };
  const auto ask = [&](const std::string& token, const std::vector<Permission>& needed) {
    for (int i = 0; i < 2; ++i) access_->Check(token, needed, destroy);
    io_.RunPosted();
  };
  ask("", {});
  Use({});
  ask("secret", {});
  AnswerToken("jane");
  Use({});
  ask("secret", {});
  RefuseToken();
  Use({});
  ask("secret", {kCreate});
  AnswerToken("jane");
  AnswerAccess(false);
  Use({});
  ask("secret", {});
  io_.Answer(500, "boom");
  EXPECT_EQ(answers, 5) << "the second of each goes without";
}

}  // namespace
}  // namespace voda::kubeflow
