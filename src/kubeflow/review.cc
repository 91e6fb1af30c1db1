#include "kubeflow/review.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "kube/json_text.h"
#include "kube/patch.h"

namespace voda::kubeflow {

const kube::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews", false};
const kube::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews", false};

namespace {

namespace dom = simdjson::dom;

constexpr kube::Duration kTimeout{10'000};
// An answer repeats the question: the token, or the groups of its owner.
constexpr std::size_t kMostAnswer = std::size_t{256} << 10;

std::string JsonList(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ",") + kube::JsonText(text);
  return "[" + list + "]";
}

// Whoever asks waits, and strangers can make us ask: not in the lane of the writes that carry out plans.
kube::Request Review(const kube::Resource& resource, std::string_view kind, const kube::Members& spec) {
  kube::Request request = kube::CreateRequest(resource, {},
                                              kube::Members()
                                                  .Text("apiVersion", resource.ApiVersion())
                                                  .Text("kind", kind)
                                                  .Raw("spec", spec.Object())
                                                  .Object());
  request.lane = kube::Lane::kRead;
  request.flow = "reviews";
  request.timeout = kTimeout;
  request.max_body = kMostAnswer;
  return request;
}

// The status of a review; the parser owns what it shows.
Result<dom::element> StatusOf(dom::parser& parser, std::string_view json, std::string_view kind) {
  dom::element root;
  dom::element status;
  std::string_view given;
  if (parser.parse(json.data(), json.size(), false).get(root) || root.at_key("kind").get(given) ||
      given != kind || root.at_key("status").get(status) || !status.is_object()) {
    return Error{fmt::format("the answer is not a {} with a status", kind)};
  }
  return status;
}

std::string TextAt(const dom::element& object, std::string_view key) {
  std::string_view text;
  return object.at_key(key).get(text) ? std::string() : std::string(text);
}

bool FlagAt(const dom::element& object, std::string_view key) {
  bool flag = false;
  return !object.at_key(key).get(flag) && flag;
}

// Of an element, or of what was looked for.
template <class List>
std::vector<std::string> Texts(const List& list) {
  std::vector<std::string> texts;
  dom::array items;
  if (list.get(items)) return texts;
  for (const dom::element item : items) {
    std::string_view text;
    if (!item.get(text)) texts.emplace_back(text);
  }
  return texts;
}

Identity IdentityOf(const dom::element& user) {
  Identity who;
  who.user = TextAt(user, "username");
  who.uid = TextAt(user, "uid");
  who.groups = Texts(user.at_key("groups"));
  dom::object extra;
  if (!user.at_key("extra").get(extra)) {
    for (const auto& [key, values] : extra) who.extra[std::string(key)] = Texts(values);
  }
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
  kube::Members spec;
  spec.Text("token", token);
  if (!audiences.empty()) spec.Raw("audiences", JsonList(audiences));
  return Review(kTokenReviews, "TokenReview", spec);
}

Result<TokenAnswer> ReadTokenReview(std::string_view json, const std::vector<std::string>& audiences) {
  dom::parser parser;
  const auto status = StatusOf(parser, json, "TokenReview");
  if (!status) return status.error();
  TokenAnswer answer;
  answer.authenticated = FlagAt(*status, "authenticated");
  answer.why_not = TextAt(*status, "error");
  if (!answer.authenticated) return answer;
  dom::element user;
  if (!status->at_key("user").get(user)) answer.who = IdentityOf(user);
  if (answer.who.user.empty()) return Error{"the TokenReview authenticates nobody: its user has no name"};
  // A server that knows of no audiences names none: the token is then for the API server and not for Voda.
  if (!audiences.empty() && !Common(audiences, Texts(status->at_key("audiences")))) {
    return TokenAnswer{.why_not = fmt::format("it is not for the audience {}", fmt::join(audiences, " or "))};
  }
  answer.why_not.clear();
  return answer;
}

kube::Request AccessReview(const Identity& who, const Permission& permission) {
  kube::Members attributes;
  attributes.Text("verb", permission.verb);
  if (permission.path.empty()) {
    attributes.TextIf("group", permission.group).Text("resource", permission.resource);
    attributes.TextIf("subresource", permission.subresource).TextIf("name", permission.name);
    attributes.TextIf("namespace", permission.name_space);
  } else {
    attributes.Text("path", permission.path);
  }
  kube::Members spec;
  spec.Raw(permission.path.empty() ? "resourceAttributes" : "nonResourceAttributes", attributes.Object());
  spec.Text("user", who.user).TextIf("uid", who.uid);
  if (!who.groups.empty()) spec.Raw("groups", JsonList(who.groups));
  kube::Members extra;
  for (const auto& [key, values] : who.extra) extra.Raw(key, JsonList(values));
  if (!extra.empty()) spec.Raw("extra", extra.Object());
  return Review(kAccessReviews, "SubjectAccessReview", spec);
}

Result<AccessAnswer> ReadAccessReview(std::string_view json) {
  dom::parser parser;
  const auto status = StatusOf(parser, json, "SubjectAccessReview");
  if (!status) return status.error();
  AccessAnswer answer;
  answer.allowed = FlagAt(*status, "allowed") && !FlagAt(*status, "denied");
  answer.reason = TextAt(*status, "reason");
  // A binding to a role that is gone is such an error, and no reason to doubt the answer.
  if (answer.reason.empty()) answer.reason = TextAt(*status, "evaluationError");
  return answer;
}

}  // namespace voda::kubeflow
