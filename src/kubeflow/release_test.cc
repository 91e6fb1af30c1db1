#include "kubeflow/release.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace voda::kubeflow {
namespace {

using Json = nlohmann::json;

// An API server with a few objects, by path.
class Server {
 public:
  kube::Reply operator()(const kube::Request& request) {
    const std::string path = request.path.substr(0, request.path.find('?'));
    if (request.verb == kube::Verb::kList) {
      Json items = Json::array();
      for (const auto& [at, object] : objects) {
        if (at.rfind(path + "/", 0) == 0 || At(path, object) == at) items.push_back(object);
      }
      return {.code = 200, .body = Json{{"metadata", Json::object()}, {"items", items}}.dump()};
    }
    const auto at = objects.find(path);
    if (at == objects.end()) return {.code = 404, .body = "", .error = kube::DecodeError(404, "")};
    if (request.verb == kube::Verb::kPatch) {
      ++writes;
      if (refuse-- > 0) return {.code = 422, .body = "", .error = kube::DecodeError(422, "")};
      at->second = at->second.patch(Json::parse(request.body));
    }
    return {.code = 200, .body = at->second.dump()};
  }

  std::map<std::string, Json> objects;
  int writes = 0;
  int refuse = 0;

 private:
  // "/api/v1/pods" lists "/api/v1/namespaces/a/pods/b".
  static std::string At(const std::string& path, const Json& object) {
    const auto slash = path.rfind('/');
    if (!object["metadata"].contains("namespace")) return {};
    return path.substr(0, slash) + "/namespaces/" + object["metadata"]["namespace"].get<std::string>() +
           path.substr(slash) + "/" + object["metadata"]["name"].get<std::string>();
  }
};

Server Cluster() {
  Server server;
  server.objects["/api/v1/nodes/n"] =
      Json::parse(R"({"metadata": {"name": "n", "uid": "1", "resourceVersion": "1"},
    "spec": {"taints": [{"key": "vodascheduler/hostname", "value": "n"}, {"key": "theirs"}]}})");
  server.objects["/api/v1/namespaces/a/pods/p"] =
      Json::parse(R"({"metadata": {"name": "p", "namespace": "a", "uid": "2", "resourceVersion": "1"},
      "spec": {"schedulingGates": [{"name": "theirs"}, {"name": "vodascheduler/placement"}]}})");
  server.objects["/apis/kubeflow.org/v1/namespaces/a/pytorchjobs/j"] = Json::parse(
      R"({"metadata": {"name": "j", "namespace": "a", "uid": "3", "resourceVersion": "1",
                       "labels": {"vodascheduler/queue": "default"}},
      "spec": {"runPolicy": {"suspend": true}, "pytorchReplicaSpecs": {"Worker": {"template": {"spec": {
          "schedulingGates": [{"name": "vodascheduler/placement"}]}}}}}})");
  return server;
}

Result<Released> RunRelease(Server& server, const ReleaseOptions& options = {}) {
  return Release(
      options, [&](const kube::Request& request) { return server(request); }, [](const std::string&) {});
}

TEST(Release, TakesOnlyVodasOwnAway) {
  Server server = Cluster();
  server.refuse = 1;  // something changed meanwhile, so it looks again
  const auto released = RunRelease(server);
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_EQ(released->templates, 1);
  EXPECT_EQ(released->pods, 1);
  EXPECT_EQ(released->nodes, 1);
  EXPECT_EQ(released->suspended, std::vector<std::string>{"PyTorchJob a/j"});
  EXPECT_EQ(server.objects["/api/v1/nodes/n"]["spec"]["taints"], Json::parse(R"([{"key": "theirs"}])"));
  EXPECT_EQ(server.objects["/api/v1/namespaces/a/pods/p"]["spec"]["schedulingGates"],
            Json::parse(R"([{"name": "theirs"}])"));
  const int writes = server.writes;
  ASSERT_TRUE(RunRelease(server));
  EXPECT_EQ(server.writes, writes) << "the second time there is nothing left";
}

TEST(Release, DryRunWritesNothing) {
  Server server = Cluster();
  const auto released = RunRelease(server, {.namespaces = {"a"}, .mpi_version = "v2beta1", .dry_run = true});
  ASSERT_TRUE(released);
  EXPECT_EQ(released->templates + released->pods + released->nodes, 3);
  EXPECT_EQ(server.writes, 0);
}

}  // namespace
}  // namespace voda::kubeflow
