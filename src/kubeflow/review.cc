#include "kubeflow/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "document/documents.h"
#include "document/json_writer.h"
#include "kube/patch.h"

namespace voda::kubeflow {

const kube::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", false};
const kube::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews", false};

namespace {

constexpr kube::Duration kTimeout{10'000};
// An answer repeats the question: the token, or the groups of its owner.
constexpr std::size_t kMostAnswer = std::size_t{256} << 10;

// Callers wait for reviews, and strangers can cause them: they stay out of the lane of writes.
kube::Request Review(const kube::Resource& resource, std::string_view kind, std::string_view spec) {
  JsonWriter body;
  body.Object().Field("apiVersion", resource.ApiVersion()).Field("kind", kind).Key("spec").Raw(spec);
  kube::Request request = kube::CreateRequest(resource, {}, body.End().Take());
  request.lane = kube::Lane::kRead;
  request.flow = "reviews";
  request.question = true;
  request.timeout = kTimeout;
  request.max_body = kMostAnswer;
  return request;
}

// The status of a review.
Result<Value> StatusOf(std::string_view json, std::string_view kind) {
  auto root = ParseJson(json);
  if (!root || !(*root)["status"].map() || (*root)["kind"].Text() != kind)
    return Error{fmt::format("the answer is not a {} with a status", kind)};
  return (*std::move(root)).Take("status");
}

std::vector<std::string> ListedTexts(const Value& list) {
  std::vector<std::string> texts;
  for (const Value& item : list.items()) {
    if (item.text()) texts.push_back(item.Text());
  }
  return texts;
}

Identity IdentityOf(const Value& user) {
  Identity who{
      .user = user["username"].Text(), .uid = user["uid"].Text(), .groups = ListedTexts(user["groups"])};
  for (const auto& [key, values] : user["extra"].members()) who.extra[key] = ListedTexts(values);
  return who;
}

bool Common(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const std::string& one) { return std::find(b.begin(), b.end(), one) != b.end(); });
}

}  // namespace

std::string Text(const Permission& permission) {
  if (!permission.path.empty()) return fmt::format("{} {}", permission.verb, permission.path);
  std::string text = fmt::format("{} {}", permission.verb, permission.resource);
  if (!permission.group.empty()) text += "." + permission.group;
  if (!permission.subresource.empty()) text += "/" + permission.subresource;
  if (!permission.name.empty()) text += " " + permission.name;
  return text +
         (permission.name_space.empty() ? " at the cluster scope" : " in namespace " + permission.name_space);
}

kube::Request TokenReview(std::string_view token, const std::vector<std::string>& audiences) {
  JsonWriter spec;
  spec.Object().Field("token", token);
  if (!audiences.empty()) spec.Texts("audiences", audiences);
  return Review(kTokenReviews, "TokenReview", spec.End().text());
}

Result<TokenAnswer> ReadTokenReview(std::string_view json, const std::vector<std::string>& audiences) {
  const auto status = StatusOf(json, "TokenReview");
  if (!status) return status.error();
  TokenAnswer answer;
  answer.authenticated = (*status)["authenticated"].Flag();
  answer.why_not = (*status)["error"].Text();
  if (!answer.authenticated) return answer;
  answer.who = IdentityOf((*status)["user"]);
  if (answer.who.user.empty()) return Error{"the TokenReview authenticates nobody: its user has no name"};
  // A server that does not know audiences names none: then the token is not for Voda.
  if (!audiences.empty() && !Common(audiences, ListedTexts((*status)["audiences"]))) {
    return TokenAnswer{.why_not = fmt::format("it is not for the audience {}", fmt::join(audiences, " or "))};
  }
  answer.why_not.clear();
  return answer;
}

kube::Request AccessReview(const Identity& who, const Permission& permission) {
  JsonWriter spec;
  spec.Object().Key(permission.path.empty() ? "resourceAttributes" : "nonResourceAttributes").Object();
  spec.Field("verb", permission.verb);
  if (permission.path.empty()) {
    spec.FieldIf("group", permission.group).Field("resource", permission.resource);
    spec.FieldIf("subresource", permission.subresource).FieldIf("name", permission.name);
    spec.FieldIf("namespace", permission.name_space);
  } else {
    spec.Field("path", permission.path);
  }
  spec.End().Field("user", who.user).FieldIf("uid", who.uid);
  if (!who.groups.empty()) spec.Texts("groups", who.groups);
  if (!who.extra.empty()) {
    spec.Key("extra").Object();
    for (const auto& [key, values] : who.extra) spec.Texts(key, values);
    spec.End();
  }
  return Review(kAccessReviews, "SubjectAccessReview", spec.End().text());
}

Result<AccessAnswer> ReadAccessReview(std::string_view json) {
  const auto status = StatusOf(json, "SubjectAccessReview");
  if (!status) return status.error();
  AccessAnswer answer;
  answer.allowed = (*status)["allowed"].Flag() && !(*status)["denied"].Flag();
  answer.reason = (*status)["reason"].Text();
  // A binding to a deleted role gives such an error, which is no reason to doubt the answer.
  if (answer.reason.empty()) answer.reason = (*status)["evaluationError"].Text();
  return answer;
}

}  // namespace voda::kubeflow
