// voda up: the whole system in one process on one machine.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/duration.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/kubernetes_args.h"
#include "cli/policy_args.h"
#include "cli/session.h"
#include "cli/up_args.h"
#include "client/config.h"
#include "local/gpus.h"
#include "local/network.h"
#include "placement/place.h"
#include "service/server.h"

namespace voda {

namespace {

constexpr const char* kFooter =
    R"(Jobs are processes on this machine, or with --cluster kubernetes pods of a cluster. They outlive `voda up`: stop it with Ctrl-C or SIGTERM, start it again
on the same --data folder, and it goes on with what still runs.

Examples:
  voda up                                  GPUs of this machine, or one slot per core
  voda up --nodes a:4,b:4 --rate-limit 5s  two declared nodes, for placement and migration on one machine
  voda up --nodes a:4,b:2:v100             two GPU types, each with a scheduler of its own
  voda up --cluster kubernetes             MPIJobs and PyTorchJobs of the cluster that kubectl talks to
  voda create -f examples/jobs/pytorch-elastic.yaml)";

struct Flags {
  std::string data;
  NodeFlags nodes;
  PolicyArgs policy;
  std::string placement{Name(CoreConfig{}.placement)};
  std::string rate_limit = "30s", min_runtime = "0s", cooldown = "0s";
  std::string listen = "127.0.0.1";
  std::string tls_certificate, tls_key;
  bool behind_proxy = false;
  bool no_auth = false;
  std::vector<std::string> hosts;
  std::string working_dir;
  bool private_network = false;
  std::string log_level = "info", log_format = "text";
  std::string cluster = "local";
  KubernetesArgs kubernetes;
};

[[noreturn]] void Refuse(const std::string& message, int code = kExitBadInput) {
  fmt::print(stderr, "voda up: {}\n", message);
  throw CLI::RuntimeError(code);
}

template <class T>
T Need(Result<T> result, const char* flag) {
  if (!result)
    Refuse(flag == nullptr ? result.error().message : fmt::format("{}: {}", flag, result.error().message));
  return std::move(*result);
}

void TakeListen(const char* flag, const std::string& text, std::string& address, int& port) {
  const auto listen = ParseListen(text);
  if (!listen) Refuse(fmt::format("{} {}", flag, listen.error().message));
  if (!listen->host.empty()) address = listen->host;
  if (listen->port >= 0) port = listen->port;
}

std::vector<DeclaredNode> FindNodes(const NodeFlags& flags, std::string& note) {
  std::string host(256, '\0');
  ::gethostname(host.data(), host.size() - 1);
  host = host.c_str();
  const auto found = FindGpus();
  auto offered = OfferNodes(flags, found, host.substr(0, host.find('.')),
                            static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  if (!offered) Refuse(offered.error().message, found ? kExitBadInput : kExitError);
  if (!offered->warning.empty()) Log(LogLevel::kWarn, "nodes", {{"note", offered->warning}});
  note = offered->note;
  return offered->nodes;
}

ServerConfig ConfigFrom(const Flags& flags, std::string& note) {
  ServerConfig config;
  config.data =
      std::filesystem::absolute(flags.data.empty() ? DefaultDataFolder(ProcessEnvironment()) : flags.data)
          .string();
  config.program = "/proc/self/exe";
  config.working_dir = std::filesystem::absolute(flags.working_dir.empty() ? "." : flags.working_dir)
                           .lexically_normal()
                           .string();
  if (!std::filesystem::is_directory(config.working_dir)) {
    Refuse(fmt::format("--workdir {}: there is no such folder", config.working_dir));
  }
  config.private_network = flags.private_network;
  if (flags.private_network && flags.cluster == "kubernetes")
    Refuse("--private-network with --cluster kubernetes: pods have networks of their own");
  if (flags.private_network) {
    if (const Status may = local::MayMakeNetworks(); !may)
      Refuse(fmt::format("--private-network: {}; as this user the machine does not allow it",
                         may.error().message));
  }
  TakeListen("--listen", flags.listen, config.address, config.port);
  if (config.address == "localhost") config.address = "127.0.0.1";
  config.tls_certificate = flags.tls_certificate;
  config.tls_key = flags.tls_key;
  config.behind_proxy = flags.behind_proxy;
  config.no_auth = flags.no_auth;
  config.hosts = flags.hosts;
  if (flags.tls_certificate.empty() != flags.tls_key.empty()) Refuse("--tls-cert and --tls-key go together");
  if (flags.no_auth && flags.cluster == "kubernetes") {
    Refuse(
        "--no-auth with --cluster kubernetes: callers are asked for their Kubernetes tokens; make one with "
        "`kubectl create token NAME`");
  }
  if (flags.no_auth) {
    const bool beyond = flags.behind_proxy || !flags.hosts.empty();
    Log(LogLevel::kWarn, "no token is asked for",
        {{"note", beyond
                      ? "whoever reaches the proxy, and every user of this machine, can run programs as this "
                        "user; let the proxy check who asks, or leave out --no-auth"
                      : "every user of this machine can run programs as this user"}});
  }
  if (!IsLoopback(config.address)) {
    if (flags.no_auth) {
      Refuse(fmt::format(
          "--no-auth with --listen {}: without a token anybody who reaches that address could run "
          "programs here; listen on loopback",
          config.address));
    }
    if (flags.tls_certificate.empty() && !flags.behind_proxy) {
      Refuse(fmt::format(
          "--listen {}: the token would cross the network in clear; give --tls-cert and --tls-key, or "
          "--behind-proxy where a proxy in front speaks TLS",
          config.address));
    }
  }

  if (flags.cluster == "kubernetes") {
    config.kubernetes = Need(ReadKubernetesArgs(flags.kubernetes), nullptr);
    config.kubernetes->version = VODA_VERSION;
    config.service.csv_folder = flags.kubernetes.metrics_dir;
    if (!flags.kubernetes.progress_listen.empty())
      TakeListen("--progress-listen", flags.kubernetes.progress_listen, config.progress_address,
                 config.progress_port);
    note = "those of the cluster with the label vodascheduler/accelerator";
  } else {
    config.service.nodes = FindNodes(flags.nodes, note);
  }
  config.service.algorithm = flags.policy.algorithm;
  config.service.options = Need(ParsePolicyOptions(flags.policy.options), "--option");
  config.service.make_policy = [](const std::string& name, const PolicyOptions& options) {
    return MakeNamedPolicy(name, options);
  };
  if (auto policy = config.service.make_policy(config.service.algorithm, config.service.options); !policy) {
    Refuse(policy.error().message);
  }
  const auto placement = ParsePlacementMode(flags.placement);
  if (!placement) Refuse(fmt::format("--placement: \"{}\" is none of stable, cost, repack", flags.placement));
  config.service.core.placement = *placement;
  config.service.core.rate_limit = Need(ParseDuration(flags.rate_limit), "--rate-limit");
  config.service.core.min_runtime = Need(ParseDuration(flags.min_runtime), "--min-runtime");
  config.service.core.cooldown = Need(ParseDuration(flags.cooldown), "--cooldown");
  config.service.version = VODA_VERSION;
  return config;
}

void Run(const Flags& flags, const CLI::App& command) {
  const auto level = ParseLogLevel(flags.log_level);
  if (!level) Refuse(fmt::format("--log-level: \"{}\" is none of debug, info, warn, error", flags.log_level));
  if (flags.log_format != "text" && flags.log_format != "json") {
    Refuse(fmt::format("--log-format: \"{}\" is neither text nor json", flags.log_format));
  }
  SetLog({*level, flags.log_format == "json"});
  std::string note;
  ServerConfig config = ConfigFrom(flags, note);
  config.service.algorithm_given = command.get_option("--algorithm")->count() > 0;
  config.service.rate_limit_given = command.get_option("--rate-limit")->count() > 0;
  const std::string data = config.data;

  // Only this thread takes signals; threads started from here on inherit the mask.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  const LogThread log_thread;

  auto server = Server::Start(std::move(config));
  if (!server) Refuse(server.error().message, kExitError);
  Log(LogLevel::kInfo, "nodes", {{"note", note}});
  Log(LogLevel::kInfo, "ready",
      {{"url", (*server)->url()},
       {"cluster", (*server)->cluster()},
       {"data", data},
       {"token", (*server)->token_path().empty() ? "of Kubernetes" : (*server)->token_path()}});
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "stopping; jobs go on", {{"signal", signal}});
  // A second signal ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  server->reset();
}

}  // namespace

void AddUp(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "up", "Run Voda: API, scheduler and jobs on this machine, or the jobs of a Kubernetes cluster");
  command->footer(kFooter);
  command
      ->add_option("--cluster", flags->cluster,
                   "where jobs run: local (processes of this machine) or kubernetes")
      ->capture_default_str()
      ->check(CLI::IsMember({"local", "kubernetes"}));
  RefuseEmpty(
      *command->add_option("--data", flags->data, "folder for the store, the token, logs and job folders")
           ->type_name("DIR")
           ->envname("VODA_HOME"));
  auto* slots = command
                    ->add_option("--slots", flags->nodes.slots,
                                 "slots of the one node; each is a GPU if there are enough")
                    ->check(CLI::Range(1, 1024));
  command->add_option("--nodes", flags->nodes.nodes, "several nodes on this machine: NAME:SLOTS[:TYPE],…")
      ->type_name("LIST")
      ->excludes(slots);
  command->add_option("--gpu-type", flags->nodes.gpu_type,
                      "name of the GPU type; else what is found, or cpu");
  AddPolicyFlags(*command, flags->policy);
  command->add_option("--placement", flags->placement, "stable, cost or repack")->capture_default_str();
  command->add_option("--rate-limit", flags->rate_limit, "least time between two rounds")
      ->capture_default_str()
      ->type_name("TIME");
  command->add_option("--min-runtime", flags->min_runtime, "how long a running job is not shrunk or stopped")
      ->capture_default_str()
      ->type_name("TIME");
  command->add_option("--cooldown", flags->cooldown, "least time between two changes of a job's size")
      ->capture_default_str()
      ->type_name("TIME");
  command
      ->add_option("--listen", flags->listen,
                   "ADDRESS[:PORT]; the roles' ports are the two above PORT (55587)")
      ->capture_default_str();
  command->add_option("--tls-cert", flags->tls_certificate, "PEM file; needed beyond loopback")
      ->type_name("FILE");
  command->add_option("--tls-key", flags->tls_key, "PEM file")->type_name("FILE");
  command->add_flag("--behind-proxy", flags->behind_proxy, "a proxy in front speaks TLS");
  command->add_option("--host", flags->hosts, "another name under which clients reach Voda; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--no-auth", flags->no_auth, "ask for no token; loopback only");
  RefuseEmpty(*command
                   ->add_option("--workdir", flags->working_dir,
                                "where jobs without workingDir start; else the current folder")
                   ->type_name("DIR"));
  command->add_flag(
      "--private-network", flags->private_network,
      "each job has a network of its own, with nothing but loopback: no other user of the machine "
      "reaches its workers, and they reach nobody");
  command->add_option("--log-level", flags->log_level, "debug, info, warn or error")->capture_default_str();
  command->add_option("--log-format", flags->log_format, "text or json")->capture_default_str();
  AddKubernetesFlags(*command, flags->kubernetes);
  command->callback([flags, command] { Run(*flags, *command); });
}

}  // namespace voda
