#include "spec/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "document/documents.h"
#include "document/field.h"
#include "document/json_text.h"
#include "document/path.h"
#include "spec/kinds.h"
#include "spec/names.h"
#include "spec/settings.h"
#include "spec/template_rules.h"

namespace voda {

namespace {

constexpr std::array<std::string_view, 5> kJobFields = {"apiVersion", "kind", "metadata", "spec", "status"};
constexpr std::array<std::string_view, 4> kListFields = {"apiVersion", "kind", "metadata", "items"};
constexpr std::size_t kListedNames = 24;

struct KnownKind {
  std::string_view kind;
  std::string_view api_version;
  JobKind value;
};

constexpr std::array kKnownKinds = {
    KnownKind{"MPIJob", "kubeflow.org/v1", JobKind::kMpiJob},
    KnownKind{"MPIJob", "kubeflow.org/v2beta1", JobKind::kMpiJob},
    KnownKind{"PyTorchJob", "kubeflow.org/v1", JobKind::kPyTorchJob},
};

void ReadKind(const Field& root, JobSpec& job) {
  const Field kind = root.At("kind");
  const Field version = root.At("apiVersion");
  const std::string kind_text = kind.Text().value_or("");
  job.api_version = version.Text().value_or("");
  bool kind_known = false;
  for (const KnownKind& known : kKnownKinds) {
    if (known.kind != kind_text) continue;
    kind_known = true;
    job.kind = known.value;
    if (known.api_version == job.api_version) return;
  }
  const Field& wrong = kind_known ? version : kind;
  wrong.Fail(
      fmt::format("{}; give MPIJob of kubeflow.org/v1 or kubeflow.org/v2beta1, or PyTorchJob of "
                  "kubeflow.org/v1",
                  wrong.present() ? wrong.Show() + " is not known" : "missing"));
}

void ReadMetadata(const Field& metadata, JobSpec& job) {
  if (!metadata.present()) metadata.Fail("missing; give at least name");
  const Field name_space = metadata.At("namespace");
  job.names_namespace = name_space.Text().has_value();
  job.name_space = name_space.Text().value_or(job.name_space);
  if (!spec::IsLabel(job.name_space)) {
    name_space.Fail(
        fmt::format("{} is not a namespace; give at most 63 of a-z, 0-9 and '-'", name_space.Show()));
  }

  Field name = metadata.At("name");
  const Field generate = metadata.At("generateName");
  const std::string generated = generate.Text().value_or("");
  job.name = name.Text().value_or("");
  if (job.name.empty() && !generated.empty()) {
    job.name = generated;
    while (!job.name.empty() && job.name.back() == '-') job.name.pop_back();
    name = generate;
  }
  if (!name.present()) name.Fail("missing; give the job a name, or a generateName");
  if (!spec::IsLabel(job.name)) {
    name.Fail(
        fmt::format("{} is not a name; give at most 63 of a-z, 0-9 and '-', with a letter or digit at both "
                    "ends",
                    name.Show()));
  }
  job.category = spec::CategoryOf(job.name, generated);
  const Field queue = metadata.At("labels").At(kOtherQueueLabel);
  if (queue.present()) {
    metadata.report().Warn(
        fmt::format("{} hands the job to Kueue on Kubernetes; two schedulers would contend "
                    "for it, remove the label.",
                    queue.path()));
  }
}

void CheckNameLength(const Field& metadata, const JobSpec& job, bool named) {
  const int longest = spec::LongestJobName(job.limits.max, named);
  const int length = static_cast<int>(job.name.size());
  if (length <= longest) return;
  const std::string_view field = metadata.At("name").present() ? "name" : "generateName";
  metadata.At(field).Fail(
      fmt::format("{} has {} characters, the limit is {}: {}the number of the worker {} added for the "
                  "names of its pods, which take 63; shorten it",
                  QuotedBrief(job.name), length, longest, named ? "" : "a time and ", named ? "is" : "are"));
}

// What each container of a worker asks for: its limits, and requests for what has no limit.
std::vector<ResourceAmount> WorkerResources(const Value& replicas) {
  std::vector<ResourceAmount> all;
  const Value& worker = replicas[replicas["Worker"].present() ? "Worker" : "Master"];
  for (const Value& container : worker.At("/template/spec/containers").items()) {
    const Value& limits = container.At("/resources/limits");
    const auto take = [&](const std::string& resource, const Value& amount) {
      all.push_back({resource, amount.text() ? amount.Text() : ToJson(amount)});
    };
    for (const auto& [resource, amount] : limits.members()) take(resource, amount);
    for (const auto& [resource, amount] : container.At("/resources/requests").members()) {
      if (limits.Find(resource) == nullptr) take(resource, amount);
    }
  }
  return all;
}

void ReadForClusters(const Value& document, const SpecLimits& limits, JobSpec& job) {
  if (const Value* queue = document.At("/metadata/labels").Find(kOtherQueueLabel))
    job.other_queue = queue->text() ? queue->Text() : ToJson(*queue);
  job.worker_resources = WorkerResources(document.At(ReplicaSpecs(job.kind)));
  if (limits.allowed != nullptr) job.dangers = DangersOf(document, *limits.allowed);
}

// The warnings, and one more that lists what is ignored where there are no containers.
std::vector<std::string> WarningsOf(const Report& report, RunAs run_as) {
  std::vector<std::string> warnings = report.warnings();
  const auto& ignored = report.ignored();
  if (ignored.empty() || run_as == RunAs::kContainers) return warnings;
  std::string names;
  std::size_t listed = 0;
  for (const std::string& name : ignored) {
    if (++listed > kListedNames) break;
    names += names.empty() ? name : ", " + name;
  }
  if (ignored.size() > kListedNames) names += fmt::format(" and {} more", ignored.size() - kListedNames);
  warnings.push_back(fmt::format("{}: {}.", kIgnoredHere, names));
  return warnings;
}

Result<JobSpec> ReadJobAt(const Value& value, const std::string& path, const SpecLimits& limits,
                          RunAs run_as) {
  Report report;
  JobSpec job;
  const Field root(&value, path, report);
  if (!value.map()) {
    root.Fail(
        fmt::format("{} is not a job; give a mapping with apiVersion, kind, metadata and spec", root.Show()));
    return Error{report.error()};
  }
  ReadKind(root, job);
  root.OnlyKnown(kJobFields);
  const Field metadata = root.At("metadata");
  ReadMetadata(metadata, job);
  const Field body = root.At("spec");
  if (!body.present()) body.Fail("missing");
  if (report.ok()) {
    if (job.kind == JobKind::kMpiJob) {
      spec::ReadMpiJob(body, run_as, job);
    } else {
      spec::ReadPyTorchJob(body, run_as, job);
    }
  }
  spec::ReadAnnotations(metadata.At("annotations"), job);
  if (report.ok()) CheckNameLength(metadata, job, limits.named);
  if (!report.ok()) return Error{report.error()};
  ReadForClusters(value, limits, job);
  job.document = ToJson(value);
  if (job.document.size() > limits.bytes) {
    return Error{fmt::format("{} bytes as JSON, the limit is {}; keep data in files", job.document.size(),
                             limits.bytes)};
  }
  job.warnings = WarningsOf(report, run_as);
  return job;
}

bool IsList(const Value& value) {
  return value["kind"].Text() == "List";
}

// The jobs of one document: itself, or the items of a list.
Status ReadInto(const Value& document, const SpecLimits& limits, RunAs run_as, std::vector<JobSpec>& jobs) {
  if (!IsList(document)) {
    auto job = ReadJobAt(document, "", limits, run_as);
    if (!job) return job.error();
    jobs.push_back(*std::move(job));
    return Ok{};
  }
  Report report;
  const Field root(&document, "", report);
  root.OnlyKnown(kListFields);
  root.At("items").Items();
  if (!report.ok()) return Error{report.error()};
  const Value::List& list = document["items"].items();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (static_cast<int>(jobs.size()) >= limits.documents) {
      return Error{fmt::format("items: more than {} jobs; submit them in parts", limits.documents)};
    }
    auto job = ReadJobAt(list[i], ItemPath("items", i), limits, run_as);
    if (!job) return job.error();
    jobs.push_back(*std::move(job));
  }
  return Ok{};
}

}  // namespace

Result<JobSpec> ReadJobSpec(const Value& document, const SpecLimits& limits, RunAs run_as) {
  return ReadJobAt(document, "", limits, run_as);
}

Result<std::vector<JobSpec>> ParseJobs(std::string_view text, const SpecLimits& limits, RunAs run_as) {
  auto documents = ReadDocuments(text, limits);
  if (!documents) return documents.error();
  std::vector<JobSpec> jobs;
  for (std::size_t i = 0; i < documents->size(); ++i) {
    const Value& document = (*documents)[i];
    if (document.null()) continue;
    if (const Status read = ReadInto(document, limits, run_as, jobs); !read) {
      if (documents->size() == 1) return read.error();
      return Error{fmt::format("document {}: {}", i + 1, read.error().message)};
    }
  }
  if (jobs.empty()) return Error{"no job in it; give an MPIJob or a PyTorchJob"};
  return jobs;
}

}  // namespace voda
