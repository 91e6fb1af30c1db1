#include "kubeflow/release.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kube/json_text.h"
#include "kube/patch.h"
#include "kubeflow/objects.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {

namespace {

using Json = nlohmann::json;
constexpr int kPage = 500;
constexpr int kTries = 5;

class Releaser {
 public:
  Releaser(const ReleaseOptions& options, const std::function<kube::Reply(kube::Request)>& call,
           const std::function<void(const std::string&)>& say)
      : options_(options), call_(call), say_(say) {}

  Result<Released> Run() {
    const std::vector<std::string> namespaces =
        options_.namespaces.empty() ? std::vector<std::string>{""} : options_.namespaces;
    // Templates first: from then on no pod waits for a gate any more.
    for (const std::string& name_space : namespaces) {
      for (const JobKind kind : {JobKind::kMpiJob, JobKind::kPyTorchJob}) {
        const kube::Resource resource =
            JobResource(kind, kind == JobKind::kMpiJob ? options_.mpi_version : std::string("v1"));
        Each(resource, name_space, [&](const Json& job) { OfJob(resource, kind, job); });
      }
    }
    for (const std::string& name_space : namespaces)
      Each(kPods, name_space, [&](const Json& pod) { OfPod(pod); });
    Each(kNodes, "", [&](const Json& node) { OfNode(node); });
    if (!error_.empty()) return Error{error_};
    return released_;
  }

 private:
  template <class Look>
  void Each(const kube::Resource& resource, const std::string& name_space, const Look& look) {
    std::string next;
    do {
      kube::Request list;
      list.verb = kube::Verb::kList;
      list.path = kube::ResourcePath(resource, name_space) +
                  kube::Query({{"limit", std::to_string(kPage)}, {"continue", next}});
      const kube::Reply reply = call_(std::move(list));
      if (!reply.ok()) return Fail(fmt::format("list {}: {}", resource.plural, reply.error->Text()));
      const Json page = Json::parse(reply.body, nullptr, false);
      if (!page.is_object() || !page.contains("items")) return Fail("the API server answers without a list");
      for (const Json& object : page["items"]) look(object);
      next = page.value(Json::json_pointer("/metadata/continue"), std::string());
    } while (!next.empty());
  }

  static std::string NameOf(const Json& object) {
    const std::string name_space = object.value(Json::json_pointer("/metadata/namespace"), std::string());
    const std::string name = object.value(Json::json_pointer("/metadata/name"), std::string());
    return name_space.empty() ? name : name_space + "/" + name;
  }

  void OfJob(const kube::Resource& resource, JobKind kind, const Json& job) {
    const Json labels = job.value(Json::json_pointer("/metadata/labels"), Json::object());
    if (!labels.contains(kQueueLabel)) return;
    if (job.value(Json::json_pointer("/spec/runPolicy/suspend"), false))
      released_.suspended.push_back(fmt::format("{} {}", Name(kind), NameOf(job)));
    const std::string specs =
        kind == JobKind::kMpiJob ? "/spec/mpiReplicaSpecs" : "/spec/pytorchReplicaSpecs";
    const auto remove = [specs](const Json& now, kube::JsonPatch& patch) {
      bool any = false;
      for (const char* type : {"Launcher", "Master", "Worker"}) {
        any = RemoveGate(now, fmt::format("{}/{}/template/spec/schedulingGates", specs, type), patch) || any;
      }
      return any;
    };
    if (Take(resource, job, fmt::format("{} {}: the gate of its template", Name(kind), NameOf(job)), remove))
      ++released_.templates;
  }

  void OfPod(const Json& pod) {
    const auto remove = [](const Json& now, kube::JsonPatch& patch) {
      return RemoveGate(now, "/spec/schedulingGates", patch);
    };
    if (Take(kPods, pod, fmt::format("pod {}: its gate", NameOf(pod)), remove)) ++released_.pods;
  }

  void OfNode(const Json& node) {
    const auto remove = [](const Json& now, kube::JsonPatch& patch) {
      const Json taints = now.value(Json::json_pointer("/spec/taints"), Json::array());
      bool any = false;
      for (std::size_t i = taints.size(); i-- > 0;) {  // from behind: the others keep their places
        if (!taints[i].is_object() || taints[i].value("key", "") != kTaint) continue;
        patch.Remove(fmt::format("/spec/taints/{}", i));
        any = true;
      }
      return any;
    };
    if (Take(kNodes, node, fmt::format("node {}: its taint", NameOf(node)), remove)) ++released_.nodes;
  }

  static bool RemoveGate(const Json& object, const std::string& pointer, kube::JsonPatch& patch) {
    const Json gates = object.value(Json::json_pointer(pointer), Json::array());
    for (std::size_t i = 0; i < gates.size(); ++i) {
      if (!gates[i].is_object() || gates[i].value("name", "") != kGate) continue;
      patch.Test(fmt::format("{}/{}/name", pointer, i), kube::JsonText(kGate))
          .Remove(fmt::format("{}/{}", pointer, i));
      return true;
    }
    return false;
  }

  // Patches the object, anew where it has changed meanwhile. True: something was taken away.
  template <class Remove>
  bool Take(const kube::Resource& resource, Json object, const std::string& what, const Remove& remove) {
    const kube::ObjectKey key{object.value(Json::json_pointer("/metadata/namespace"), std::string()),
                              object.value(Json::json_pointer("/metadata/name"), std::string())};
    for (int attempt = 0; attempt < kTries; ++attempt) {
      kube::JsonPatch patch;
      patch.TestUid(object.value(Json::json_pointer("/metadata/uid"), std::string()))
          .TestResourceVersion(object.value(Json::json_pointer("/metadata/resourceVersion"), std::string()));
      if (!remove(object, patch)) return false;
      if (options_.dry_run) {
        say_("would take away " + what);
        return true;
      }
      const kube::Reply reply = call_(kube::JsonPatchRequest(resource, key, patch));
      if (reply.ok()) {
        say_("took away " + what);
        return true;
      }
      const kube::Reason reason = reply.error->reason;
      if (reason == kube::Reason::kNotFound) return false;
      if (reason != kube::Reason::kInvalid && reason != kube::Reason::kConflict) {
        Fail(fmt::format("{}: {}", what, reply.error->Text()));
        return false;
      }
      const kube::Reply now = call_(kube::GetRequest(resource, key));
      if (!now.ok()) return false;
      object = Json::parse(now.body, nullptr, false);
      if (!object.is_object()) return false;
    }
    Fail(fmt::format("{}: it changes all the time; try again", what));
    return false;
  }

  // The first is told; what can be released is released all the same.
  void Fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }

  const ReleaseOptions& options_;
  const std::function<kube::Reply(kube::Request)>& call_;
  const std::function<void(const std::string&)>& say_;
  Released released_;
  std::string error_;
};

}  // namespace

Result<Released> Release(const ReleaseOptions& options, const std::function<kube::Reply(kube::Request)>& call,
                         const std::function<void(const std::string&)>& say) {
  return Releaser(options, call, say).Run();
}

}  // namespace voda::kubeflow
