// Reviews: asking the API server whose a token is (TokenReview) and what somebody may do
// (SubjectAccessReview). Requests and answers alone; access.h decides when to ask.
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

// Whom the API server takes somebody for; all of it counts when rights are asked for.
struct Identity {
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

// What somebody wants to do: to a resource, or with a path that belongs to none, such as /metrics.
struct Permission {
  std::string verb;  // "create"
  std::string group;
  std::string resource;     // "mpijobs"
  std::string subresource;  // "scale"; empty: none
  std::string name_space;   // empty: all, or the resource has none
  std::string name;         // empty: any
  std::string path;         // not empty: this, and of the others the verb alone
};

// "create mpijobs.kubeflow.org in namespace team-b", as in "user jane may not ...".
std::string Text(const Permission& permission);

// A token for others than these audiences is refused; without any, those of the API server count.
kube::Request TokenReview(std::string_view token, const std::vector<std::string>& audiences);

struct TokenAnswer {
  bool authenticated = false;
  Identity who;
  std::string why_not;
};
// `json` is padded (kube/json_read.h), here and below.
Result<TokenAnswer> ReadTokenReview(std::string_view json, const std::vector<std::string>& audiences);

kube::Request AccessReview(const Identity& who, const Permission& permission);

struct AccessAnswer {
  bool allowed = false;
  std::string reason;  // the authorizer's, often empty
};
Result<AccessAnswer> ReadAccessReview(std::string_view json);

}  // namespace voda::kubeflow
