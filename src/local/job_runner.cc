#include "local/job_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "local/files.h"

namespace voda::local {

namespace {

// After this long the scheduler may have given an order up and ignore its outcome.
constexpr double kLongOrder = 20;
// How long to wait before files that could not be read are read again.
constexpr double kReadAgain = 0.5;
// How long a shim may take to notice that its Voda died.
constexpr double kFindSeconds = 10;

double RanSince(double began) {
  return began > 0 ? std::max(0.0, UptimeNow() - began) : 0;
}

}  // namespace

std::unique_ptr<JobRunner> JobRunner::Make(Machine& machine, AcceptedJob job) {
  return job.spec->kind == JobKind::kMpiJob ? MakeMpiRunner(machine, std::move(job))
                                            : MakePyTorchRunner(machine, std::move(job));
}

JobRunner::JobRunner(Machine& machine, AcceptedJob job)
    : machine_(machine),
      job_(std::move(job)),
      workers_(JobFolder(JobPath(machine.config(), job_.id)), machine.config().shim,
               machine.config().shim_seconds, machine.watch()) {}

std::vector<std::string> JobRunner::Adopt() {
  find_until_ = UptimeNow() + kFindSeconds;
  if (const Status adopted = TryAdopt(); !adopted) {
    unread_ = adopted.error().message;
    adopt_at_ = UptimeNow() + kReadAgain;
    Log(LogLevel::kError, "a job is not taken over yet", {{"job", job_.name}, {"error", unread_}});
  }
  return believed_;
}

Status JobRunner::Claim() {
  const auto ours = workers_.folder().Claim({.id = job_.id,
                                             .name = job_.name,
                                             .gpu_type = job_.gpu_type,
                                             .token = job_.token,
                                             .accepted = WallNow(),
                                             .document = job_.spec->document});
  if (!ours) return ours.error();
  foreign_ = !*ours;
  if (foreign_)
    return Error{fmt::format("the folder {} belongs to another job; move it away", workers_.folder().path())};
  ours_ = true;
  return Ok{};
}

void JobRunner::NoteEnd() {
  if (!ours_) return;
  // A folder that somebody removed was made again by a shim, which does not know whose it is.
  if (const Status claimed = Claim(); !claimed && foreign_) return;
  Status noted = workers_.folder().NoteEnd(WallNow());
  if (const std::string path = workers_.folder().EndPath(); !noted && Exists(path)) {
    machine_.Erase(path);  // the job put a folder there
    noted = workers_.folder().NoteEnd(WallNow());
  }
  if (!noted) Log(LogLevel::kWarn, "end not noted", {{"job", job_.name}, {"error", noted.error().message}});
}

Status JobRunner::TryAdopt() {
  Status adopted = ReadAndAdopt();
  if (!adopted && !foreign_ && workers_.folder().RestoreRights()) adopted = ReadAndAdopt();
  return adopted;
}

Status JobRunner::ReadAndAdopt() {
  // One that nobody knows is only stopped.
  if (!job_.token.empty()) {
    if (Status claimed = Claim(); !claimed) return claimed;
    const auto ended = workers_.folder().End();
    if (!ended) return ended.error();
    ended_before_ = ended->has_value();
  }
  if (Status recalled = Recall(); !recalled) return recalled;
  const auto tally = workers_.folder().Tally();
  if (!tally) return tally.error();
  auto found = workers_.Adopt({.wait_until = machine_.AdoptionUntil(), .give_up = find_until_});
  if (!found) return found.error();
  found_ = std::move(*found);
  failures_ = *tally;
  for (const StartRecord& start : found_) {
    using Kind = ExitVerdict::Kind;
    if (start.spec) Note(start);
    const bool last = start.spec && start.worker == 0 &&
                      start.spec->incarnation == workers_.last_incarnation() && !workers_.Find(0);
    const bool told =
        start.verdict && start.verdict->kind != Kind::kCompleted && start.verdict->kind != Kind::kFatal;
    if (last && start.exit && !start.exit->asked && !told)
      machine_.SetRanUnheard(job_.name, start.exit->ended - start.spec->started);
    if (!start.verdict) continue;
    const auto [kind, number] = *start.verdict;
    if (kind == Kind::kDisturbed) disturbed_row_ = number;
    if (kind == Kind::kFailure || kind == Kind::kFatal) failures_ = std::max(failures_, number);
  }
  for (const auto& [number, worker] : workers_.live()) {
    if (worker.start.spec) Note(worker.start);
  }
  machine_.SetFailures(job_.name, failures_);
  OnAdopted();
  believed_ = Actual();
  return Ok{};
}

void JobRunner::AdoptLate(double now) {
  for (const OrderInHand& order : std::exchange(queue_, {}))
    machine_.Post(order.gpu_type, ActionFailed{order.id, unread_});
  if (forgotten() && foreign_) return unread_.clear();  // nothing of the job is there
  if (now < adopt_at_) return;
  adopt_at_ = now + kReadAgain;
  if (const Status adopted = TryAdopt(); !adopted) {
    unread_ = adopted.error().message;
    return TellStuck(unread_);
  }
  unread_.clear();
  TellStuck({});
  Log(LogLevel::kInfo, "a job is taken over after all", {{"job", job_.name}});
  // The scheduler was told that nothing runs.
  if (!believed_.empty() && !forgotten()) machine_.Post(job_.gpu_type, WorkersObserved{job_.name, believed_});
}

void JobRunner::TellStuck(const std::string& why) {
  if (why == stuck_) return;
  stuck_ = why;
  machine_.Notice(
      {.job = job_.name, .gpu_type = job_.gpu_type, .kind = JobNotice::Kind::kStuck, .message = why});
}

void JobRunner::Execute(OrderInHand order) {
  queue_.push_back(std::move(order));
}

void JobRunner::Forget() {
  phase_ = Phase::kForgotten;
  workers_.DisregardRecords();
}

void JobRunner::Advance(double now) {
  if (!unread_.empty()) AdoptLate(now);
  if (!unread_.empty()) return;
  if (ended_before_) EndAgain(now);
  if (!found_.empty()) LookAtFound(now);
  WorkerProcesses::Changes changes = workers_.Look(now);
  for (const int number : changes.started) TakeStart(*workers_.Find(number));
  for (const WorkerProcesses::FailedStart& failed : changes.failed) TakeFailedStart(failed);
  for (StartRecord& start : changes.ended) TakeEnd(std::move(start), now);
  TellStuck(workers_.Unread());
  if (running() && Consider(now)) {
    Work(now);
    if (running() && !order_) Tell();
  }
  if (!running()) AdvanceEnding(now);
}

double JobRunner::Next(double now) const {
  if (!unread_.empty()) return adopt_at_;
  double next = workers_.Next(now);
  const auto consider = [&](double at) {
    if (at > now) next = std::min(next, at);
  };
  if (phase_ == Phase::kCompleting) consider(stop_at_);
  if (!running()) return next;
  if (order_) {
    for (const auto& [number, worker] : workers_.live()) {
      if (order_->started.contains(worker.start.serial) && !worker.starting())
        consider(worker.began + config().trial_seconds);
    }
  }
  return std::min(next, NextOfKind(now));
}

bool JobRunner::quiet() const {
  if (!unread_.empty() || !idle() || order_ || !queue_.empty() || !found_.empty()) return false;
  return !running() || NextOfKind(0) == kForever;
}

// Handles the ends from before this run or from while Voda was away. A verdict that ended the job is
// reported again, because the previous run may not have come that far.
void JobRunner::LookAtFound(double now) {
  looking_back_ = true;
  for (StartRecord& start : std::exchange(found_, {})) {
    if (!running()) break;
    if (!start.spec || start.spec->incarnation != workers_.last_incarnation()) {
      if (!start.verdict) Close(start, {ExitVerdict::Kind::kLost, 0});
      continue;
    }
    if (!start.verdict) {
      TakeEnd(std::move(start), now);
    } else if (start.verdict->kind == ExitVerdict::Kind::kCompleted) {
      Complete(now);
    } else if (start.verdict->kind == ExitVerdict::Kind::kFatal) {
      Fail(Message(start, fmt::format("failure {}", start.verdict->number)),
           start.exit.value_or(ExitRecord{}));
    }
  }
  looking_back_ = false;
}

// The service believes the job to be active although it has seen its end: its store is an older copy. The job
// ends again as it did then, and is not run a second time.
void JobRunner::EndAgain(double now) {
  ended_before_ = false;
  if (!running()) return;
  Log(LogLevel::kError, "the store is an older copy: a job that is active in it has ended since",
      {{"job", job_.name}, {"folder", workers_.folder().path()}});
  for (const StartRecord& start : std::exchange(found_, {})) {
    if (!start.verdict) continue;
    if (start.verdict->kind == ExitVerdict::Kind::kCompleted) return Complete(now);
    if (start.verdict->kind == ExitVerdict::Kind::kFatal) {
      return Fail(Message(start, fmt::format("failure {}", start.verdict->number)),
                  start.exit.value_or(ExitRecord{}));
    }
  }
  machine_.Gone(job_.name);
  phase_ = Phase::kEnded;
}

void JobRunner::TakeEnd(StartRecord start, double now) {
  Note(start);
  if (start.exit->asked) {
    Close(start, {ExitVerdict::Kind::kStopped, 0});
  } else if (!running()) {
    Close(start, {ExitVerdict::Kind::kEarly, 0});
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
  constexpr std::size_t kDeedsKept = 1000;  // older deeds disturb nobody
  if (deeds_.size() >= 2 * kDeedsKept) deeds_.erase(deeds_.begin(), deeds_.begin() + kDeedsKept);
  deeds_.push_back({start.worker, start.serial, start.spec->purpose, start.spec->started, ended});
}

// Whether Voda changed the group, or another worker ended, shortly before: torchrun and Horovod workers may
// die of either. The repair of a worker is no such change.
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

Status JobRunner::Start(WorkerSpec start, const Told& told) {
  if (Status claimed = Claim(); !claimed) return claimed;
  const std::string path = workers_.folder().path();
  for (const std::string& folder : {WorkPath(path), MetricsPath(path)}) {
    if (const Status made = MakeFolder(folder, 0700); !made) return made.error();
  }
  start.job = job_.id;
  start.serial = workers_.next_serial();
  start.grace_seconds = job_.spec->grace_seconds;
  start.log_bytes = config().log_bytes;
  SetCommand(config(), job_, told, start);
  if (start.argv.empty()) return Error{"the container has no command"};
  const auto worker = workers_.Start(std::move(start));
  if (!worker) return worker.error();
  if (order_) order_->started.insert((*worker)->start.serial);
  return Ok{};
}

void JobRunner::TakeStart(const Worker& worker) {
  const int number = worker.start.worker;
  Note(worker.start);
  if (order_ && order_->ran_since == 0 && order_->started.contains(worker.start.serial))
    order_->ran_since = worker.start.spec->started;
  lost_.erase(number);
  Log(LogLevel::kInfo, "worker started",
      {{"job", job_.name},
       {"worker", number},
       {"node", worker.start.spec->node},
       {"pid", worker.shim.pid},
       {"purpose", worker.start.spec->purpose}});
  for (const std::string& folder : workers_.folder().Spent(number, failures_)) machine_.Erase(folder);
}

void JobRunner::TakeFailedStart(const WorkerProcesses::FailedStart& failed) {
  if (order_ && order_->started.contains(failed.serial) && order_->failed.empty())
    order_->failed = failed.message;
}

void JobRunner::Close(const StartRecord& start, const ExitVerdict& verdict) {
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

ExitJudgement JobRunner::JudgeEnd(const StartRecord& start, bool disturbed, double now) const {
  const EndFacts facts{.exit = *start.exit,
                       .ran = std::min(start.exit->ended, now) - start.spec->started,
                       .disturbed = disturbed || Disturbed(start),
                       .failures = failures_,
                       .disturbed_row = disturbed_row_};
  return JudgeExit(*job_.spec, facts, config().disturbed_seconds);
}

bool JobRunner::CountEnd(const StartRecord& start, double now) {
  const ExitJudgement judgement = JudgeEnd(start, false, now);
  Close(start, judgement.verdict);
  repair_ = Message(start, judgement.rule);
  return Count(judgement, repair_, *start.exit);
}

bool JobRunner::Count(const ExitJudgement& judgement, const std::string& message, const ExitRecord& exit) {
  using Kind = ExitVerdict::Kind;
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
  Fail(message, exit);
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
  stop_at_ = now + job_.spec->grace_seconds;
}

void JobRunner::Fail(std::string message, const ExitRecord& exit) {
  phase_ = Phase::kFailing;
  exit_code_ = exit.status();
  message_ = std::move(message);
}

// The scheduler learns of the end when the GPUs are free.
void JobRunner::AdvanceEnding(double now) {
  if (order_) ran_since_ = order_->ran_since;
  order_.reset();
  const std::vector<OrderInHand> refused = std::exchange(queue_, {});
  if (phase_ == Phase::kEnded) {
    // A job that is gone is let go of only when nothing is in flight for it.
    for (const OrderInHand& order : refused)
      machine_.Post(order.gpu_type, ActionFailed{order.id, "the job has ended"});
    return;
  }
  if (phase_ != Phase::kCompleting || now >= stop_at_) workers_.StopAll(now);
  if (!workers_.live().empty()) return;
  if (phase_ == Phase::kForgotten) return;
  const double ran = RanSince(ran_since_);
  if (phase_ == Phase::kCompleting) {
    machine_.Post(job_.gpu_type, JobCompleted{job_.name, ran});
  } else {
    machine_.Post(job_.gpu_type, JobFailed{job_.name, message_, ran, exit_code_});
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
  const OrderInHand order = std::move(*order_);
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
  const OrderInHand order = std::move(*order_);
  order_.reset();
  machine_.Post(order.gpu_type, ActionFailed{order.id, std::move(reason), RanSince(order.ran_since)});
  return true;
}

bool JobRunner::TrialOver(double now) const {
  for (const auto& [number, worker] : workers_.live()) {
    if (order_->started.contains(worker.start.serial) &&
        (worker.starting() || now < worker.began + config().trial_seconds))
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
