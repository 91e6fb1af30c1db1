#include "service/permissions.h"

#include <gtest/gtest.h>

#include <set>

namespace voda {
namespace {

const kube::ObjectKey kSettings{"voda-system", "voda-settings"};

std::string Needed(const PermissionQuestion& question) {
  std::string text;
  for (const kubeflow::Permission& permission : PermissionsFor(question, kSettings))
    text += (text.empty() ? "" : "; ") + kubeflow::Text(permission);
  return text;
}

TEST(Permissions, OfOneJobAreThoseOfItsKindInItsNamespace) {
  const std::string job = "team/resnet";
  const auto of = [&](const char* method, const char* pattern,
                      std::optional<JobKind> kind = JobKind::kMpiJob) {
    return PermissionsFor({method, pattern, job, kind, ""}, kSettings);
  };
  const auto get = of("GET", "/api/v1/jobs/{}");
  ASSERT_EQ(get.size(), 1U);
  EXPECT_EQ(get[0].verb, "get");
  EXPECT_EQ(get[0].resource, "mpijobs");
  EXPECT_EQ(get[0].group, "kubeflow.org");
  EXPECT_EQ(get[0].name_space, "team");
  EXPECT_EQ(get[0].name, "resnet");
  EXPECT_EQ(of("DELETE", "/api/v1/jobs/{}")[0].verb, "delete");
  EXPECT_EQ(of("PATCH", "/api/v1/jobs/{}")[0].verb, "patch");
  EXPECT_EQ(of("POST", "/api/v1/jobs/{}/hold")[0].verb, "patch");
  EXPECT_EQ(of("POST", "/api/v1/jobs/{}/resume", JobKind::kPyTorchJob)[0].resource, "pytorchjobs");
  EXPECT_EQ(of("GET", "/api/v1/jobs/{}/explain")[0].verb, "get");
  EXPECT_EQ(of("GET", "/api/v1/jobs/{}", std::nullopt).size(), 2U) << "nobody learns whether a job exists";
  const auto logs = of("GET", "/api/v1/jobs/{}/logs");
  EXPECT_EQ(logs[0].resource, "pods");
  EXPECT_EQ(logs[0].subresource, "log");
  EXPECT_EQ(logs[0].name_space, "team");
}

// Whoever is refused is told the same whether there is such a job or not, and whatever its kind.
TEST(Permissions, ARefusalDoesNotTellWhetherAJobExists) {
  for (const char* method : {"GET", "PATCH", "DELETE"}) {
    std::set<std::string> told;
    for (const std::optional<JobKind> kind :
         {std::optional<JobKind>(), std::optional(JobKind::kMpiJob), std::optional(JobKind::kPyTorchJob)}) {
      for (const auto& permission :
           PermissionsFor({method, "/api/v1/jobs/{}", "team/resnet", kind, ""}, kSettings))
        told.insert(permission.told);
    }
    EXPECT_EQ(told.size(), 1U);
    EXPECT_NE(*told.begin(), "");
  }
}

TEST(Permissions, OfWhatConcernsAll) {
  const auto list = PermissionsFor({"GET", "/api/v1/jobs", "", {}, ""}, kSettings);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].verb, "list");
  EXPECT_EQ(list[0].name_space, "");
  EXPECT_EQ(PermissionsFor({"GET", "/api/v1/jobs", "", {}, "team"}, kSettings)[1].name_space, "team");
  EXPECT_EQ(PermissionsFor({"GET", "/api/v1/events", "", {}, "team"}, kSettings)[0].name_space, "team");
  for (const char* pattern : {"/api/v1/plan", "/api/v1/rounds", "/training"})
    EXPECT_EQ(PermissionsFor({"GET", pattern, "", {}, "team"}, kSettings)[0].name_space, "") << pattern;
  for (const char* pattern : {"/api/v1/plan", "/api/v1/rounds", "/api/v1/events", "/training"})
    EXPECT_EQ(PermissionsFor({"GET", pattern, "", {}, ""}, kSettings).size(), 2U) << pattern;
  EXPECT_EQ(PermissionsFor({"GET", "/metrics", "", {}, ""}, kSettings)[0].path, "/metrics");
  EXPECT_EQ(PermissionsFor({"GET", "/api/v1/nodes", "", {}, ""}, kSettings).back().resource, "nodes");
  EXPECT_EQ(PermissionsFor({"GET", "/api/v1/nodes", "", {}, ""}, kSettings).size(), 3U)
      << "it names their jobs";
  for (const char* pattern : {"/api/v1/settings", "/algorithm", "/ratelimit"}) {
    const auto set = PermissionsFor({"PUT", pattern, "", {}, ""}, kSettings);
    ASSERT_EQ(set.size(), 1U) << pattern;
    EXPECT_EQ(set[0].resource, "configmaps");
    EXPECT_EQ(set[0].name, "voda-settings");
    EXPECT_EQ(set[0].verb, "update");
  }
  EXPECT_EQ(Needed({"GET", "/api/v1/algorithms", "", {}, ""}), "");
  EXPECT_EQ(Needed({"POST", "/api/v1/plan", "", {}, ""}), "");
}

TEST(Permissions, ToCreateAskOnceForEachKindAndNamespace) {
  std::vector<JobSpec> specs(4);
  specs[0].name_space = specs[1].name_space = "a";
  specs[2].name_space = "b";
  specs[3].name_space = "a";
  specs[3].kind = JobKind::kMpiJob;
  const auto needed = PermissionsToCreate(specs);
  ASSERT_EQ(needed.size(), 3U);
  for (const auto& permission : needed) EXPECT_EQ(permission.verb, "create");
}

TEST(Permissions, AKeyIsKnownAgainFromTheSameUserInTheSameNamespacesOnly) {
  const auto scoped = [](std::vector<std::string> name_spaces, const std::string& user,
                         std::string_view key = "k") {
    std::vector<JobSpec> specs;
    for (std::string& name_space : name_spaces) specs.emplace_back().name_space = std::move(name_space);
    return ScopedKey(key, specs, user);
  };
  const std::string first = scoped({"team-a"}, "eve");
  EXPECT_EQ(scoped({"team-a"}, "eve"), first);
  EXPECT_NE(scoped({"team-b"}, "eve"), first);
  EXPECT_NE(scoped({"team-a"}, "mallory"), first);
  EXPECT_NE(scoped({"team-a", "team-b"}, "eve"), first);
  EXPECT_NE(scoped({"team-a"}, "eve", "j"), first);
  EXPECT_NE(scoped({}, "team-a, eve"), first) << "names do not run into each other";
}

}  // namespace
}  // namespace voda
