#include "local/local_cluster.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "local/environment.h"
#include "local/eraser.h"
#include "local/files.h"
#include "local/job_runner.h"
#include "local/proc.h"
#include "local/watcher.h"
#include "local/worker_group.h"

namespace voda {

namespace {

using local::JobFolder;
using local::JobPath;
using local::JobRunner;
using local::OrderInHand;

// Below the ports that the kernel gives to outgoing connections, so that none of those takes a port between
// our check and the worker's bind.
constexpr int kFirstPort = 20000;
constexpr int kPorts = 12000;

constexpr double kAdoptionSeconds = 2;  // how long all adoptions may wait before the API answers
constexpr double kStraySeconds = 5;     // how long to wait for the end of killed processes

void Pause() {
  const timespec pause{0, 10'000'000};
  ::nanosleep(&pause, nullptr);
}

Result<std::string> AbsoluteFolder(const std::string& path) {
  if (const Status made = local::MakeFolder(path, 0700); !made) return made.error();
  char* const resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return SystemError(fmt::format("resolve {}", path), errno);
  std::string absolute = resolved;
  std::free(resolved);  // NOLINT: realpath's
  return absolute;
}

bool PortIsFree(int port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return socket.ok() &&
         ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

class LocalClusterImpl final : public LocalCluster, private local::Machine {
 public:
  LocalClusterImpl(LocalConfig config, ClusterSink& sink, Fd lock, std::vector<std::int64_t> found,
                   std::unique_ptr<local::Watcher> watcher)
      : config_(std::move(config)),
        sink_(sink),
        lock_(std::move(lock)),
        found_(std::move(found)),
        watcher_(std::move(watcher)),
        eraser_(config_.folder + "/.erased") {}

  ~LocalClusterImpl() override {
    stop_ = true;
    watcher_->Wake();
    if (thread_.joinable()) thread_.join();
    runners_.clear();
  }

  void AddNode(const std::string& name, const std::vector<int>& devices) override {
    Enqueue([this, name, devices] {
      std::vector<int>& of = devices_[name];
      of = devices;
      std::sort(of.begin(), of.end());
    });
  }

  Result<int> GpusPerWorker(const JobSpec& spec, const std::string&) const override {
    return spec.gpus_per_worker;
  }

  Status CanStart() const override {
    if (::faccessat(AT_FDCWD, config_.folder.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return Ok{};
    return Error{
        fmt::format("no job can be started: the folder '{}' cannot be written: {}; make it writable for the "
                    "user that runs "
                    "Voda",
                    config_.folder, std::strerror(errno))};
  }

  std::vector<std::string> AddJob(const AcceptedJob& job, bool known) override {
    if (!thread_.joinable() || std::this_thread::get_id() == thread_.get_id()) return Add(job, known);
    if (!known) {
      Enqueue([this, job] { Add(job, false); });
      return {};
    }
    std::promise<std::vector<std::string>> answer;
    Enqueue([this, &job, &answer] { answer.set_value(Add(job, true)); });
    return answer.get_future().get();
  }

  void ForgetJob(const std::string& name) override {
    Enqueue([this, name] {
      const auto at = runners_.find(name);
      if (at == runners_.end()) return;
      at->second->NoteEnd();
      at->second->Forget();
      active_.insert(name);
    });
  }

  void EraseJob(std::int64_t id, const std::string& token) override {
    Enqueue([this, id, token] {
      erase_.emplace(id, token);
      for (const auto& [name, runner] : runners_) {
        if (runner->job().id != id || runner->job().token != token) continue;
        runner->Forget();
        active_.insert(name);
      }
    });
  }

  void Run() override {
    StopUnknown();
    adoption_until_ = UptimeNow();
    thread_ = std::thread([this] { Loop(); });
  }

  const Pulse& pulse() const override { return pulse_; }

  Cluster& PortFor(const std::string& gpu_type) override {
    const std::lock_guard guard(mutex_);
    auto& port = ports_[gpu_type];
    if (!port) port = std::make_unique<Port>(*this, gpu_type);
    return *port;
  }

  std::vector<std::string> LogFiles(std::int64_t id, const std::string& token, int worker) const override {
    const JobFolder folder(JobPath(config_, id));
    const auto ours = folder.BelongsTo(token);
    if (!ours || !*ours) return {};
    return folder.LogFiles(worker);
  }

  bool ReadLogs(const LogRequest&) override { return false; }  // there are files

  std::int64_t LastId() const override { return found_.empty() ? 0 : found_.back(); }

  int Failures(const std::string& job) const override {
    const std::lock_guard guard(mutex_);
    const auto at = failures_.find(job);
    return at == failures_.end() ? 0 : at->second;
  }

  double RanUnheard(const std::string& job) const override {
    const std::lock_guard guard(mutex_);
    const auto at = unheard_.find(job);
    return at == unheard_.end() ? 0 : at->second;
  }

 private:
  class Port final : public Cluster {
   public:
    Port(LocalClusterImpl& cluster, std::string gpu_type)
        : cluster_(cluster), gpu_type_(std::move(gpu_type)) {}

    void Execute(const Action& action, const PerNode<Node>& nodes) override {
      OrderInHand order{MakeOrder(action, nodes, gpu_type_)};
      for (const Node& node : nodes) order.nodes.push_back(node.name);
      cluster_.Enqueue([&cluster = cluster_, order = std::move(order)] { cluster.Carry(order); });
    }

   private:
    LocalClusterImpl& cluster_;
    std::string gpu_type_;
  };

  void Enqueue(std::function<void()> command) {
    {
      const std::lock_guard guard(mutex_);
      commands_.push_back(std::move(command));
    }
    watcher_->Wake();
  }

  std::vector<std::string> Add(const AcceptedJob& job, bool known) {
    if (const auto at = runners_.find(job.name); at != runners_.end()) {
      at->second->Change(job);
      return at->second->Seats();
    }
    auto runner = JobRunner::Make(*this, job);
    std::vector<std::string> seats;
    if (known) {
      seats = runner->Adopt();
    } else if (const Status claimed = runner->Claim(); !claimed) {
      // Its first start tries again.
      Log(LogLevel::kWarn, "folder not made", {{"job", job.name}, {"error", claimed.error().message}});
    }
    runners_.emplace(job.name, std::move(runner));
    active_.insert(job.name);
    return seats;
  }

  void Carry(const OrderInHand& order) {
    const auto at = runners_.find(order.job);
    if (at == runners_.end() || at->second->forgotten()) {
      Post(order.gpu_type,
           ActionFailed{order.id, fmt::format("there is no job {} on this machine", order.job)});
      return;
    }
    at->second->Execute(order);
    active_.insert(order.job);
  }

  void Loop() {
    while (!stop_) {
      RunCommands();
      const double now = UptimeNow();
      double next = std::numeric_limits<double>::infinity();
      for (auto at = active_.begin(); at != active_.end();) {
        const auto runner = runners_.find(*at);
        if (runner == runners_.end()) {
          at = active_.erase(at);
          continue;
        }
        pulse_.Beat(UptimeNow());
        runner->second->Advance(now);
        if (runner->second->quiet()) {
          if (runner->second->forgotten()) Drop(runner);
          at = active_.erase(at);
          continue;
        }
        next = std::min(next, runner->second->Next(now));
        ++at;
      }
      EraseFolders();
      pulse_.Rest();
      watcher_->Wait(next - UptimeNow());
    }
  }

  void RunCommands() {
    std::deque<std::function<void()>> commands;
    {
      const std::lock_guard guard(mutex_);
      commands.swap(commands_);
    }
    for (const auto& command : commands) {
      pulse_.Beat(UptimeNow());
      command();
    }
  }

  void Drop(std::map<std::string, std::unique_ptr<JobRunner>>::iterator runner) {
    {
      const std::lock_guard guard(mutex_);
      failures_.erase(runner->first);
    }
    runners_.erase(runner);
  }

  void EraseFolders() {
    for (auto at = erase_.begin(); at != erase_.end();) {
      const std::int64_t id = at->first;
      const std::string& token = at->second;
      const bool in_use = std::any_of(runners_.begin(), runners_.end(),
                                      [&](const auto& entry) { return entry.second->job().id == id; });
      if (in_use) {
        ++at;
        continue;
      }
      const JobFolder folder(JobPath(config_, id));
      auto ours = folder.BelongsTo(token);
      if (!ours && folder.RestoreRights()) ours = folder.BelongsTo(token);
      if (!ours) {
        ++at;  // the next look tells
        continue;
      }
      if (*ours) {
        Erase(folder.path());
      } else {
        Log(LogLevel::kWarn, "a folder is not erased, because it belongs to another job",
            {{"folder", folder.path()}});
      }
      at = erase_.erase(at);
    }
  }

  // Stops jobs that this run was not told of, and what is left of workers whose shims were killed.
  void StopUnknown() {
    std::set<std::int64_t> known;
    for (const auto& [name, runner] : runners_) known.insert(runner->job().id);
    for (const std::int64_t id : found_) {
      if (known.contains(id)) continue;
      // One whose folder cannot be read yet may have some: its runner tries again.
      if (const auto any = JobFolder(JobPath(config_, id)).AnyShim(); any && !*any) continue;
      Log(LogLevel::kWarn, "stopping processes of an unknown job", {{"id", id}});
      AcceptedJob job;
      job.id = id;
      job.name = fmt::format("/{}", id);  // not a valid name, so it is no other job's
      job.spec = std::make_shared<const JobSpec>();
      auto runner = JobRunner::Make(*this, job);
      runner->Adopt();
      runner->Forget();
      active_.insert(job.name);
      runners_.emplace(job.name, std::move(runner));
    }
    const double give_up = UptimeNow() + kStraySeconds;
    while (KillStrays() > 0 && UptimeNow() < give_up) Pause();
  }

  int KillStrays() {
    std::set<std::pair<std::string, std::string>> live;  // VODA_JOB_DIR and VODA_WORKER
    std::set<std::string> groups;                        // of live workers
    // Of jobs of which that is not known yet, VODA_JOB_DIR and how the names of their groups begin.
    std::set<std::string> unread;
    std::vector<std::string> unknown;
    for (const auto& [name, runner] : runners_) {
      const std::string path = JobPath(config_, runner->job().id);
      if (!runner->adopted()) {
        unread.insert(local::WorkPath(path));
        unknown.push_back(local::GroupName(path + "/"));
      }
      for (const auto& [number, worker] : runner->workers().live()) {
        live.emplace(local::WorkPath(path), std::to_string(number));
        groups.insert(local::GroupName(worker.start.folder));
      }
    }
    int killed = 0;
    const auto processes = local::ProcessesOfJobsBelow(config_.folder);
    if (!processes) return 1;  // there may be some
    for (const auto& [process, environment] : *processes) {
      const auto work = local::Lookup(environment, "VODA_JOB_DIR").value_or("");
      const auto worker = local::Lookup(environment, "VODA_WORKER").value_or("");
      if (unread.contains(std::string(work)) || live.contains({std::string(work), std::string(worker)}))
        continue;
      if (local::Signal(process, SIGKILL)) ++killed;
    }
    const bool none = local::KillGroups(config_.folder, [&](const std::string& name) {
      return groups.contains(name) || std::any_of(unknown.begin(), unknown.end(),
                                                  [&](const auto& of) { return name.starts_with(of); });
    });
    return killed + (none ? 0 : 1);
  }

  void Erase(const std::string& folder) override { eraser_.Erase(folder); }
  const LocalConfig& config() const override { return config_; }
  local::DescriptorWatch& watch() override { return *watcher_; }
  double AdoptionUntil() override {
    if (adoption_until_ == 0) adoption_until_ = UptimeNow() + kAdoptionSeconds;
    return adoption_until_;
  }
  void Post(const std::string& gpu_type, Event event) override { sink_.Post({{gpu_type, std::move(event)}}); }
  void Notice(const JobNotice& notice) override { sink_.Notice(notice); }
  void Gone(const std::string& job) override { sink_.Gone(job, {}); }
  void SetFailures(const std::string& job, int failures) override {
    const std::lock_guard guard(mutex_);
    failures_[job] = failures;
  }
  void SetRanUnheard(const std::string& job, double seconds) override {
    const std::lock_guard guard(mutex_);
    unheard_[job] = seconds;
  }

  Devices DevicesOf(const std::string& node) const override {
    const auto at = devices_.find(node);
    if (at == devices_.end() || at->second.empty()) return {};
    return {true, at->second};
  }

  Result<Devices> FreeDevices(const std::string& node, int count) const override {
    Devices devices = DevicesOf(node);
    if (!devices.known) return devices;
    for (const auto& [name, runner] : runners_) {
      for (const int held : runner->HeldDevices(node)) {
        devices.indices.erase(std::remove(devices.indices.begin(), devices.indices.end(), held),
                              devices.indices.end());
      }
    }
    const auto wanted = static_cast<std::size_t>(std::max(count, 0));
    if (devices.indices.size() < wanted) {
      return Error{
          fmt::format("node {} has {} free GPUs, {} are needed", node, devices.indices.size(), wanted)};
    }
    devices.indices.resize(wanted);
    return devices;
  }

  Result<int> FreePort() const override {
    std::set<int> told;
    for (const auto& [name, runner] : runners_) {
      for (const auto& [number, worker] : runner->workers().live()) {
        if (worker.start.spec) told.insert(worker.start.spec->port);
      }
    }
    for (int i = 0; i < kPorts; ++i) {
      const int port = kFirstPort + (next_port_++ % kPorts);
      if (!told.contains(port) && PortIsFree(port)) return port;
    }
    return Error{fmt::format("no port from {} to {} is free", kFirstPort, kFirstPort + kPorts - 1)};
  }

  const LocalConfig config_;
  ClusterSink& sink_;
  const Fd lock_;
  const std::vector<std::int64_t> found_;  // the jobs that had a folder at the start, by id
  const std::unique_ptr<local::Watcher> watcher_;
  local::Eraser eraser_;

  mutable std::mutex mutex_;  // guards the three below
  std::deque<std::function<void()>> commands_;
  std::map<std::string, int> failures_;
  std::map<std::string, double> unheard_;  // RanUnheard
  std::map<std::string, std::unique_ptr<Port>> ports_;

  // These belong to the thread and, before it runs, to the caller.
  double adoption_until_ = 0;  // 0: none has begun
  std::map<std::string, std::vector<int>> devices_;
  std::map<std::string, std::unique_ptr<JobRunner>> runners_;
  std::set<std::string> active_;
  std::set<std::pair<std::int64_t, std::string>> erase_;  // ids and tokens
  mutable unsigned next_port_ = static_cast<unsigned>(::getpid()) * 17U;

  std::atomic<bool> stop_ = false;
  Pulse pulse_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<LocalCluster>> LocalCluster::Open(LocalConfig config, ClusterSink& sink) {
  auto folder = AbsoluteFolder(config.folder);
  if (!folder) return folder.error();
  config.folder = std::move(*folder);
  if (config.shim.empty()) config.shim = "/proc/self/exe";
  if (::access(config.shim.c_str(), X_OK) != 0)
    return SystemError(fmt::format("run {} as the shim", config.shim), errno);
  if (config.working_dir.empty()) config.working_dir = "/";
  auto lock = local::LockJobs(config.folder);
  if (!lock) return lock.error();
  auto found = local::JobIds(config.folder);
  if (!found) return found.error();
  auto watcher = local::Watcher::Make();
  if (!watcher) return watcher.error();
  return std::unique_ptr<LocalCluster>(std::make_unique<LocalClusterImpl>(
      std::move(config), sink, std::move(*lock), std::move(*found), std::move(*watcher)));
}

}  // namespace voda
