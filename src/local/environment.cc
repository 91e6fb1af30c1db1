#include "local/environment.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "local/job_folder.h"
#include "local/torchrun.h"

namespace voda::local {

namespace {

// Where the manifests of the MPI operator have it; there is no such file on this machine.
constexpr std::string_view kOperatorsScript = "/etc/mpi/discover_hosts.sh";
constexpr int kManyRestarts = 1'000'000;  // torchrun spends one on every shrink

// PyTorch 1.13 under Python 3.11 dies of its own default, and of any way to say that nothing is redirected
// but this one: a list of local ranks that hardly anybody has.
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

bool PartOfName(char c) {
  return c == '/' || c == '.' || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// Puts our script in the place of the operator's, where that path stands by itself.
std::string ReplaceScript(std::string text, const std::string& ours) {
  for (std::size_t at = text.find(kOperatorsScript); at != std::string::npos;
       at = text.find(kOperatorsScript, at)) {
    const std::size_t end = at + kOperatorsScript.size();
    const bool apart =
        (at == 0 || !PartOfName(text[at - 1])) && (end == text.size() || !PartOfName(text[end]));
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

// The training operator's environment of a job that keeps its size: torchrun's static rendezvous, and what
// torch.distributed reads by itself.
void AddStatic(Env& env, const JobSpec& spec, const Seat& seat) {
  const int size = spec.max;
  Set(env, "PET_NNODES", std::to_string(size));
  Set(env, "PET_NODE_RANK", std::to_string(seat.worker));
  Set(env, "WORLD_SIZE", std::to_string(size * ProcessesPerWorker(spec)));
  Set(env, "RANK", std::to_string(seat.worker));
  for (const char* prefix : {"", "PET_"}) {
    Set(env, fmt::format("{}MASTER_ADDR", prefix), "127.0.0.1");
    Set(env, fmt::format("{}MASTER_PORT", prefix), std::to_string(seat.port));
  }
  if (spec.max_restarts) Set(env, "PET_MAX_RESTARTS", std::to_string(*spec.max_restarts));
}

void AddElastic(Env& env, const ClusterJob& job, const std::string& job_path, const Seat& seat) {
  const JobSpec& spec = job.spec;
  const std::string limits =
      spec.min == spec.max ? std::to_string(spec.max) : fmt::format("{}:{}", spec.min, spec.max);
  Set(env, "PET_NNODES", seat.nnodes.empty() ? limits : seat.nnodes);
  Set(env, "PET_RDZV_BACKEND", spec.rdzv_backend);
  Set(env, "PET_RDZV_ENDPOINT", fmt::format("127.0.0.1:{}", seat.port));
  Set(env, "PET_RDZV_ID", fmt::format("{}-{}", job.name, seat.incarnation));
  std::string conf = spec.rdzv_conf;
  // All workers are on this machine, and without this any of them might become the host of the store. It has
  // to be worker 0, which goes last.
  if (spec.rdzv_backend == "c10d" && conf.find("is_host=") == std::string::npos) {
    conf += fmt::format("{}is_host={}", conf.empty() ? "" : ",", seat.worker == 0 ? 1 : 0);
  }
  if (!conf.empty()) Set(env, "PET_RDZV_CONF", conf);
  Set(env, "PET_MAX_RESTARTS", std::to_string(spec.max_restarts.value_or(kManyRestarts)));
  Set(env, "PET_LOG_DIR", TorchrunPath(StartPath(job_path, seat.worker, seat.serial)));
  // From PyTorch 2.4 on, workers that join later otherwise wait for an address that nobody tells them.
  Set(env, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
}

// What a job's own environment cannot change: names by which Voda finds its processes and files, and the
// GPUs it was given.
bool Ours(const std::string& name, const Seat& seat) {
  return name == "JOB_NAME" || name == "METRICS_DIR" || name.starts_with("VODA_") ||
         (seat.has_devices && (name == "CUDA_VISIBLE_DEVICES" || name == "CUDA_DEVICE_ORDER"));
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
  return spec.kind == JobKind::kPyTorchJob && !spec.elastic && spec.min == spec.max;
}

Command WorkerCommand(const LocalConfig& config, const ClusterJob& job, const Seat& seat) {
  const JobSpec& spec = job.spec;
  const bool mpi = spec.kind == JobKind::kMpiJob;
  const Container& container = mpi && spec.launcher                      ? *spec.launcher
                               : !mpi && seat.worker == 0 && spec.master ? *spec.master
                                                                         : spec.worker;
  const std::string path = JobPath(config, job.id);

  Env env;
  Set(env, "PATH", config.path);
  AddUser(env);
  Set(env, "LANG", "C.UTF-8");
  Set(env, "TMPDIR", "/tmp");
  Set(env, "PYTHONUNBUFFERED", "1");  // as the operator does: what is printed is seen at once
  Set(env, "JOB_NAME", job.name);
  Set(env, "METRICS_DIR", MetricsPath(path));
  Set(env, "VODA_JOB_ID", std::to_string(job.id));
  Set(env, "VODA_JOB_DIR", WorkPath(path));
  Set(env, "VODA_WORKER", std::to_string(seat.worker));
  Set(env, "VODA_NODE", seat.node);
  Set(env, "VODA_PROGRESS_URL", fmt::format("{}/api/v1/jobs/{}/progress", config.progress_url, job.name));
  Set(env, "VODA_PROGRESS_TOKEN", job.token);
  Set(env, "CUDA_VISIBLE_DEVICES", Joined(seat.devices));
  if (seat.has_devices) Set(env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");  // NVML counts so
  if (mpi) {
    Set(env, "VODA_DISCOVER_HOSTS", DiscoverPath(path));
  } else {
    Set(env, "PET_NPROC_PER_NODE", spec.nproc_per_node.value_or("1"));
    for (const char* const name : {"PET_REDIRECTS", "PET_TEE"}) Set(env, name, kNoRedirects);
    if (Rigid(spec)) {
      AddStatic(env, spec, seat);
    } else {
      AddElastic(env, job, path, seat);
    }
  }

  const auto adapted = [&](std::string text) {
    return mpi ? ReplaceScript(std::move(text), DiscoverPath(path)) : std::move(text);
  };
  Env own;
  for (const EnvVar& variable : container.env) {
    if (!Ours(variable.name, seat)) own.push_back({variable.name, adapted(variable.value)});
  }
  env = ExpandEnvironment(env, own);

  Command command;
  for (const auto* part : {&container.command, &container.args}) {
    for (const std::string& word : *part) command.argv.push_back(ExpandVariables(adapted(word), env));
  }
  command.working_dir = container.working_dir.empty() ? config.working_dir : container.working_dir;
  command.env = std::move(env);
  return command;
}

}  // namespace voda::local
