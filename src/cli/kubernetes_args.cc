#include "cli/kubernetes_args.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "base/duration.h"
#include "base/text.h"
#include "spec/template_rules.h"

namespace voda {

namespace {

constexpr const char* kGroup = "With --cluster kubernetes";

std::string RuleNames() {
  std::vector<std::string_view> names;
  for (const RuleInfo& rule : TemplateRules()) names.push_back(rule.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

void AddKubernetesFlags(CLI::App& command, KubernetesArgs& args) {
  const auto add = [&](auto& into, const char* flag, const std::string& help, const char* type) {
    return command.add_option(flag, into, help)->group(kGroup)->type_name(type);
  };
  add(args.kubeconfig, "--kubeconfig",
      "which cluster; else $KUBECONFIG, the pod's own account, or ~/.kube/config", "FILE");
  add(args.namespaces, "--namespaces", "schedule only in these, separated by commas; else in all", "LIST")
      ->delimiter(',');
  add(args.lease, "--lease", "[NAMESPACE/]NAME of the lease that its replicas share", "NAME")
      ->capture_default_str();
  add(args.resources, "--resource",
      "TYPE=NAME: what nodes of a GPU type offer, where it is not nvidia.com/gpu", "TYPE=NAME")
      ->allow_extra_args(false);
  add(args.steering, "--steering", "how workers get to their nodes: gates, taints (see deploy/taints) or off",
      "HOW")
      ->capture_default_str();
  add(args.mpi_version, "--mpi-version", "of MPIJobs: v2beta1 (mpi-operator) or v1 (training operator)",
      "VERSION")
      ->capture_default_str();
  add(args.not_ready_grace, "--not-ready-grace",
      "a node that does not answer for this long has lost its workers", "TIME")
      ->capture_default_str();
  add(args.allow, "--allow",
      "what pod templates may do beyond the default, separated by commas: " + RuleNames(), "RULES")
      ->delimiter(',');
  add(args.progress_listen, "--progress-listen",
      "ADDRESS:PORT without TLS that takes progress reports of jobs and nothing else", "ADDRESS");
  add(args.progress_url, "--progress-url",
      "how pods reach that address, such as http://voda.voda-system:55590", "URL");
  add(args.metrics_dir, "--metrics-dir",
      "folder with progress as NAMESPACE/JOB.csv, on a volume that jobs share", "DIR");
  add(args.writes_per_second, "--writes-per-second", "the most writes to the API server; 0: no limit", "N")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100'000.0));
}

Result<KubernetesConfig> ReadKubernetesArgs(const KubernetesArgs& args) {
  KubernetesConfig config;
  config.kubeconfig = args.kubeconfig;
  config.writes_per_second = args.writes_per_second;
  config.jobs.cluster.namespaces = args.namespaces;
  const ScopedName lease = SplitName(args.lease);
  config.lease = {std::string(lease.name_space), std::string(lease.name)};
  if (config.lease.name.empty() || config.lease.name.find('/') != std::string::npos) {
    return Error{fmt::format("--lease {}: give NAME or NAMESPACE/NAME", args.lease)};
  }
  config.jobs.settings.name = config.lease.name + "-settings";
  for (const std::string& resource : args.resources) {
    const auto equals = resource.find('=');
    if (equals == resource.npos || equals == 0 || equals + 1 == resource.size()) {
      return Error{
          fmt::format("--resource {}: give TYPE=NAME, such as mi300=amd.com/gpu or cpu=cpu", resource)};
    }
    config.jobs.cluster.nodes.resources[resource.substr(0, equals)] = resource.substr(equals + 1);
  }
  using kubeflow::Steering;
  const std::map<std::string, Steering> ways = {
      {"gates", Steering::kGates}, {"taints", Steering::kTaints}, {"off", Steering::kOff}};
  const auto way = ways.find(args.steering);
  if (way == ways.end()) {
    return Error{fmt::format("--steering {}: is none of gates, taints, off", args.steering)};
  }
  config.jobs.cluster.steering = way->second;
  if (args.mpi_version != "v2beta1" && args.mpi_version != "v1") {
    return Error{fmt::format("--mpi-version {}: is neither v2beta1 nor v1", args.mpi_version)};
  }
  config.jobs.cluster.mpi_version = args.mpi_version;
  const auto grace = ParseDuration(args.not_ready_grace);
  if (!grace) return Error{"--not-ready-grace: " + grace.error().message};
  config.jobs.cluster.nodes.not_ready_grace = *grace;
  if (const Status known = CheckRuleNames(args.allow); !known)
    return Error{"--allow: " + known.error().message};
  config.jobs.cluster.allowed.insert(args.allow.begin(), args.allow.end());
  config.jobs.progress_url = args.progress_url;
  while (config.jobs.progress_url.ends_with('/')) config.jobs.progress_url.pop_back();
  if (const char* pod = std::getenv("POD_NAME"); pod != nullptr) config.pod = pod;
  if (const char* name_space = std::getenv("POD_NAMESPACE");
      name_space != nullptr && config.lease.name_space.empty())
    config.lease.name_space = name_space;
  return config;
}

}  // namespace voda
