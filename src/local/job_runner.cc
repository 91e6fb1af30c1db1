#include "local/job_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/log.h"
#include "local/files.h"

namespace voda::local {

namespace {

// After so long the scheduler may have given an order up, and its outcome says nothing to it.
constexpr double kLongOrder = 20;

}  // namespace

std::unique_ptr<JobRunner> JobRunner::Make(Machine& machine, ClusterJob job) {
  return job.spec.kind == JobKind::kMpiJob ? MakeMpiRunner(machine, std::move(job))
                                           : MakePyTorchRunner(machine, std::move(job));
}

JobRunner::JobRunner(Machine& machine, ClusterJob job)
    : machine_(machine),
      job_(std::move(job)),
      workers_(JobFolder(JobPath(machine.config(), job_.id)), machine.config().shim, machine.watch()) {}

std::vector<std::string> JobRunner::Adopt() {
  found_ = workers_.Adopt();
  for (const StartRecord& start : found_) {
    if (start.spec) Note(start);
    if (start.verdict && start.verdict->kind == Verdict::Kind::kDisturbed)
      disturbed_row_ = start.verdict->number;
  }
  for (const auto& [number, worker] : workers_.live()) {
    if (worker.start.spec) Note(worker.start);
  }
  failures_ = workers_.folder().Failures(found_);
  machine_.SetFailures(job_.name, failures_);
  OnAdopted();
  believed_ = Actual();
  return believed_;
}

void JobRunner::Execute(Order order) {
  queue_.push_back(std::move(order));
}

void JobRunner::Forget() {
  phase_ = Phase::kForgotten;
}

void JobRunner::Advance(double now) {
  if (!found_.empty()) LookAtFound(now);
  for (StartRecord& start : workers_.Reap(now)) TakeEnd(std::move(start), now);
  if (running() && Consider(now)) {
    Work(now);
    if (running() && !order_) Tell();
  }
  if (!running()) AdvanceEnding(now);
}

double JobRunner::Next(double now) const {
  double next = workers_.Next(now);
  const auto consider = [&](double at) {
    if (at > now) next = std::min(next, at);
  };
  if (phase_ == Phase::kCompleting) consider(stop_at_);
  if (!running()) return next;
  if (order_) {
    for (const auto& [number, worker] : workers_.live()) {
      if (order_->started.contains(worker.start.serial))
        consider(worker.start.spec->started + config().settle_seconds);
    }
  }
  return std::min(next, NextOfKind(now));
}

bool JobRunner::quiet() const {
  if (!idle() || order_ || !queue_.empty() || !found_.empty()) return false;
  return !running() || NextOfKind(0) == std::numeric_limits<double>::infinity();
}

// What ended before this run, or while nobody looked. A verdict that ends the job is said again: the run
// before this one may not have got so far.
void JobRunner::LookAtFound(double now) {
  looking_back_ = true;
  for (StartRecord& start : std::exchange(found_, {})) {
    if (!running()) break;
    if (!start.spec || start.spec->incarnation != workers_.last_incarnation()) {
      if (!start.verdict) Close(start, {Verdict::Kind::kLost, 0});
    } else if (!start.verdict) {
      TakeEnd(std::move(start), now);
    } else if (start.verdict->kind == Verdict::Kind::kCompleted) {
      Complete(now);
    } else if (start.verdict->kind == Verdict::Kind::kFatal) {
      Fail(Message(start, fmt::format("failure {}", start.verdict->number)));
    }
  }
  looking_back_ = false;
}

void JobRunner::TakeEnd(StartRecord start, double now) {
  Note(start);
  if (start.exit->asked) {
    Close(start, {Verdict::Kind::kStopped, 0});
  } else if (!running()) {
    Close(start, {Verdict::Kind::kEarly, 0});
  } else {
    OnEnd(std::move(start), now);
  }
}

void JobRunner::Note(const StartRecord& start) {
  if (start.spec->incarnation < deeds_incarnation_) return;
  if (start.spec->incarnation > deeds_incarnation_) deeds_.clear();
  deeds_incarnation_ = start.spec->incarnation;
  const double ended = start.exit ? start.exit->ended : 0;
  for (Deed& deed : deeds_) {
    if (deed.serial != start.serial) continue;
    deed.ended = ended;
    return;
  }
  constexpr std::size_t kDeedsKept = 1000;  // those of long ago disturb nobody
  if (deeds_.size() >= 2 * kDeedsKept) deeds_.erase(deeds_.begin(), deeds_.begin() + kDeedsKept);
  deeds_.push_back({start.worker, start.serial, start.spec->purpose, start.spec->started, ended});
}

// A change by Voda, or the end of another worker, shortly before: torchrun and Horovod workers may die of
// either. A worker that was only repaired has no such excuse.
bool JobRunner::Disturbed(const StartRecord& start) const {
  const double end = start.exit->ended;
  const auto recent = [&](double at) {
    return at > 0 && at <= end && end - at <= config().disturbed_seconds;
  };
  if (recent(changed_at_)) return true;
  for (const auto& [number, worker] : workers_.live()) {
    if (number != start.worker && worker.stopping) return true;
  }
  for (const Deed& deed : deeds_) {
    const bool wished = deed.purpose != "start" && deed.purpose != "repair";
    if (deed.worker == start.worker) {
      if (deed.serial == start.serial && wished && recent(deed.started)) return true;
    } else if (recent(deed.ended) || (deed.purpose != "start" && recent(deed.started))) {
      return true;
    }
  }
  return false;
}

std::string JobRunner::Message(const StartRecord& start, const std::string& rule) const {
  std::string message =
      fmt::format("{} {} ({})", Title(start.worker), Describe(start.exit.value_or(ExitRecord{})), rule);
  const std::string lines = LastLinesOf(start.folder);
  if (!lines.empty()) message += ": " + lines;
  return message;
}

Status JobRunner::Start(const Seat& seat, const std::string& purpose) {
  const std::string path = workers_.folder().path();
  for (const std::string& folder : {WorkPath(path), MetricsPath(path)}) {
    if (const Status made = MakeFolder(folder, 0700); !made) return made.error();
  }
  Command command = WorkerCommand(config(), job_, seat);
  if (command.argv.empty()) return Error{"the container has no command"};
  WorkerSpec spec;
  spec.job = job_.id;
  spec.worker = seat.worker;
  spec.incarnation = seat.incarnation;
  spec.port = seat.port;
  spec.node = seat.node;
  spec.devices = seat.devices;
  spec.purpose = purpose;
  spec.grace_seconds = job_.spec.grace_seconds;
  spec.memory_bytes = seat.memory_bytes;
  spec.log_bytes = config().log_bytes;
  spec.working_dir = std::move(command.working_dir);
  spec.argv = std::move(command.argv);
  spec.env = std::move(command.env);
  const auto worker = workers_.Start(std::move(spec));
  if (!worker) return worker.error();
  Note((*worker)->start);
  lost_.erase(seat.worker);
  if (order_) order_->started.insert((*worker)->start.serial);
  Log(LogLevel::kInfo, "worker started",
      {{"job", job_.name},
       {"worker", seat.worker},
       {"node", seat.node},
       {"pid", (*worker)->shim.pid},
       {"purpose", purpose}});
  workers_.folder().Prune(seat.worker, failures_);
  return Ok{};
}

void JobRunner::Close(const StartRecord& start, const Verdict& verdict) {
  if (const Status written = workers_.folder().Write(start, verdict); !written)
    Log(LogLevel::kWarn, "verdict not written", {{"job", job_.name}, {"error", written.error().message}});
  std::string name = Encode(verdict);
  name.resize(name.find(' '));
  Log(LogLevel::kInfo, "worker ended",
      {{"job", job_.name},
       {"worker", start.worker},
       {"how", start.exit ? Describe(*start.exit) : "never ran"},
       {"verdict", name}});
}

Judgement JobRunner::JudgeEnd(const StartRecord& start, bool disturbed, double now) const {
  const EndFacts facts{.exit = *start.exit,
                       .ran = std::min(start.exit->ended, now) - start.spec->started,
                       .disturbed = disturbed || Disturbed(start),
                       .failures = failures_,
                       .disturbed_row = disturbed_row_};
  return Judge(job_.spec, facts, config().disturbed_seconds);
}

bool JobRunner::Judged(const StartRecord& start, double now) {
  const Judgement judgement = JudgeEnd(start, false, now);
  Close(start, judgement.verdict);
  repair_ = Message(start, judgement.rule);
  return Count(judgement, repair_);
}

bool JobRunner::Count(const Judgement& judgement, const std::string& message) {
  using Kind = Verdict::Kind;
  if (judgement.verdict.kind == Kind::kDisturbed) {
    disturbed_row_ = judgement.verdict.number;
    return true;
  }
  failures_ = judgement.verdict.number;
  machine_.SetFailures(job_.name, failures_);
  machine_.Notice({.job = job_.name,
                   .gpu_type = job_.gpu_type,
                   .kind = JobNotice::Kind::kWorkerFailed,
                   .message = message,
                   .failures = failures_});
  if (judgement.verdict.kind != Kind::kFatal) return true;
  Fail(message);
  return false;
}

double JobRunner::LastEnd() const {
  double last = 0;
  for (const Deed& deed : deeds_) last = std::max(last, deed.ended);
  return last;
}

double JobRunner::LastChange() const {
  double last = changed_at_;
  for (const Deed& deed : deeds_) last = std::max({last, deed.started, deed.ended});
  return last;
}

void JobRunner::Complete(double now) {
  phase_ = Phase::kCompleting;
  stop_at_ = now + job_.spec.grace_seconds;
}

void JobRunner::Fail(std::string message) {
  phase_ = Phase::kFailing;
  message_ = std::move(message);
}

// The scheduler hears of the end when the GPUs are free.
void JobRunner::AdvanceEnding(double now) {
  order_.reset();
  queue_.clear();
  if (phase_ == Phase::kEnded) return;
  if (phase_ != Phase::kCompleting || now >= stop_at_) workers_.StopAll(now);
  if (!workers_.live().empty()) return;
  if (phase_ == Phase::kForgotten) return;
  if (phase_ == Phase::kCompleting) {
    machine_.Post(job_.gpu_type, JobCompleted{job_.name});
  } else {
    machine_.Post(job_.gpu_type, JobFailed{job_.name, message_});
  }
  phase_ = Phase::kEnded;
}

void JobRunner::Work(double now) {
  for (;;) {
    if (!order_) {
      if (queue_.empty()) return;
      order_ = std::move(queue_.front());
      queue_.erase(queue_.begin());
      order_->begun = now;
    }
    if (!Step(now)) return;
  }
}

bool JobRunner::Done(double now) {
  const Order order = std::move(*order_);
  order_.reset();
  machine_.Post(order.gpu_type, ActionDone{order.id});
  believed_ = order.seats;
  if (now - order.begun > kLongOrder) {
    believed_ = Actual();
    machine_.Post(job_.gpu_type, WorkersObserved{job_.name, believed_});
  }
  if (!order.started.empty() && !repair_.empty()) {
    machine_.Notice({.job = job_.name,
                     .gpu_type = job_.gpu_type,
                     .kind = JobNotice::Kind::kWorkerRestarted,
                     .message = fmt::format("started again after {}", std::exchange(repair_, {})),
                     .failures = failures_});
  }
  return true;
}

bool JobRunner::Failed(std::string reason) {
  const Order order = std::move(*order_);
  order_.reset();
  machine_.Post(order.gpu_type, ActionFailed{order.id, std::move(reason)});
  return true;
}

bool JobRunner::Settled(double now) const {
  for (const auto& [number, worker] : workers_.live()) {
    if (order_->started.contains(worker.start.serial) &&
        now < worker.start.spec->started + config().settle_seconds)
      return false;
  }
  return true;
}

void JobRunner::Tell() {
  std::vector<std::string> actual = Actual();
  if (actual == believed_) return;
  believed_ = std::move(actual);
  machine_.Post(job_.gpu_type, WorkersObserved{job_.name, believed_});
}

}  // namespace voda::local
