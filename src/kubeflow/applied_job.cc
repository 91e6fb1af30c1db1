#include "kubeflow/applied_job.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "document/tree_builder.h"
#include "document/value.h"
#include "kubeflow/names.h"
#include "spec/template_rules.h"

namespace voda::kubeflow {

namespace {

// Metadata that is not part of what the user asks for: what the API server adds, and owners and finalizers,
// which the user's own rights allowed.
constexpr std::array<std::string_view, 8> kOfTheServer = {
    "uid",           "resourceVersion", "creationTimestamp", "generation",
    "managedFields", "selfLink",        "ownerReferences",   "finalizers"};

// Copies an object into the tree that the readers of job specs take, within their limits.
class Copier {
 public:
  explicit Copier(TreeBuilder& tree) : tree_(tree) {}

  // Copies the job as its user wrote it, without what the API server and Voda added.
  bool Job(const kube::JsonView& object) {
    return Map(object, [&](std::string_view key, const kube::JsonView& member) {
      if (key == "status") return true;
      return tree_.Key(std::string(key)) && (key == "metadata" ? Metadata(member) : Copy(member));
    });
  }

 private:
  bool Metadata(const kube::JsonView& metadata) {
    if (!metadata.map()) return Copy(metadata);
    return Map(metadata, [&](std::string_view key, const kube::JsonView& member) {
      if (std::find(kOfTheServer.begin(), kOfTheServer.end(), key) != kOfTheServer.end()) return true;
      return tree_.Key(std::string(key)) && (key == "annotations" ? Annotations(member) : Copy(member));
    });
  }

  bool Annotations(const kube::JsonView& annotations) {
    if (!annotations.map()) return Copy(annotations);
    return Map(annotations, [&](std::string_view key, const kube::JsonView& member) {
      return IsRecord(key) || (tree_.Key(std::string(key)) && Copy(member));
    });
  }

  template <class Take>
  bool Map(const kube::JsonView& map, const Take& take) {
    bool ok = tree_.Open(Value::Kind::kMap);
    map.ForMembers([&](std::string_view key, const kube::JsonView& member) { ok = ok && take(key, member); });
    return ok && tree_.Close();
  }

  bool Copy(const kube::JsonView& json) {
    using Kind = kube::JsonView::Kind;
    switch (json.kind()) {
      case Kind::kAbsent:
      case Kind::kNull:
        return tree_.Scalar({});
      case Kind::kBool:
        return tree_.Scalar(json.Flag());
      case Kind::kInteger:
        return tree_.Scalar(json.Integer().value_or(0));
      case Kind::kReal:
        return tree_.Scalar(json.Real());
      case Kind::kText:
        return tree_.Scalar(json.Text());
      case Kind::kList: {
        bool ok = tree_.Open(Value::Kind::kList);
        json.ForEach([&](const kube::JsonView& item) { ok = ok && Copy(item); });
        return ok && tree_.Close();
      }
      case Kind::kMap:
        return Map(json, [&](std::string_view key, const kube::JsonView& member) {
          return tree_.Key(std::string(key)) && Copy(member);
        });
    }
    return false;
  }

  TreeBuilder& tree_;
};

}  // namespace

std::shared_ptr<const AppliedJob> ReadAppliedJob(JobKind kind, const kube::JsonView& object,
                                                 const std::set<std::string, std::less<>>& allowed) {
  static std::atomic<std::uint64_t> last = 0;
  AppliedJob job{.number = ++last, .outline = ReadOutline(kind, object)};
  job.token = job.outline.Token();
  SpecLimits limits;
  limits.named = true;
  limits.allowed = &allowed;
  TreeBuilder tree(limits);
  if (Copier(tree).Job(object)) {
    const std::vector<Value> documents = tree.Take();
    auto spec = ReadJobSpec(documents.front(), limits, RunAs::kContainers);
    if (spec) {
      job.dangers = spec->dangers;
      job.spec = std::make_shared<const JobSpec>(*std::move(spec));
    } else {
      job.dangers = DangersOf(documents.front(), allowed);
      job.error = spec.error().message;
    }
  } else {
    job.error = tree.error();
    job.dangers = {job.error};  // what cannot be read cannot be checked
  }
  return std::make_shared<const AppliedJob>(std::move(job));
}

}  // namespace voda::kubeflow
