// Reviews: asking the API server whose a token is (TokenReview) and what its owner may do
// (SubjectAccessReview). There are only requests and answers here; access.h decides when to ask.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/request.h"

namespace voda::kubeflow {

extern const kube::Resource kTokenReviews;
extern const kube::Resource kAccessReviews;

// The owner of a token, as the API server knows it; all of it counts when rights are asked for.
struct Identity {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

// What a caller wants to do: to a resource, or with a path that belongs to none, such as /metrics.
struct Permission {
  std::string verb;  // "create"
  std::string group;
  std::string resource;     // "mpijobs"
  std::string subresource;  // "scale"; empty if there is none
  std::string name_space;   // empty means all, or that the resource has none
  std::string name;         // empty means any
  std::string path;         // if not empty, only this and the verb count
  // What a refusal names instead of this, where the caller must not learn by it which right was asked for.
  std::string told{};
};

// "create mpijobs.kubeflow.org in namespace team-b", as in "user jane may not ...".
std::string Text(const Permission& permission);

// A token for other audiences is refused; if there are none, the token must be for the API server.
kube::Request TokenReview(std::string_view token, const std::vector<std::string>& audiences);

struct TokenAnswer {
  bool authenticated = false;
  Identity who;
  std::string why_not;
};
Result<TokenAnswer> ReadTokenReview(std::string_view json, const std::vector<std::string>& audiences);

kube::Request AccessReview(const Identity& who, const Permission& permission);

struct AccessAnswer {
  bool allowed = false;
  std::string reason;  // from the authorizer; often empty
};
Result<AccessAnswer> ReadAccessReview(std::string_view json);

}  // namespace voda::kubeflow
