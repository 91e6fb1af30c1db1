// voda release: frees a Kubernetes cluster of Voda; jobs run on.
#include "kubeflow/release.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>

#include "base/text.h"
#include "cli/commands.h"
#include "document/documents.h"
#include "kube/kube_config.h"
#include "kube/patch.h"
#include "kube/time.h"
#include "kube/transport.h"

namespace voda {

namespace {

constexpr const char* kFooter =
    R"(For when Voda is taken out of use: pods that wait for their place are left to Kubernetes, and nodes take
other pods again. What runs goes on. Jobs that wait stay suspended, and are listed; to start one:
  kubectl patch pytorchjob NAME --type merge -p '{"spec":{"runPolicy":{"suspend":false}}}'

Stop Voda first (kubectl -n voda-system scale deployment voda --replicas 0).)";

struct Args {
  std::string kubeconfig;
  std::string lease = "voda-system/voda";
  kubeflow::ReleaseOptions options;
  bool force = false;
};

[[noreturn]] void Refuse(const std::string& message, int code) {
  fmt::print(stderr, "voda release: {}\n", message);
  throw CLI::RuntimeError(code);
}

// The holder of the lease, if it was renewed in time by this machine's clock.
std::string Leader(kube::Transport& transport, const Args& args) {
  const auto [name_space, name] = SplitName(args.lease);
  if (name_space.empty()) Refuse("--lease: give NAMESPACE/NAME", kExitBadInput);
  const kube::Resource leases{"coordination.k8s.io", "v1", "leases", true};
  const kube::Reply reply =
      transport.Call(kube::GetRequest(leases, {std::string(name_space), std::string(name)}));
  if (!reply.ok()) {
    if (reply.error->reason == kube::Reason::kNotFound) return {};
    Refuse(reply.error->Text(), kExitError);
  }
  const auto object = ParseJson(reply.body);
  if (!object) return {};
  const Value& spec = (*object)["spec"];
  const auto renewed = kube::ParseTime(spec["renewTime"].Text());
  const auto lasts = std::chrono::seconds(spec["leaseDurationSeconds"].Whole());
  if (!renewed || transport.Wall() > *renewed + lasts) return {};
  return spec["holderIdentity"].Text();
}

void Run(const Args& args) {
  const auto config = kube::FindKubeConfig(args.kubeconfig);
  if (!config) Refuse(config.error().message, kExitBadInput);
  kube::Counters counters;
  auto transport = kube::Transport::Create(*config, {}, counters);
  if (!transport) Refuse(transport.error().message, kExitBadInput);
  if (!args.force && !args.options.dry_run) {
    if (const std::string leader = Leader(**transport, args); !leader.empty()) {
      Refuse(fmt::format("{} leads and would set gates again; stop it first, or say --force", leader),
             kExitError);
    }
  }
  const auto released = kubeflow::Release(
      args.options, [&](kube::Request request) { return (*transport)->Call(std::move(request)); },
      [](const std::string& line) { fmt::print("{}\n", line); });
  if (!released) Refuse(released.error().message, kExitError);
  for (const std::string& job : released->suspended) fmt::print("still suspended: {}\n", job);
  fmt::print("{} {} templates, {} pods and {} nodes; {} jobs are suspended\n",
             args.options.dry_run ? "would release" : "released", released->templates, released->pods,
             released->nodes, released->suspended.size());
}

}  // namespace

void AddRelease(CLI::App& app) {
  auto* command =
      app.add_subcommand("release", "take Voda's gates and taints off a Kubernetes cluster; jobs run on")
          ->group("Cluster");
  const auto args = std::make_shared<Args>();
  command->add_option("--kubeconfig", args->kubeconfig, "which cluster; else as kubectl finds it")
      ->type_name("FILE");
  command->add_option("--namespaces", args->options.namespaces, "only in these; else in all")->delimiter(',');
  command->add_option("--mpi-version", args->options.mpi_version, "of MPIJobs: v2beta1 or v1")
      ->capture_default_str()
      ->check(CLI::IsMember({"v2beta1", "v1"}));
  command->add_option("--lease", args->lease, "NAMESPACE/NAME of Voda's lease")->capture_default_str();
  command->add_flag("--dry-run", args->options.dry_run, "say what would be taken away");
  command->add_flag("--force", args->force, "also while Voda leads");
  command->footer(kFooter);
  command->callback([args] { Run(*args); });
}

}  // namespace voda
