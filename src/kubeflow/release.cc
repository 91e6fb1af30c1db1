#include "kubeflow/release.h"

#include <fmt/format.h>

#include <utility>

#include "document/documents.h"
#include "document/json_text.h"
#include "kube/patch.h"
#include "kubeflow/objects.h"
#include "kubeflow/writes.h"

namespace voda::kubeflow {

namespace {

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
    // Templates come first: then no new pod waits for a gate.
    for (const std::string& name_space : namespaces) {
      for (const JobKind kind : {JobKind::kMpiJob, JobKind::kPyTorchJob}) {
        const kube::Resource resource =
            JobResource(kind, kind == JobKind::kMpiJob ? options_.mpi_version : std::string("v1"));
        Each(resource, name_space, [&](const Value& job) { OfJob(resource, kind, job); });
      }
    }
    for (const std::string& name_space : namespaces)
      Each(kPods, name_space, [&](const Value& pod) { OfPod(pod); });
    Each(kNodes, "", [&](const Value& node) { OfNode(node); });
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
      const auto page = ParseJson(reply.body);
      if (!page || page->Find("items") == nullptr) return Fail("the API server answers without a list");
      (*page)["items"].ForEach(look);
      next = page->At("/metadata/continue").Text();
    } while (!next.empty());
  }

  static std::string NameOf(const Value& object) {
    const std::string& name_space = object.At("/metadata/namespace").Text();
    const std::string& name = object.At("/metadata/name").Text();
    return name_space.empty() ? name : name_space + "/" + name;
  }

  void OfJob(const kube::Resource& resource, JobKind kind, const Value& job) {
    if (job.At("/metadata/labels").Find(kQueueLabel) == nullptr) return;
    if (job.At("/spec/runPolicy/suspend").Flag())
      released_.suspended.push_back(fmt::format("{} {}", Name(kind), NameOf(job)));
    const auto remove = [specs = ReplicaSpecs(kind)](const Value& now, kube::JsonPatch& patch) {
      bool any = false;
      for (const char* type : {"Launcher", "Master", "Worker"}) {
        any = RemoveGate(now, fmt::format("{}/{}/template/spec/schedulingGates", specs, type), patch) || any;
      }
      return any;
    };
    if (Take(resource, job, fmt::format("{} {}: the gate of its template", Name(kind), NameOf(job)), remove))
      ++released_.templates;
  }

  void OfPod(const Value& pod) {
    const auto remove = [](const Value& now, kube::JsonPatch& patch) {
      return RemoveGate(now, "/spec/schedulingGates", patch);
    };
    if (Take(kPods, pod, fmt::format("pod {}: its gate", NameOf(pod)), remove)) ++released_.pods;
  }

  void OfNode(const Value& node) {
    const auto remove = [](const Value& now, kube::JsonPatch& patch) {
      const Value::List& taints = now.At("/spec/taints").items();
      bool any = false;
      for (std::size_t i = taints.size(); i-- > 0;) {  // backwards, to keep the positions
        if (taints[i]["key"].Text() != kTaint) continue;
        patch.Remove(fmt::format("/spec/taints/{}", i));
        any = true;
      }
      return any;
    };
    if (Take(kNodes, node, fmt::format("node {}: its taint", NameOf(node)), remove)) ++released_.nodes;
  }

  static bool RemoveGate(const Value& object, const std::string& pointer, kube::JsonPatch& patch) {
    const Value::List& gates = object.At(pointer).items();
    for (std::size_t i = 0; i < gates.size(); ++i) {
      if (gates[i]["name"].Text() != kGate) continue;
      patch.Test(fmt::format("{}/{}/name", pointer, i), Quoted(kGate))
          .Remove(fmt::format("{}/{}", pointer, i));
      return true;
    }
    return false;
  }

  // Patches the object, anew if it has changed meanwhile. Returns whether something was taken away.
  template <class Remove>
  bool Take(const kube::Resource& resource, Value object, const std::string& what, const Remove& remove) {
    const kube::ObjectKey key{object.At("/metadata/namespace").Text(), object.At("/metadata/name").Text()};
    for (int attempt = 0; attempt < kTries; ++attempt) {
      kube::JsonPatch patch;
      patch.TestUid(object.At("/metadata/uid").Text())
          .TestResourceVersion(object.At("/metadata/resourceVersion").Text());
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
      auto read = ParseJson(now.body);
      if (!read || !read->map()) return false;
      object = *std::move(read);
    }
    Fail(fmt::format("{}: it changes all the time; try again", what));
    return false;
  }

  // Only the first error is reported; whatever can be released still is.
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
