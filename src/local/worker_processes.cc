#include "local/worker_processes.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "local/environment.h"
#include "local/files.h"
#include "local/proc.h"
#include "local/worker_group.h"

namespace voda::local {

namespace {

// Seconds between looks at processes whose end is not reported, and at records that could not be read.
constexpr double kLookAgain = 0.1;

// The record of a worker whose end was not recorded: it was killed.
ExitRecord Killed(bool asked) {
  return {.code = 0, .signal = SIGKILL, .asked = asked, .out_of_memory = false, .ended = UptimeNow()};
}

// A start as a restarted Voda finds it.
struct FoundStart {
  StartRecord start;
  std::optional<Shim> shim;        // if it runs
  std::optional<LockRecord> lock;  // of one that does not run and has no record of its end
};

Result<std::vector<FoundStart>> FindStarts(const JobFolder& folder, const FindPatience& patience) {
  std::vector<FoundStart> found;
  auto starts = folder.Starts();
  if (!starts) return starts.error();
  for (StartRecord& start : *starts) {
    FoundStart& one = found.emplace_back();
    one.start = std::move(start);
    if (one.start.exit) continue;
    auto shim = FindShim(one.start.folder, patience);
    if (!shim) return shim.error();
    one.shim = std::move(*shim);
    if (one.shim) continue;
    auto exit = ReadExit(one.start.folder);  // it may just have ended
    if (!exit) return exit.error();
    one.start.exit = *exit;
    auto lock = ReadLock(one.start.folder);
    if (!lock) return lock.error();
    one.lock = *lock;
  }
  return found;
}

}  // namespace

bool KillLeftovers(const JobFolder& job, const StartRecord& start) {
  const std::string worker = std::to_string(start.worker);
  const auto processes = ProcessesOfJob(WorkPath(job.path()));
  if (!processes) return false;
  bool none = true;
  for (const auto& [process, environment] : *processes) {
    if (Lookup(environment, "VODA_WORKER") != worker) continue;
    Signal(process, SIGKILL);
    none = false;
  }
  return KillGroup(start.folder) && none;
}

WorkerProcesses::~WorkerProcesses() {
  for (auto& [number, worker] : live_)
    watch_.Remove(worker.starting() ? worker.launch->descriptor() : worker.shim.handle.get());
}

Result<std::vector<StartRecord>> WorkerProcesses::Adopt(const FindPatience& patience) {
  auto found = FindStarts(folder_, patience);
  if (!found) return found.error();
  std::vector<StartRecord> ended;
  const std::string boot = BootId();
  for (FoundStart& one : *found) {
    StartRecord& start = one.start;
    next_serial_ = std::max(next_serial_, start.serial + 1);
    if (start.spec) last_incarnation_ = std::max(last_incarnation_, start.spec->incarnation);
    if (one.shim) {
      const int number = start.worker;
      if (!start.spec) start.spec.emplace().worker = number;  // spoilt: it has no seat and will be stopped
      Worker worker;
      worker.start = std::move(start);
      worker.shim = std::move(*one.shim);
      // Of two starts of one worker, the earlier is a leftover that was never told to start.
      if (const auto twin = live_.find(number); twin != live_.end()) {
        SendSignal(twin->second.shim, SIGKILL);
        watch_.Remove(twin->second.shim.handle.get());
        live_.erase(twin);
      }
      worker.watched = watch_.Add(worker.shim.handle.get());
      live_.emplace(number, std::move(worker));
      continue;
    }
    KillGroup(start.folder);
    if (!start.exit && !start.verdict) {
      if (!start.spec && !one.lock) {
        RemoveTree(start.folder);  // it was not even begun
        continue;
      }
      if (start.spec && one.lock && one.lock->started && start.spec->boot == boot) {
        start.exit = Killed(false);
      } else {
        start.verdict = ExitVerdict{ExitVerdict::Kind::kLost, 0};
        Write(start, start.verdict->kind);
      }
    }
    ended.push_back(std::move(start));
  }
  return ended;
}

Result<const Worker*> WorkerProcesses::Start(WorkerSpec spec) {
  const int number = spec.worker;
  VODA_CHECK(!live_.contains(number));
  spec.serial = next_serial_++;
  spec.started = UptimeNow();
  spec.boot = BootId();
  last_incarnation_ = std::max(last_incarnation_, spec.incarnation);
  auto folder = folder_.NewStart(spec);
  if (!folder) return folder.error();
  auto launch = Launch::Begin(shim_program_, *folder);
  if (!launch) {
    if (const auto held = LockHeld(*folder); held && !*held) RemoveTree(*folder);
    return launch.error();
  }
  Worker worker;
  worker.start.worker = number;
  worker.start.serial = spec.serial;
  worker.start.folder = std::move(*folder);
  worker.start.spec = std::move(spec);
  worker.launch = std::move(*launch);
  worker.watched = watch_.Add(worker.launch->descriptor());
  return &live_.emplace(number, std::move(worker)).first->second;
}

void WorkerProcesses::Stop(int number, double now) {
  const auto at = live_.find(number);
  if (at == live_.end() || at->second.stopping) return;
  Worker& worker = at->second;
  worker.stopping = true;
  if (worker.starting()) return;
  const int grace = worker.start.spec ? worker.start.spec->grace_seconds : 0;
  worker.kill_at = now + grace + kShimPatience;
  SendSignal(worker.shim, SIGTERM);
}

void WorkerProcesses::StopAll(double now) {
  for (auto& [number, worker] : live_) Stop(number, now);
}

// The start of a worker whose shim has ended, with its end; nothing while something is left of the worker, or
// its record cannot be read.
std::optional<StartRecord> WorkerProcesses::Closed(Worker& worker, double now) {
  const std::string& folder = worker.start.folder;
  std::optional<ExitRecord> exit;
  auto recorded = ReadExit(folder);
  if (!recorded && folder_.RestoreRights()) recorded = ReadExit(folder);
  if (recorded) {
    exit = *recorded;
  } else if (records_matter_) {
    if (std::exchange(worker.unread, recorded.error().message).empty()) {
      watch_.Remove(worker.shim.handle.get());
      Log(LogLevel::kError, "the record of a worker's end cannot be read yet",
          {{"folder", folder}, {"error", recorded.error().message}});
    }
    look_at_ = now + kLookAgain;
    return std::nullopt;
  }
  if (!exit) {
    if (!std::exchange(worker.shim_gone, true)) {
      watch_.Remove(worker.shim.handle.get());
      Log(LogLevel::kWarn, "shim ended without a record", {{"folder", folder}});
    }
    if (!KillLeftovers(folder_, worker.start)) {
      look_at_ = now + kLookAgain;
      return std::nullopt;
    }
    exit = Killed(worker.stopping);
  } else if (!KillGroup(folder)) {
    // A worker can write a record itself.
    look_at_ = now + kLookAgain;
    return std::nullopt;
  }
  StartRecord start = std::move(worker.start);
  start.exit = exit;
  start.exit->ended = std::min(start.exit->ended, now);
  return start;
}

WorkerProcesses::Changes WorkerProcesses::Look(double now) {
  // In this order: a worker that starts and ends at once is told of by two calls, and its start first.
  Changes changes;
  LookAtEnds(now, changes);
  LookAtStarts(now, changes);
  return changes;
}

void WorkerProcesses::LookAtStarts(double now, Changes& changes) {
  bool all_ready = true;
  for (auto at = live_.begin(); at != live_.end();) {
    const auto next = std::next(at);
    Worker& worker = at->second;
    if (worker.starting() && worker.stopping) {
      GiveUp(at);
    } else if (worker.starting() && !worker.launch->ready()) {
      Status reported = worker.launch->Look();
      if (reported && !worker.launch->ready() && now >= worker.start.spec->started + shim_seconds_)
        reported = worker.launch->DidNotStart();
      all_ready = all_ready && reported && worker.launch->ready();
      if (worker.launch->ready()) watch_.Remove(worker.launch->descriptor());
      if (!reported) {
        changes.failed.push_back({worker.start.serial, reported.error().message});
        GiveUp(at);
      }
    }
    at = next;
  }
  // If one has failed, the caller that ordered the starts decides before the others are told to start.
  if (!all_ready) return;
  for (auto& [number, worker] : live_) {
    if (!worker.starting()) continue;
    worker.shim = worker.launch->Go();
    worker.launch.reset();
    worker.began = now;
    worker.watched = watch_.Add(worker.shim.handle.get());
    changes.started.push_back(number);
  }
}

// Gives up a start that was not told to go: its worker never runs.
void WorkerProcesses::GiveUp(Live::iterator at) {
  Worker& worker = at->second;
  watch_.Remove(worker.launch->descriptor());
  worker.launch.reset();
  // A shim that was not told to start ends by itself; only then may its folder be removed.
  if (const auto held = LockHeld(worker.start.folder); held && !*held) {
    RemoveTree(worker.start.folder);
  } else {
    Write(worker.start, ExitVerdict::Kind::kLost);
  }
  live_.erase(at);
}

void WorkerProcesses::LookAtEnds(double now, Changes& changes) {
  look_at_ = 0;
  for (auto at = live_.begin(); at != live_.end();) {
    const auto next = std::next(at);
    Worker& worker = at->second;
    if (worker.starting()) {
      // There is nothing to stop.
    } else if (!worker.shim_gone && !Ended(worker.shim)) {
      if (worker.stopping && now >= worker.kill_at) {
        Log(LogLevel::kWarn, "shim did not stop its worker in time and is killed",
            {{"folder", worker.start.folder}});
        // The verdict is written first, so that a run that finds neither shim nor record sees that this was
        // no failure.
        Write(worker.start, ExitVerdict::Kind::kStopped);
        SendSignal(worker.shim, SIGKILL);
        worker.kill_at = now + 1;
      }
    } else if (auto closed = Closed(worker, now)) {
      watch_.Remove(worker.shim.handle.get());
      changes.ended.push_back(std::move(*closed));
      live_.erase(at);
    }
    at = next;
  }
}

void WorkerProcesses::Write(const StartRecord& start, ExitVerdict::Kind kind) const {
  if (const Status written = folder_.Write(start, {kind, 0}); !written)
    Log(LogLevel::kWarn, "verdict not written", {{"error", written.error().message}});
}

std::string WorkerProcesses::Unread() const {
  for (const auto& [number, worker] : live_) {
    if (!worker.unread.empty()) return worker.unread;
  }
  return {};
}

const Worker* WorkerProcesses::Find(int worker) const {
  const auto at = live_.find(worker);
  return at == live_.end() ? nullptr : &at->second;
}

double WorkerProcesses::Next(double now) const {
  double next = std::numeric_limits<double>::infinity();
  if (look_at_ > now) next = look_at_;
  for (const auto& [number, worker] : live_) {
    if (!worker.watched) next = std::min(next, now + kLookAgain);
    if (worker.starting()) {
      const bool at_once = worker.stopping || worker.launch->ready();
      next = std::min(next, at_once ? now : worker.start.spec->started + shim_seconds_);
    } else if (worker.stopping && !worker.shim_gone && worker.kill_at > now)
      next = std::min(next, worker.kill_at);
  }
  return next;
}

}  // namespace voda::local
