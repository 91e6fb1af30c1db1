#include "local/local_cluster.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
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
#include "local/files.h"
#include "local/job_runner.h"
#include "local/proc.h"
#include "local/watcher.h"

namespace voda {

namespace {

using local::BootTime;
using local::JobFolder;
using local::JobPath;
using local::JobRunner;
using local::Order;
using local::Process;

// Below the ports that the kernel hands to outgoing connections, so that none of those takes a port between
// our look at it and the worker's bind.
constexpr int kFirstPort = 20000;
constexpr int kPorts = 12000;

constexpr double kLockSeconds = 2;   // for the lock of a Voda that was killed just now
constexpr double kStraySeconds = 5;  // for processes that were killed to be gone

void Pause() {
  const timespec pause{0, 10'000'000};
  ::nanosleep(&pause, nullptr);
}

Result<std::string> AbsoluteFolder(const std::string& path) {
  if (const Status made = local::MakeFolder(path, 0700); !made) return made.error();
  char* const resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return local::SystemError(fmt::format("resolve {}", path), errno);
  std::string absolute = resolved;
  std::free(resolved);  // NOLINT: realpath's
  return absolute;
}

// One Voda to a folder: two would start everything twice.
Result<Fd> LockFolder(const std::string& folder) {
  const std::string path = folder + "/.lock";
  Fd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.ok()) return local::SystemError(fmt::format("open {}", path), errno);
  const double give_up = BootTime() + kLockSeconds;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (BootTime() > give_up) return Error{fmt::format("another Voda uses {}; stop it first", folder)};
    Pause();
  }
  return lock;
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

std::optional<std::int64_t> ParseId(std::string_view name) {
  std::int64_t id = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (code != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return id;
}

class LocalClusterImpl final : public LocalCluster, private local::Machine {
 public:
  LocalClusterImpl(LocalConfig config, Callbacks callbacks, Fd lock, std::unique_ptr<local::Watcher> watcher)
      : config_(std::move(config)),
        callbacks_(std::move(callbacks)),
        lock_(std::move(lock)),
        watcher_(std::move(watcher)) {}

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

  std::vector<std::string> AddJob(const ClusterJob& job, bool known) override {
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
      at->second->Forget();
      active_.insert(name);
    });
  }

  void EraseJob(std::int64_t id) override {
    Enqueue([this, id] {
      erase_.insert(id);
      for (const auto& [name, runner] : runners_) {
        if (runner->job().id != id) continue;
        runner->Forget();
        active_.insert(name);
      }
    });
  }

  void Run() override {
    StopUnknown();
    thread_ = std::thread([this] { Loop(); });
  }

  Cluster& PortFor(const std::string& gpu_type) override {
    const std::lock_guard guard(mutex_);
    auto& port = ports_[gpu_type];
    if (!port) port = std::make_unique<Port>(*this, gpu_type);
    return *port;
  }

  std::vector<std::string> LogFiles(std::int64_t id, int worker) const override {
    return JobFolder(JobPath(config_, id)).LogFiles(worker);
  }

  int Failures(const std::string& job) const override {
    const std::lock_guard guard(mutex_);
    const auto at = failures_.find(job);
    return at == failures_.end() ? 0 : at->second;
  }

 private:
  class Port final : public Cluster {
   public:
    Port(LocalClusterImpl& cluster, std::string gpu_type)
        : cluster_(cluster), gpu_type_(std::move(gpu_type)) {}

    void Execute(const Action& action, const std::vector<Node>& nodes) override {
      Order order{.id = action.id, .kind = action.kind, .gpu_type = gpu_type_};
      for (const NodeIndex at : action.workers)
        order.seats.push_back(at == kNoNode ? "" : nodes[static_cast<std::size_t>(at)].name);
      for (const Node& node : nodes) order.nodes.push_back(node.name);
      cluster_.Enqueue(
          [&cluster = cluster_, job = action.job, order = std::move(order)] { cluster.Carry(job, order); });
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

  std::vector<std::string> Add(const ClusterJob& job, bool known) {
    if (const auto at = runners_.find(job.name); at != runners_.end()) {
      at->second->Change(job);
      return at->second->Seats();
    }
    auto runner = JobRunner::Make(*this, job);
    std::vector<std::string> seats;
    if (known) seats = runner->Adopt();
    runners_.emplace(job.name, std::move(runner));
    active_.insert(job.name);
    return seats;
  }

  void Carry(const std::string& job, const Order& order) {
    const auto at = runners_.find(job);
    if (at == runners_.end() || at->second->forgotten()) {
      Post(order.gpu_type, ActionFailed{order.id, fmt::format("there is no job {} on this machine", job)});
      return;
    }
    at->second->Execute(order);
    active_.insert(job);
  }

  void Loop() {
    while (!stop_) {
      RunCommands();
      const double now = BootTime();
      double next = std::numeric_limits<double>::infinity();
      for (auto at = active_.begin(); at != active_.end();) {
        const auto runner = runners_.find(*at);
        if (runner == runners_.end()) {
          at = active_.erase(at);
          continue;
        }
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
      watcher_->Wait(next - BootTime());
    }
  }

  void RunCommands() {
    std::deque<std::function<void()>> commands;
    {
      const std::lock_guard guard(mutex_);
      commands.swap(commands_);
    }
    for (const auto& command : commands) command();
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
      const bool in_use = std::any_of(runners_.begin(), runners_.end(),
                                      [&](const auto& entry) { return entry.second->job().id == *at; });
      if (!in_use) local::RemoveTree(JobPath(config_, *at));
      at = in_use ? std::next(at) : erase_.erase(at);
    }
  }

  // Jobs that this run was not told of, and what is left of workers whose shims were killed.
  void StopUnknown() {
    std::set<std::int64_t> known;
    for (const auto& [name, runner] : runners_) known.insert(runner->job().id);
    for (const std::string& name : local::ListFolder(config_.folder)) {
      const auto id = ParseId(name);
      if (!id || known.contains(*id) || !JobFolder(JobPath(config_, *id)).AnyShim()) continue;
      Log(LogLevel::kWarn, "stopping processes of an unknown job", {{"id", *id}});
      ClusterJob job;
      job.id = *id;
      job.name = fmt::format("/{}", *id);  // no job is called so
      auto runner = JobRunner::Make(*this, job);
      runner->Adopt();
      runner->Forget();
      active_.insert(job.name);
      runners_.emplace(job.name, std::move(runner));
    }
    const double give_up = BootTime() + kStraySeconds;
    while (KillStrays() > 0 && BootTime() < give_up) Pause();
  }

  int KillStrays() {
    std::set<std::pair<std::string, std::string>> live;  // VODA_JOB_DIR and VODA_WORKER
    for (const auto& [name, runner] : runners_) {
      for (const auto& [number, worker] : runner->workers().live())
        live.emplace(local::WorkPath(JobPath(config_, runner->job().id)), std::to_string(number));
    }
    int killed = 0;
    for (const Process& process : local::AllProcesses()) {
      if (process.zombie) continue;
      const std::string environment = local::EnvironmentOf(process.pid);
      const auto folder = local::Lookup(environment, "VODA_JOB_DIR");
      if (!folder || !folder->starts_with(config_.folder + "/")) continue;
      const auto worker = local::Lookup(environment, "VODA_WORKER").value_or("");
      if (live.contains({std::string(*folder), std::string(worker)})) continue;
      if (local::Signal(process, SIGKILL)) ++killed;
    }
    return killed;
  }

  const LocalConfig& config() const override { return config_; }
  local::ProcessWatch& watch() override { return *watcher_; }
  void Post(const std::string& gpu_type, Event event) override {
    if (callbacks_.post) callbacks_.post(gpu_type, std::move(event));
  }
  void Notice(const JobNotice& notice) override {
    if (callbacks_.notice) callbacks_.notice(notice);
  }
  void SetFailures(const std::string& job, int failures) override {
    const std::lock_guard guard(mutex_);
    failures_[job] = failures;
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
  const Callbacks callbacks_;
  const Fd lock_;
  const std::unique_ptr<local::Watcher> watcher_;

  mutable std::mutex mutex_;  // for these four
  std::deque<std::function<void()>> commands_;
  std::map<std::string, int> failures_;
  std::map<std::string, std::unique_ptr<Port>> ports_;

  // The thread's own, and of whoever calls before it runs.
  std::map<std::string, std::vector<int>> devices_;
  std::map<std::string, std::unique_ptr<JobRunner>> runners_;
  std::set<std::string> active_;
  std::set<std::int64_t> erase_;
  mutable unsigned next_port_ = static_cast<unsigned>(::getpid()) * 17U;

  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<LocalCluster>> LocalCluster::Open(LocalConfig config, Callbacks callbacks) {
  auto folder = AbsoluteFolder(config.folder);
  if (!folder) return folder.error();
  config.folder = std::move(*folder);
  if (config.shim.empty()) config.shim = "/proc/self/exe";
  if (::access(config.shim.c_str(), X_OK) != 0)
    return local::SystemError(fmt::format("run {} as the shim", config.shim), errno);
  if (config.working_dir.empty()) config.working_dir = "/";
  auto lock = LockFolder(config.folder);
  if (!lock) return lock.error();
  auto watcher = local::Watcher::Make();
  if (!watcher) return watcher.error();
  return std::unique_ptr<LocalCluster>(std::make_unique<LocalClusterImpl>(
      std::move(config), std::move(callbacks), std::move(*lock), std::move(*watcher)));
}

}  // namespace voda
