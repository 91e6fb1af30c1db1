// voda up: the whole system in one process on one machine.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/kubernetes_args.h"
#include "cli/policy_args.h"
#include "client/config.h"
#include "local/gpus.h"
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
  int slots = 0;
  std::string nodes;
  std::string gpu_type;
  PolicyArgs policy;
  std::string placement{Name(CoreConfig{}.placement)};
  std::string rate_limit = "30s", min_runtime = "0s", cooldown = "0s";
  std::string listen = "127.0.0.1";
  std::string tls_certificate, tls_key;
  bool behind_proxy = false;
  bool no_auth = false;
  std::vector<std::string> hosts;
  std::string working_dir;
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

// "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", ":8000"
void ParseListen(const char* flag, const std::string& text, std::string& address, int& port) {
  std::string_view host = text;
  std::optional<std::string_view> after;
  if (!host.empty() && host.front() == '[') {
    const auto close = host.find(']');
    if (close == host.npos)
      Refuse(fmt::format("{} {}: the bracket is not closed; write [::1]:55587", flag, text));
    if (close + 1 < host.size()) after = host.substr(close + 2);
    host = host.substr(1, close - 1);
  } else if (const auto colon = host.rfind(':'); colon != host.npos) {
    after = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (!host.empty()) address = std::string(host);
  if (!after) return;
  const auto [end, error] = std::from_chars(after->data(), after->data() + after->size(), port);
  if (error != std::errc() || end != after->data() + after->size() || port < 0 || port > 65533) {
    Refuse(fmt::format("{} {}: \"{}\" is not a port from 0 to 65533", flag, text, *after));
  }
}

// "a:4,b:4:v100": name, slots, and a GPU type where it differs.
std::vector<DeclaredNode> ParseNodes(const std::string& text, const std::string& gpu_type) {
  std::vector<DeclaredNode> nodes;
  std::set<std::string> names;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string one(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const auto first = one.find(':');
    const auto second = first == one.npos ? one.npos : one.find(':', first + 1);
    DeclaredNode node;
    node.name = one.substr(0, first);
    const std::string count = first == one.npos ? "" : one.substr(first + 1, second - first - 1);
    node.gpu_type = second == one.npos ? gpu_type : one.substr(second + 1);
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), node.gpus);
    const bool valid = std::all_of(node.name.begin(), node.name.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
    });
    if (node.name.empty() || !valid || error != std::errc() || end != count.data() + count.size() ||
        node.gpus < 1 || node.gpus > 1024 || node.gpu_type.empty()) {
      Refuse(fmt::format(
          "--nodes: \"{}\" is not NAME:SLOTS or NAME:SLOTS:TYPE with 1 to 1024 slots, such as a:4 or "
          "b:4:v100",
          one));
    }
    if (!names.insert(node.name).second) Refuse(fmt::format("--nodes: {} is named twice", node.name));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<DeclaredNode> FindNodes(const Flags& flags, std::string& note) {
  auto found = FindGpus();
  if (!found)
    Refuse(fmt::format("looking for GPUs: {}; mend the driver, or give --slots", found.error().message),
           kExitError);
  const std::vector<GpuInfo>& gpus = *found;
  const std::string type = !flags.gpu_type.empty() ? flags.gpu_type
                           : gpus.empty()          ? "cpu"
                                                   : gpus.front().type;
  if (!flags.nodes.empty()) {
    auto nodes = ParseNodes(flags.nodes, type);
    std::size_t total = 0;
    for (const DeclaredNode& node : nodes) total += static_cast<std::size_t>(node.gpus);
    note = fmt::format("{} declared nodes with {} slots", nodes.size(), total);
    if (!gpus.empty() && total <= gpus.size()) {
      std::size_t next = 0;
      for (DeclaredNode& node : nodes) {
        for (int i = 0; i < node.gpus; ++i) node.devices.push_back(gpus[next++].index);
      }
      note += fmt::format(", one GPU each of the {} of this machine", gpus.size());
    }
    return nodes;
  }
  std::string host(256, '\0');
  ::gethostname(host.data(), host.size() - 1);
  host = host.c_str();
  const auto dot = host.find('.');
  DeclaredNode node{host.substr(0, dot).empty() ? "local" : host.substr(0, dot), 0, type, {}};
  if (flags.slots > 0) {
    node.gpus = flags.slots;
    note = fmt::format("{} slots, as --slots says", node.gpus);
  } else if (!gpus.empty()) {
    node.gpus = static_cast<int>(gpus.size());
    for (const GpuInfo& gpu : gpus) node.devices.push_back(gpu.index);
    note = fmt::format("{} NVIDIA GPU{} found ({})", gpus.size(), gpus.size() == 1 ? "" : "s",
                       gpus.front().name);
  } else {
    node.gpus = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    note = fmt::format("no NVIDIA GPU found: {} slots, one for each core", node.gpus);
  }
  return {node};
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
  ParseListen("--listen", flags.listen, config.address, config.port);
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
      ParseListen("--progress-listen", flags.kubernetes.progress_listen, config.progress_address,
                  config.progress_port);
    note = "those of the cluster with the label vodascheduler/accelerator";
  } else {
    config.service.nodes = FindNodes(flags, note);
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

  // Signals are for this thread alone; those started from here on inherit that.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

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
  // A second signal ends it at once.
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
  command->add_option("--data", flags->data, "folder for the store, the token, logs and job folders")
      ->type_name("DIR")
      ->envname("VODA_HOME");
  auto* slots = command->add_option("--slots", flags->slots, "workers that may run at a time, on one node")
                    ->check(CLI::Range(1, 1024));
  command->add_option("--nodes", flags->nodes, "several nodes on this machine: NAME:SLOTS[:TYPE],…")
      ->type_name("LIST")
      ->excludes(slots);
  command->add_option("--gpu-type", flags->gpu_type, "name of the GPU type; else what is found, or cpu");
  AddPolicyFlags(*command, flags->policy);
  command->add_option("--placement", flags->placement, "stable, cost or repack")->capture_default_str();
  command->add_option("--rate-limit", flags->rate_limit, "least time between two rounds")
      ->capture_default_str()
      ->type_name("TIME");
  command->add_option("--min-runtime", flags->min_runtime, "a running job is not shrunk or stopped before")
      ->capture_default_str()
      ->type_name("TIME");
  command->add_option("--cooldown", flags->cooldown, "no second change of a job's size within")
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
  command->add_option("--host", flags->hosts, "a further name under which clients reach it; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_flag("--no-auth", flags->no_auth, "ask for no token; loopback only");
  command
      ->add_option("--workdir", flags->working_dir,
                   "where jobs without workingDir start; else the current folder")
      ->type_name("DIR");
  command->add_option("--log-level", flags->log_level, "debug, info, warn or error")->capture_default_str();
  command->add_option("--log-format", flags->log_format, "text or json")->capture_default_str();
  AddKubernetesFlags(*command, flags->kubernetes);
  command->callback([flags, command] { Run(*flags, *command); });
}

}  // namespace voda
