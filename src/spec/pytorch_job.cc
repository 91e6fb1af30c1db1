#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "document/json_text.h"
#include "model/job.h"
#include "spec/kinds.h"
#include "spec/settings.h"

namespace voda::spec {

namespace {

constexpr int kFewRestarts = 100;
constexpr int kMostProcesses = 1024;
constexpr std::string_view kContainer = "pytorch";  // the name that the training operator looks for
// Those of the training operator, and the fields of runPolicy where the operator before it had them.
constexpr std::array<std::string_view, 9> kFields = {
    "runPolicy",    "elasticPolicy",  "pytorchReplicaSpecs",     "nprocPerNode",    "activeDeadlineSeconds",
    "backoffLimit", "cleanPodPolicy", "ttlSecondsAfterFinished", "schedulingPolicy"};
constexpr std::array<std::string_view, 11> kElasticFields = {
    "minReplicas", "maxReplicas", "rdzvBackend",  "rdzvPort",    "rdzvHost", "rdzvId",
    "rdzvConf",    "standalone",  "nProcPerNode", "maxRestarts", "metrics"};
constexpr std::array<std::string_view, 2> kConfFields = {"key", "value"};
constexpr std::array<std::string_view, 2> kPyTorchReplicaTypes = {"Master", "Worker"};

std::optional<Setting> ReadWorkers(const Field& field) {
  const auto whole = field.Whole(1, kMaxWorkers);
  if (!whole) return std::nullopt;
  return Setting{static_cast<int>(*whole), field.path()};
}

// The elasticPolicy wins over the environment.
void Prefer(const std::optional<Setting>& policy, std::optional<Setting>& variable, Report& report) {
  if (!policy) return;
  if (variable && variable->value != policy->value) {
    report.Warn(fmt::format("{} is {}, which wins over {} in {}.", policy->path, policy->value,
                            variable->value, variable->path));
  }
  variable = policy;
}

std::string ReadConf(const Field& field) {
  std::string conf;
  for (const Field& entry : field.Items()) {
    entry.OnlyKnown(kConfFields);
    for (const std::string_view part : kConfFields) {
      const Field text = entry.At(part);
      const std::string value = text.Text().value_or("");
      if (value.empty() || value.find_first_of(",=\n") != std::string::npos) {
        text.Fail(fmt::format("{} cannot be part of a setting; give text without ',' or '='", text.Show()));
      }
      conf += part == "key" ? (conf.empty() ? "" : ",") : "=";
      conf += value;
    }
  }
  return conf;
}

void ReadBackend(const Field& field, JobSpec& spec) {
  const auto backend = field.Text();
  if (!backend) return;
  if (*backend != "c10d" && *backend != "etcd" && *backend != "etcd-v2") {
    field.Fail(fmt::format("{} is not a rendezvous backend; give c10d, etcd or etcd-v2", field.Show()));
  }
  spec.rdzv_backend = *backend;
  if (*backend != "c10d") {
    field.report().Warn(
        fmt::format("{} {} needs an etcd server, and Voda starts none; use c10d.", field.path(), *backend));
  }
}

void ReadElasticPolicy(const Field& policy, RunAs run_as, Sizes& sizes, JobSpec& spec) {
  Report& report = policy.report();
  policy.OnlyKnown(kElasticFields);
  Prefer(ReadWorkers(policy.At("minReplicas")), sizes.min, report);
  Prefer(ReadWorkers(policy.At("maxReplicas")), sizes.max, report);
  constexpr int kMost = std::numeric_limits<std::int32_t>::max();
  if (const auto restarts = policy.At("maxRestarts").Whole(0, kMost)) {
    spec.max_restarts = static_cast<int>(*restarts);
  }
  ReadBackend(policy.At("rdzvBackend"), spec);
  spec.rdzv_conf = ReadConf(policy.At("rdzvConf"));
  for (const std::string_view name : {"rdzvHost", "rdzvPort", "rdzvId", "standalone"}) {
    if (policy.At(name).present()) report.Ignore(fmt::format("elasticPolicy.{}", name));
  }
  if (policy.At("metrics").present()) {
    report.Warn(fmt::format(
        "{}.metrics asks for an autoscaler beside Voda; {}, remove it.", policy.path(),
        run_as == RunAs::kContainers ? "the two would contend for the job's size" : "it is ignored"));
  }
}

void ReadProcesses(const Field& field, const Field& policy, JobSpec& spec) {
  const Field processes = field.At("nprocPerNode");
  const Field old = policy.At("nProcPerNode");
  if (processes.present() && old.present()) {
    old.Fail("given beside spec.nprocPerNode, which took its place; remove it");
  }
  if (const auto count = old.Whole(1, kMostProcesses)) spec.nproc_per_node = std::to_string(*count);
  const auto text = processes.Text();
  if (!text) return;
  const bool word = *text == "auto" || *text == "cpu" || *text == "gpu";
  const bool number = !text->empty() && text->size() <= 4 && (*text)[0] != '0' &&
                      std::all_of(text->begin(), text->end(), [](char c) { return c >= '0' && c <= '9'; }) &&
                      std::stoi(*text) <= kMostProcesses;
  if (!word && !number) {
    processes.Fail(fmt::format("{} is not known; give \"1\" to \"{}\", auto, cpu or gpu", processes.Show(),
                               kMostProcesses));
  }
  spec.nproc_per_node = *text;
}

// A Master is one worker of the job, and the job has one size.
void MakeRigid(const Sizes& sizes, const Replica& worker, JobSpec& spec, Report& report) {
  const int size = 1 + (worker.present ? worker.replicas.value_or(1) : 0);
  if (size > kMaxWorkers)
    report.Fail(worker.path, fmt::format("too many workers; give fewer than {}", kMaxWorkers));
  for (const auto& setting : {sizes.min, sizes.num, sizes.max}) {
    if (!setting || setting->value == size) continue;
    report.Warn(
        fmt::format("{} {} is ignored: a job with a Master has one size, here {}; leave the Master out to "
                    "make it elastic.",
                    setting->path, setting->value, size));
  }
  spec.limits.min = spec.limits.num = spec.limits.max = size;
}

}  // namespace

void ReadPyTorchJob(const Field& field, RunAs run_as, JobSpec& spec) {
  Report& report = field.report();
  field.OnlyKnown(kFields);
  const Field replicas = field.At("pytorchReplicaSpecs");
  if (!replicas.present()) replicas.Fail("missing; give Worker");
  replicas.OnlyKnown(kPyTorchReplicaTypes);

  ReplicaRules rules;
  rules.run_as = run_as;
  rules.containers = {kContainer};
  Replica worker = ReadReplica(replicas.At("Worker"), rules);
  Replica master = ReadReplica(replicas.At("Master"), rules);
  if (!worker.present && !master.present) replicas.Fail("neither Worker nor Master; give Worker");
  if (master.replicas && *master.replicas != 1) {
    replicas.At("Master").At("replicas").Fail(fmt::format("{} masters; give 1", *master.replicas));
  }
  const Replica& source = worker.present ? worker : master;

  ReadRunPolicy(field, spec);
  TakeGpuType(source, master, spec, report);
  ReadSettings(source, spec, report);
  Sizes sizes = ReadSizes(source, 1, report);
  const Field policy = field.At("elasticPolicy");
  ReadElasticPolicy(policy, run_as, sizes, spec);
  ReadProcesses(field, policy, spec);
  if (master.present) {
    MakeRigid(sizes, worker, spec, report);
  } else {
    DecideSizes(sizes, worker, spec, report);
  }
  spec.elastic = policy.present() || spec.limits.min < spec.limits.max;
  spec.gpus_per_worker = source.gpus.value_or(1);
  spec.restart_policy = source.restart_policy.value_or(RestartPolicy::kOnFailure);
  spec.grace_seconds = source.grace_seconds.value_or(spec.grace_seconds);

  if (master.gpus && *master.gpus != spec.gpus_per_worker) {
    report.Warn(fmt::format("{} asks for {} GPUs and a worker for {}; each {} {}.", master.path, *master.gpus,
                            spec.gpus_per_worker, run_as == RunAs::kContainers ? "is counted as" : "gets",
                            spec.gpus_per_worker));
  }
  if (spec.limits.min < spec.limits.max && spec.max_restarts && *spec.max_restarts < kFewRestarts) {
    report.Warn(
        fmt::format("{}.maxRestarts is {}: torchrun spends one restart on each change of size and fails "
                    "when none is left; leave it out, or give {} or more.",
                    policy.path(), *spec.max_restarts, kFewRestarts));
  }
  if (master.present) {
    spec.worker = worker.present ? std::move(worker.container) : master.container;
    spec.master = std::move(master.container);
  } else {
    spec.worker = std::move(worker.container);
  }
}

}  // namespace voda::spec
