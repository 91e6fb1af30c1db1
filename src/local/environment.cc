#include "local/environment.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/sha256.h"
#include "local/job_folder.h"
#include "local/plain_path.h"
#include "local/torchrun.h"

namespace voda::local {

namespace {

// The path in the manifests of the MPI operator; this machine has no such file.
constexpr std::string_view kOperatorsScript = "/etc/mpi/discover_hosts.sh";
constexpr int kManyRestarts = 1'000'000;  // torchrun spends one on every shrink

// PyTorch 1.13 under Python 3.11 fails with its own default, and with every other way to redirect nothing.
// This redirects a local rank that hardly any job has.
constexpr const char* kNoRedirects = "9:1";

using Env = std::vector<EnvVar>;

void Set(Env& env, std::string_view name, std::string value) {
  for (EnvVar& variable : env) {
    if (variable.name != name) continue;
    variable.value = std::move(value);
    return;
  }
  env.push_back({std::string(name), std::move(value)});
}

// Puts our script in the place of the operator's, where that path is a word of its own.
std::string ReplaceScript(std::string text, const std::string& ours) {
  for (std::size_t at = text.find(kOperatorsScript); at != std::string::npos;
       at = text.find(kOperatorsScript, at)) {
    const std::size_t end = at + kOperatorsScript.size();
    const bool apart =
        (at == 0 || !PlainInPath(text[at - 1])) && (end == text.size() || !PlainInPath(text[end]));
    if (apart) text.replace(at, kOperatorsScript.size(), ours);
    at += apart ? ours.size() : kOperatorsScript.size();
  }
  return text;
}

std::string Joined(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

void AddUser(Env& env) {
  passwd entry{};
  passwd* found = nullptr;
  std::string buffer(16384, '\0');
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  Set(env, "HOME", found != nullptr ? found->pw_dir : "/");
  Set(env, "USER", found != nullptr ? found->pw_name : std::to_string(::geteuid()));
}

int ProcessesPerWorker(const JobSpec& spec) {
  const std::string text = spec.nproc_per_node.value_or("1");
  int count = 1;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return std::max(count, 1);
}

// The training operator's environment for a job that keeps its size: torchrun's static rendezvous, and the
// variables that torch.distributed reads itself.
void AddStatic(Env& env, const JobSpec& spec, const WorkerSpec& start) {
  const int size = spec.limits.max;
  Set(env, "PET_NNODES", std::to_string(size));
  Set(env, "PET_NODE_RANK", std::to_string(start.worker));
  Set(env, "WORLD_SIZE", std::to_string(size * ProcessesPerWorker(spec)));
  Set(env, "RANK", std::to_string(start.worker));
  for (const char* prefix : {"", "PET_"}) {
    Set(env, fmt::format("{}MASTER_ADDR", prefix), "127.0.0.1");
    Set(env, fmt::format("{}MASTER_PORT", prefix), std::to_string(start.port));
  }
  if (spec.max_restarts) Set(env, "PET_MAX_RESTARTS", std::to_string(*spec.max_restarts));
}

// The workers of an incarnation meet by this name. Any user of the machine can connect to the store where
// they meet, and torchrun unpickles what lies there below the name; so the name holds a secret that only the
// job has.
std::string RendezvousId(const AcceptedJob& job, const WorkerSpec& start) {
  constexpr std::size_t kDigits = 32;
  const std::string secret = Sha256Hex(fmt::format("rendezvous {} {}", start.incarnation, job.token));
  return fmt::format("{}-{}-{}", job.name, start.incarnation, secret.substr(0, kDigits));
}

void AddElastic(Env& env, const AcceptedJob& job, const std::string& job_path, const WorkerSpec& start,
                const std::string& nnodes) {
  const JobSpec& spec = *job.spec;
  const std::string limits = spec.limits.min == spec.limits.max
                                 ? std::to_string(spec.limits.max)
                                 : fmt::format("{}:{}", spec.limits.min, spec.limits.max);
  Set(env, "PET_NNODES", nnodes.empty() ? limits : nnodes);
  Set(env, "PET_RDZV_BACKEND", spec.rdzv_backend);
  Set(env, "PET_RDZV_ENDPOINT", fmt::format("127.0.0.1:{}", start.port));
  std::string conf = spec.rdzv_conf;
  // All workers are on this machine, and without this any of them might host the store. It must be worker
  // 0, which goes last.
  if (spec.rdzv_backend == "c10d" && conf.find("is_host=") == std::string::npos) {
    conf += fmt::format("{}is_host={}", conf.empty() ? "" : ",", start.worker == 0 ? 1 : 0);
  }
  if (!conf.empty()) Set(env, "PET_RDZV_CONF", conf);
  Set(env, "PET_MAX_RESTARTS", std::to_string(spec.max_restarts.value_or(kManyRestarts)));
  Set(env, "PET_LOG_DIR", TorchrunPath(StartPath(job_path, start.worker, start.serial)));
  // Otherwise, from PyTorch 2.4 on, workers that join later wait for an address that nobody tells them.
  Set(env, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
}

// Whether a job's own environment must not change this variable: by it Voda finds its processes and files,
// or it names the GPUs that the job was given.
bool Ours(const std::string& name, bool has_devices) {
  return name == "JOB_NAME" || name == "METRICS_DIR" || name.starts_with("VODA_") ||
         (has_devices && (name == "CUDA_VISIBLE_DEVICES" || name == "CUDA_DEVICE_ORDER"));
}

}  // namespace

std::string JobPath(const LocalConfig& config, std::int64_t id) {
  return fmt::format("{}/{}", config.folder, id);
}
std::string WorkPath(const std::string& job_path) {
  return job_path + "/work";
}
std::string MetricsPath(const std::string& job_path) {
  return job_path + "/metrics";
}
std::string DiscoverPath(const std::string& job_path) {
  return job_path + "/discover_hosts.sh";
}

bool Rigid(const JobSpec& spec) {
  return spec.kind == JobKind::kPyTorchJob && !spec.elastic && spec.limits.min == spec.limits.max;
}

void SetCommand(const LocalConfig& config, const AcceptedJob& job, const Told& told, WorkerSpec& start) {
  const JobSpec& spec = *job.spec;
  const bool mpi = spec.kind == JobKind::kMpiJob;
  const Container& container = mpi && spec.launcher                       ? *spec.launcher
                               : !mpi && start.worker == 0 && spec.master ? *spec.master
                                                                          : spec.worker;
  const std::string path = JobPath(config, job.id);

  Env env;
  Set(env, "PATH", config.path);
  AddUser(env);
  Set(env, "LANG", "C.UTF-8");
  Set(env, "TMPDIR", "/tmp");
  Set(env, "PYTHONUNBUFFERED", "1");  // as the operator does, so that output is seen at once
  Set(env, "JOB_NAME", job.name);
  Set(env, "METRICS_DIR", MetricsPath(path));
  Set(env, "VODA_JOB_ID", std::to_string(job.id));
  Set(env, "VODA_JOB_DIR", WorkPath(path));
  Set(env, "VODA_WORKER", std::to_string(start.worker));
  Set(env, "VODA_NODE", start.node);
  Set(env, "VODA_PROGRESS_URL", fmt::format("{}/api/v1/jobs/{}/progress", config.progress_url, job.name));
  Set(env, "VODA_PROGRESS_TOKEN", job.token);
  if (!config.progress_socket.empty()) Set(env, "VODA_PROGRESS_SOCKET", config.progress_socket);
  if (!start.network.empty()) {
    for (const char* const name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}) Set(env, name, "lo");
  }
  Set(env, "CUDA_VISIBLE_DEVICES", Joined(start.devices));
  if (told.has_devices) Set(env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // the order of NVML
  if (mpi) {
    Set(env, "VODA_DISCOVER_HOSTS", told.discover_hosts);
  } else {
    Set(env, "PET_NPROC_PER_NODE", spec.nproc_per_node.value_or("1"));
    for (const char* const name : {"PET_REDIRECTS", "PET_TEE"}) Set(env, name, kNoRedirects);
    Set(env, "PET_RDZV_ID", told.rendezvous.empty() ? RendezvousId(job, start) : told.rendezvous);
    if (Rigid(spec)) {
      AddStatic(env, spec, start);
    } else {
      AddElastic(env, job, path, start, told.nnodes);
    }
  }

  const auto adapted = [&](std::string text) {
    return mpi ? ReplaceScript(std::move(text), told.discover_hosts) : std::move(text);
  };
  Env own;
  for (const EnvVar& variable : container.env) {
    if (!Ours(variable.name, told.has_devices)) own.push_back({variable.name, adapted(variable.value)});
  }
  env = ExpandEnvironment(env, own);

  for (const auto* part : {&container.command, &container.args}) {
    for (const std::string& word : *part) start.argv.push_back(ExpandVariables(adapted(word), env));
  }
  start.working_dir = container.working_dir.empty() ? config.working_dir : container.working_dir;
  start.env = std::move(env);
}

}  // namespace voda::local
