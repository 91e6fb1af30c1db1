#include "local/workers.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "local/environment.h"
#include "local/files.h"
#include "local/proc.h"

namespace voda::local {

namespace {

constexpr double kLook = 0.1;  // seconds between looks at what does not tell us

// Whose end nobody recorded: as if it had been killed, which it was.
ExitRecord Killed(bool asked) {
  return {.code = 0, .signal = SIGKILL, .asked = asked, .out_of_memory = false, .ended = BootTime()};
}

bool EverStarted(const StartRecord& start) {
  const auto text = ReadWhole(LockPath(start.folder), 4096);
  return start.spec && text && DecodeLock(*text).started;
}

}  // namespace

bool KillLeftovers(const JobFolder& job, const StartRecord& start) {
  const std::string work = WorkPath(job.path());
  const std::string worker = std::to_string(start.worker);
  bool none = true;
  for (const Process& process : AllProcesses()) {
    if (process.zombie) continue;
    const std::string environment = EnvironmentOf(process.pid);
    if (Lookup(environment, "VODA_JOB_DIR") != work || Lookup(environment, "VODA_WORKER") != worker) continue;
    Signal(process, SIGKILL);
    none = false;
  }
  if (const auto cgroup = ReadWhole(CgroupPath(start.folder), 4096)) {
    const auto members = ReadWhole(*cgroup + "/cgroup.procs", std::size_t{1} << 20);
    for (std::size_t at = 0; members && at < members->size();) {
      const std::size_t end = std::min(members->find('\n', at), members->size());
      const auto member = FindProcess(static_cast<pid_t>(std::strtol(members->c_str() + at, nullptr, 10)));
      if (member && !member->zombie) {
        Signal(*member, SIGKILL);
        none = false;
      }
      at = end + 1;
    }
    if (none) {
      ::rmdir(cgroup->c_str());
      ::unlink(CgroupPath(start.folder).c_str());
    }
  }
  return none;
}

Workers::~Workers() {
  for (auto& [number, worker] : live_) watch_.Remove(worker.shim);
}

std::vector<StartRecord> Workers::Adopt() {
  std::vector<StartRecord> ended;
  const std::string boot = BootId();
  for (StartRecord& start : folder_.Starts()) {
    next_serial_ = std::max(next_serial_, start.serial + 1);
    if (start.spec) last_incarnation_ = std::max(last_incarnation_, start.spec->incarnation);
    if (!start.exit) {
      if (auto shim = FindShim(start.folder)) {
        const int number = start.worker;
        if (!start.spec) start.spec.emplace().worker = number;  // spoilt: it sits nowhere and will be stopped
        Worker worker{.start = std::move(start), .shim = std::move(*shim)};
        // Of two starts of one number the earlier is a leftover that was never told to start.
        if (const auto twin = live_.find(number); twin != live_.end()) {
          SendSignal(twin->second.shim, SIGKILL);
          watch_.Remove(twin->second.shim);
          live_.erase(twin);
        }
        watch_.Add(worker.shim);
        live_.emplace(number, std::move(worker));
        continue;
      }
      start.exit = ReadExit(start.folder);  // it may have ended just now
    }
    if (!start.exit && !start.verdict) {
      if (!start.spec && !Exists(LockPath(start.folder))) {
        RemoveTree(start.folder);  // not even begun
        continue;
      }
      if (EverStarted(start) && start.spec->boot == boot) {
        start.exit = Killed(false);
      } else {
        start.verdict = Verdict{Verdict::Kind::kLost, 0};
        if (const Status written = folder_.Write(start, *start.verdict); !written)
          Log(LogLevel::kWarn, "verdict not written", {{"error", written.error().message}});
      }
    }
    ended.push_back(std::move(start));
  }
  return ended;
}

Result<const Worker*> Workers::Start(WorkerSpec spec) {
  const int number = spec.worker;
  VODA_CHECK(!live_.contains(number));
  spec.serial = next_serial_++;
  spec.started = BootTime();
  spec.boot = BootId();
  last_incarnation_ = std::max(last_incarnation_, spec.incarnation);
  auto folder = folder_.NewStart(spec);
  if (!folder) return folder.error();
  auto shim = StartShim(shim_program_, *folder);
  if (!shim) {
    // A shim without the word to start ends by itself; only then may the folder go.
    if (!LockHeld(*folder)) RemoveTree(*folder);
    return shim.error();
  }
  Worker worker;
  worker.start.worker = number;
  worker.start.serial = spec.serial;
  worker.start.folder = std::move(*folder);
  worker.start.spec = std::move(spec);
  worker.shim = std::move(*shim);
  watch_.Add(worker.shim);
  return &live_.emplace(number, std::move(worker)).first->second;
}

void Workers::Stop(int number, double now) {
  const auto at = live_.find(number);
  if (at == live_.end() || at->second.stopping) return;
  Worker& worker = at->second;
  worker.stopping = true;
  const int grace = worker.start.spec ? worker.start.spec->grace_seconds : 0;
  worker.kill_at = now + grace + kShimPatience;
  SendSignal(worker.shim, SIGTERM);
}

void Workers::StopAll(double now) {
  for (auto& [number, worker] : live_) Stop(number, now);
}

// Whether nothing is left of a worker whose shim has ended.
bool Workers::Cleared(Worker& worker) {
  if (!worker.shim_gone) {
    if (ReadExit(worker.start.folder)) return true;
    worker.shim_gone = true;
    watch_.Remove(worker.shim);
    Log(LogLevel::kWarn, "shim ended without a record", {{"folder", worker.start.folder}});
  }
  return KillLeftovers(folder_, worker.start);
}

StartRecord Workers::Closed(Worker& worker, double now) const {
  StartRecord start = std::move(worker.start);
  start.exit = ReadExit(start.folder);
  if (!start.exit) start.exit = Killed(worker.stopping);
  start.exit->ended = std::min(start.exit->ended, now);
  return start;
}

std::vector<StartRecord> Workers::Reap(double now) {
  std::vector<StartRecord> ended;
  look_at_ = 0;
  for (auto at = live_.begin(); at != live_.end();) {
    Worker& worker = at->second;
    if (!worker.shim_gone && !Ended(worker.shim)) {
      if (worker.stopping && now >= worker.kill_at) {
        Log(LogLevel::kWarn, "shim did not stop its worker in time and is killed",
            {{"folder", worker.start.folder}});
        // Said beforehand, for whoever finds neither shim nor record: this was no failure.
        if (const Status said = folder_.Write(worker.start, {Verdict::Kind::kStopped, 0}); !said)
          Log(LogLevel::kWarn, "verdict not written", {{"error", said.error().message}});
        SendSignal(worker.shim, SIGKILL);
        worker.kill_at = now + 1;
      }
      ++at;
      continue;
    }
    if (!Cleared(worker)) {
      look_at_ = now + kLook;
      ++at;
      continue;
    }
    watch_.Remove(worker.shim);
    ended.push_back(Closed(worker, now));
    at = live_.erase(at);
  }
  return ended;
}

const Worker* Workers::Find(int worker) const {
  const auto at = live_.find(worker);
  return at == live_.end() ? nullptr : &at->second;
}

double Workers::Next(double now) const {
  double next = std::numeric_limits<double>::infinity();
  if (look_at_ > now) next = look_at_;
  for (const auto& [number, worker] : live_) {
    if (worker.stopping && !worker.shim_gone && worker.kill_at > now) next = std::min(next, worker.kill_at);
  }
  return next;
}

}  // namespace voda::local
