#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "spec/kinds.h"
#include "spec/settings.h"

namespace voda::spec {

namespace {

constexpr int kMostSlots = 1024;
// kubeflow.org/v1 of the training operator and of the MPI operator before it.
constexpr std::array<std::string_view, 8> kFieldsV1 = {
    "slotsPerWorker", "backoffLimit",    "activeDeadlineSeconds", "cleanPodPolicy",
    "mainContainer",  "mpiReplicaSpecs", "mpiDistribution",       "runPolicy"};
constexpr std::array<std::string_view, 8> kFieldsV2 = {
    "slotsPerWorker",   "runLauncherAsWorker",    "runPolicy",         "mpiReplicaSpecs",
    "sshAuthMountPath", "launcherCreationPolicy", "mpiImplementation", "waitForWorkers"};
// How the operator brings pods together.
constexpr std::array<std::string_view, 5> kOfOperator = {
    "mpiDistribution", "mpiImplementation", "launcherCreationPolicy", "sshAuthMountPath", "waitForWorkers"};
constexpr std::array<std::string_view, 2> kMpiReplicaTypes = {"Launcher", "Worker"};

bool Mentions(const Container& container, std::string_view word) {
  const auto holds = [&](const std::string& text) { return text.find(word) != std::string::npos; };
  return std::any_of(container.command.begin(), container.command.end(), holds) ||
         std::any_of(container.args.begin(), container.args.end(), holds);
}

}  // namespace

void ReadMpiJob(const Field& field, RunAs run_as, JobSpec& spec) {
  Report& report = field.report();
  const bool v1 = spec.api_version == "kubeflow.org/v1";
  if (v1) {
    field.OnlyKnown(kFieldsV1);
  } else {
    field.OnlyKnown(kFieldsV2);
  }
  for (const std::string_view name : kOfOperator) {
    if (field.At(name).present()) report.Ignore(name);
  }
  spec.slots_per_worker = static_cast<int>(field.At("slotsPerWorker").Whole(1, kMostSlots).value_or(1));
  const Field as_worker = field.At("runLauncherAsWorker");
  if (as_worker.Flag().value_or(false)) {
    as_worker.Fail("true is not supported: the size of the job would not be its workers; remove it");
  }

  const Field replicas = field.At("mpiReplicaSpecs");
  if (!replicas.present()) replicas.Fail("missing; give Launcher and Worker");
  replicas.OnlyKnown(kMpiReplicaTypes);
  for (const std::string_view type : kMpiReplicaTypes) {
    const Field replica = replicas.At(type);
    if (!replica.present()) replica.Fail(fmt::format("missing; an MPIJob has a Launcher and a Worker"));
  }

  const Field main_container = field.At("mainContainer");
  const std::string main_name = main_container.Text().value_or("");
  ReplicaRules rules;
  rules.run_as = run_as;
  rules.containers = {main_name.empty() ? std::string_view("mpi") : std::string_view(main_name)};
  rules.first_container = main_name.empty();
  rules.all_restart_policies = v1;
  Replica launcher = ReadReplica(replicas.At("Launcher"), rules);
  rules.runs = false;  // on Kubernetes it is sshd or a sleep, and the image may know
  Replica worker = ReadReplica(replicas.At("Worker"), rules);
  if (launcher.replicas && *launcher.replicas != 1) {
    replicas.At("Launcher").At("replicas").Fail(fmt::format("{} launchers; give 1", *launcher.replicas));
  }

  ReadRunPolicy(field, spec);
  TakeGpuType(worker, launcher, spec, report);
  ReadSettings(launcher, spec, report);
  DecideSizes(ReadSizes(launcher, spec.slots_per_worker, report), worker, spec, report);
  spec.elastic = spec.limits.min < spec.limits.max;
  spec.gpus_per_worker = worker.gpus.value_or(1);
  spec.restart_policy = launcher.restart_policy.value_or(v1 ? RestartPolicy::kNo : RestartPolicy::kOnFailure);
  spec.grace_seconds = launcher.grace_seconds.value_or(spec.grace_seconds);

  if (spec.slots_per_worker > 1 && !worker.gpus) {
    report.Warn(
        fmt::format("spec.slotsPerWorker is {} and the workers name no GPUs, so those processes share "
                    "one; give the Worker's container limits nvidia.com/gpu: {}.",
                    spec.slots_per_worker, spec.slots_per_worker));
  }
  if (spec.elastic && Mentions(launcher.container, "horovodrun") &&
      !Mentions(launcher.container, "--blacklist-cooldown-range")) {
    report.Warn(
        "The launcher runs horovodrun without --blacklist-cooldown-range: a host that leaves once is never "
        "used "
        "again; add --blacklist-cooldown-range 30 100.");
  }
  spec.launcher = std::move(launcher.container);
  spec.worker = std::move(worker.container);
}

}  // namespace voda::spec
