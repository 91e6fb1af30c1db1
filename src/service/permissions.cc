#include "service/permissions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace voda {

namespace {

using kubeflow::Permission;

Permission OfJobs(std::string verb, JobKind kind, std::string name_space, std::string name) {
  return {.verb = std::move(verb),
          .group = "kubeflow.org",
          .resource = kind == JobKind::kMpiJob ? "mpijobs" : "pytorchjobs",
          .subresource = {},
          .name_space = std::move(name_space),
          .name = std::move(name),
          .path = {}};
}

std::vector<Permission> OfKinds(const std::string& verb, std::optional<JobKind> kind,
                                const std::string& name_space, const std::string& name) {
  if (kind) return {OfJobs(verb, *kind, name_space, name)};
  return {OfJobs(verb, JobKind::kMpiJob, name_space, name),
          OfJobs(verb, JobKind::kPyTorchJob, name_space, name)};
}

// What a request about one job does to its object.
std::string VerbOf(std::string_view method, std::string_view pattern) {
  if (method == "DELETE") return "delete";
  if (method == "PATCH" || pattern.ends_with("/hold") || pattern.ends_with("/resume")) return "patch";
  return "get";
}

}  // namespace

std::vector<Permission> PermissionsFor(const PermissionQuestion& question, const kube::ObjectKey& settings) {
  const std::string_view pattern = question.pattern;
  const bool reads = question.method == "GET";
  if (!question.job.empty()) {
    const auto slash = question.job.find('/');
    const std::string name_space = question.job.substr(0, slash);
    const std::string name = slash == std::string::npos ? std::string() : question.job.substr(slash + 1);
    if (pattern.ends_with("/logs")) {
      return {{.verb = "get",
               .group = {},
               .resource = "pods",
               .subresource = "log",
               .name_space = name_space,
               .name = {},
               .path = {}}};
    }
    // Its kind is known only if there is such a job, so a refusal does not depend on it.
    const std::string verb = VerbOf(question.method, pattern);
    auto needed = OfKinds(verb, question.kind, name_space, name);
    for (Permission& permission : needed)
      permission.told =
          fmt::format("{} mpijobs or pytorchjobs of kubeflow.org in namespace {}", verb, name_space);
    return needed;
  }
  if (pattern == "/metrics") {
    return {{.verb = "get",
             .group = {},
             .resource = {},
             .subresource = {},
             .name_space = {},
             .name = {},
             .path = "/metrics"}};
  }
  if (pattern.starts_with("/api/v1/nodes")) {
    // A node names the jobs on it.
    std::vector<Permission> needed = reads ? OfKinds("list", {}, {}, {}) : std::vector<Permission>();
    needed.push_back({.verb = reads ? "list" : "update",
                      .group = {},
                      .resource = "nodes",
                      .subresource = {},
                      .name_space = {},
                      .name = {},
                      .path = {}});
    return needed;
  }
  const bool sets = question.method == "PUT" &&
                    (pattern == "/api/v1/settings" || pattern == "/algorithm" || pattern == "/ratelimit");
  if (sets) {
    return {{.verb = "update",
             .group = {},
             .resource = "configmaps",
             .subresource = {},
             .name_space = settings.name_space,
             .name = settings.name,
             .path = {}}};
  }
  // These name jobs: of all who have any, or of one namespace where they can be restricted to it.
  static const std::set<std::string_view> kOfNamespaces = {"/api/v1/jobs", "/api/v1/events"};
  static const std::set<std::string_view> kOfAll = {"/api/v1/plan", "/api/v1/rounds", "/training"};
  if (reads && kOfNamespaces.contains(pattern)) return OfKinds("list", {}, question.name_space, {});
  if (reads && kOfAll.contains(pattern)) return OfKinds("list", {}, {}, {});
  return {};  // what is computed from the request alone, and what says nothing of anybody
}

std::vector<Permission> PermissionsToCreate(const std::vector<JobSpec>& specs) {
  std::set<std::pair<JobKind, std::string>> asked;
  std::vector<Permission> needed;
  for (const JobSpec& spec : specs) {
    if (asked.emplace(spec.kind, spec.name_space).second)
      needed.push_back(OfJobs("create", spec.kind, spec.name_space, {}));
  }
  return needed;
}

std::string ScopedKey(std::string_view key, const std::vector<JobSpec>& specs, const std::string& user) {
  // Neither a key nor a namespace has a space or a comma in it; what a user is called is not ours to say. The
  // namespaces are read back from it (kubeflow/submissions.cc).
  std::string scoped = fmt::format("{} ", key);
  for (const JobSpec& spec : specs) scoped += spec.name_space + ",";
  return scoped + " " + user;
}

}  // namespace voda
