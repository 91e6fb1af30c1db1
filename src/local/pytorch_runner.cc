// PyTorchJob: one process per worker. Worker 0 hosts the rendezvous, and its end decides: without it the
// others have nobody to meet, so its loss stops them all, and its start makes a new incarnation.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/log.h"
#include "local/files.h"
#include "local/job_runner.h"
#include "local/network.h"
#include "local/torchrun.h"

namespace voda::local {

namespace {

// How long worker 0 may take to end, too, after another has ended well: agents end within seconds of each
// other.
constexpr double kAfterSuccess = 60;
// How often a worker that ended well before worker 0 is started again; after that it has done its part.
constexpr int kEarlyMax = 3;
// How long a resize waits for torchrun to have formed its group, and how often it looks.
constexpr double kFormingMax = 60;
constexpr double kLookEvery = 0.25;
// How often it is checked what torchrun does.
constexpr double kLookInsideEvery = 2;

class PyTorchRunner final : public JobRunner {
 public:
  PyTorchRunner(Machine& machine, AcceptedJob job) : JobRunner(machine, std::move(job)) {}

  std::vector<int> HeldDevices(const std::string& node) const override {
    std::vector<int> held;
    for (const auto& [number, worker] : workers_.live()) {
      const auto& spec = worker.start.spec;
      if (spec && spec->node == node) held.insert(held.end(), spec->devices.begin(), spec->devices.end());
    }
    return held;
  }

 protected:
  std::string Title(int worker) const override {
    return worker == 0 && job_.spec->master ? "the master" : fmt::format("worker {}", worker);
  }

  std::vector<std::string> Actual() const override {
    std::vector<std::string> seats;
    const auto sit = [&](int number, const StartRecord& start) {
      const auto at = static_cast<std::size_t>(number);
      if (seats.size() <= at) seats.resize(at + 1);
      if (start.spec) seats[at] = start.spec->node;
    };
    for (const auto& [number, worker] : workers_.live()) sit(number, worker.start);
    for (const auto& [number, pending] : pending_) {
      if (pending.seated) sit(number, pending.start);
    }
    if (!seats.empty() && seats.size() < believed_.size()) seats.resize(believed_.size());
    return seats;
  }

  // Workers that ended while Voda was away and worker 0 went on keep their seats until they are judged, as
  // if Voda had been there.
  void OnAdopted() override {
    adopted_ = true;
    for (const auto& [number, worker] : workers_.live()) {
      attempts_[worker.start.serial] = LastAttempt(worker.start.folder, 0, UptimeNow()).number;
    }
    if (workers_.Find(0) == nullptr) return;
    const double now = UptimeNow();
    std::vector<StartRecord> rest;
    for (StartRecord& start : std::exchange(found_, {})) {
      const bool waits = start.worker != 0 && start.spec &&
                         start.spec->incarnation == workers_.last_incarnation() && !start.verdict &&
                         start.exit && !start.exit->asked && workers_.Find(start.worker) == nullptr;
      if (waits) {
        OnEnd(std::move(start), now);
      } else {
        rest.push_back(std::move(start));
      }
    }
    found_ = std::move(rest);
  }

  void OnEnd(StartRecord start, double now) override {
    const bool success = start.exit->success();
    if (start.worker == 0 && success) {
      Close(start, {ExitVerdict::Kind::kCompleted, 0});
      DropPending();
      Complete(now);
      return;
    }
    if (!success && order_ && order_->started.contains(start.serial)) {
      // It is judged at once: nothing else is known to be under way.
      if (order_->failed.empty()) order_->failed = Message(start, "at its start");
      // A worker that the job never had is not missing.
      if (static_cast<std::size_t>(start.worker) < believed_.size()) lost_.insert(start.worker);
      if (CountEnd(start, now) && start.worker == 0) DropPending();
      return;
    }
    if (start.worker == 0) {
      // The worker that failed first is to blame.
      while (!pending_.empty() && running()) JudgeOne(FirstPending(), now);
      if (running() && CountEnd(start, now)) Collapse(fmt::format("worker 0 {}", Describe(*start.exit)));
      return;
    }
    const bool may_be_done = Rigid(*job_.spec) || early_ >= kEarlyMax;
    const double patience = !success ? config().judge_seconds : may_be_done ? kForever : kAfterSuccess;
    const int number = start.worker;
    const auto at =
        pending_.insert_or_assign(number, Pending{std::move(start), now + patience, !looking_back_});
    if (collapse_) JudgeOne(at.first, now);  // worker 0 has ended
  }

  bool Consider(double now) override {
    // Worker 0 is gone unless it was vacated. This also covers a Voda that was killed after it had asked
    // only some workers to stop.
    const bool vacated = !std::exchange(adopted_, false) && !believed_.empty() && believed_[0].empty();
    if (!workers_.live().empty() && workers_.Find(0) == nullptr && !order_ && !vacated && !collapse_)
      Collapse("worker 0 is gone");
    JudgePending(now);
    if (running()) LookInside(now);
    if (!running()) return false;
    if (!collapse_) return true;
    workers_.StopAll(now);
    if (!workers_.live().empty()) return false;
    collapse_ = false;
    if (order_ && order_->kind != ActionKind::kHalt)
      Failed(order_->failed.empty() ? collapse_reason_ : order_->failed);
    return true;
  }

  bool Step(double now) override {
    OrderInHand& order = *order_;
    if (!order.failed.empty()) {
      bool left = false;
      for (const auto& [number, worker] : workers_.live()) {
        if (!order.started.contains(worker.start.serial)) continue;
        workers_.Stop(number, now);
        left = true;
      }
      return !left && Failed(order.failed);
    }
    if (order.started.empty() && !order.whole && Outside(order)) {
      order.whole = true;
      order.first_new = workers_.next_serial();
    }
    const bool takes = !Releases(order.kind) || order.whole;
    if (order.started.empty()) {
      if (takes && PendingDecides()) return false;
      for (auto at = pending_.begin(); at != pending_.end();) {
        const auto next = std::next(at);
        if (takes || SeatIn(order, at->first).empty()) DropPending(at);
        at = next;
      }
      if (takes && !order.whole) ConsiderWhole(order);
    }
    bool waiting = false;
    bool staying = false;
    for (const auto& [number, worker] : workers_.live()) {
      staying = staying || Stays(order, number, worker);
    }
    if (staying && !order.whole && Forming(now)) return false;
    for (const auto& [number, worker] : workers_.live()) {
      if (Stays(order, number, worker)) continue;
      workers_.Stop(number, now);
      waiting = true;
    }
    if (waiting) return false;
    if (takes && !StartMissing(order)) return Step(now);
    return TrialOver(now) && Done(now);
  }

  double NextOfKind(double now) const override {
    double next = forming_since_ ? now + kLookEvery : kForever;
    if (!workers_.live().empty() && !Rigid(*job_.spec))
      next = std::min(next, std::max(look_inside_, now + kLookEvery));
    for (const auto& [number, pending] : pending_) {
      if (pending.judge_at > now) next = std::min(next, pending.judge_at);
    }
    return next;
  }

 private:
  // Whether torchrun is still bringing its workers together, so that none may be taken away: the others
  // would wait for it for minutes. A group is formed when every agent has a training process that knows the
  // present size. The wait has a limit: a program that never forms a group must not keep its seats.
  bool Forming(double now) {
    const auto leaves = [&](const auto& entry) { return !Stays(*order_, entry.first, entry.second); };
    const auto& live = workers_.live();
    const bool any = std::any_of(live.begin(), live.end(), leaves);
    const bool begun =
        std::any_of(live.begin(), live.end(), [](const auto& entry) { return entry.second.stopping; });
    if (!any || begun || !RunsTorchrun() || Formed()) {
      forming_since_.reset();
      return false;
    }
    if (!forming_since_) forming_since_ = now;
    if (now - *forming_since_ < kFormingMax) return true;
    Log(LogLevel::kWarn, "workers did not come together; resized all the same",
        {{"job", job_.name}, {"seconds", kFormingMax}});
    forming_since_.reset();
    return false;
  }

  // What the workers did comes first, since a script may hide the command.
  bool RunsTorchrun() const {
    const auto& live = workers_.live();
    return std::any_of(live.begin(), live.end(),
                       [](const auto& entry) { return Exists(TorchrunPath(entry.second.start.folder)); }) ||
           NamesTorchrun(*job_.spec);
  }

  bool Formed() const {
    std::set<int> numbers;
    for (const auto& [number, worker] : workers_.live()) numbers.insert(number);
    return TorchrunFormed(workers_.folder().path(), numbers);
  }

  // torchrun is told to restart training as often as resizes may need, so a script that fails would be
  // restarted for ever. Without torchrun there are no attempts to see. Each attempt counts like the failure
  // of a worker, unless it followed a change of the group, which is what the restarts are for. A job's own
  // limit is left to torchrun.
  bool CountsAttempts() const { return job_.spec->elastic && !job_.spec->max_restarts; }

  void LookInside(double now) {
    if (now < look_inside_) return;
    look_inside_ = now + kLookInsideEvery;
    EndStale(now);
    if (CountsAttempts()) CountAttempts(now);
  }

  // Training that knows of workers who have left cannot go on. Mostly it fails at once and torchrun forms
  // the group anew; but if it was still meeting the others, or waits inside a collective operation, it
  // would wait for its own time limit, which may be half an hour. So it is made to fail.
  void EndStale(double now) {
    if (Rigid(*job_.spec) || workers_.live().empty()) return;
    const double left = LastEnd();
    if (left == 0 || left == fresh_since_ || now < left + config().stale_seconds) return;
    for (const auto& [number, worker] : workers_.live()) {
      if (worker.stopping) return;
    }
    bool stale = false;
    const auto trainings = TrainingProcesses(workers_.folder().path());
    if (!trainings) return;
    for (const Training& training : *trainings) {
      if (training.group <= static_cast<int>(workers_.live().size()) || training.began > left) continue;
      stale = true;
      if (!Signal(training.process, SIGKILL)) continue;
      Log(LogLevel::kInfo, "training waited for workers that have left, and was ended",
          {{"job", job_.name}, {"worker", training.worker}, {"group", training.group}});
    }
    if (!stale) fresh_since_ = left;  // whatever is started later knows the new group
  }

  void CountAttempts(double now) {
    int failed = 0;
    StartRecord blamed;
    bool disturbed = false;
    std::map<int, int> seen;
    for (const auto& [number, worker] : workers_.live()) {
      if (worker.stopping || !worker.start.spec) continue;
      const Attempt last = LastAttempt(worker.start.folder, worker.start.spec->started, now);
      const int before = attempts_[worker.start.serial];
      seen[worker.start.serial] = std::max(before, last.number);
      if (last.number - before <= failed) continue;
      failed = last.number - before;
      blamed = worker.start;
      disturbed = last.previous_began <= LastChange();
    }
    attempts_ = std::move(seen);
    for (; failed > 0 && running(); --failed) {
      blamed.exit = ExitRecord{.code = 1, .ended = now};
      const ExitJudgement judgement = JudgeEnd(blamed, disturbed, now);
      std::string message = fmt::format("{}: training failed and torchrun started it again ({})",
                                        Title(blamed.worker), judgement.rule);
      if (const std::string lines = LastLinesOf(blamed.folder); !lines.empty()) message += ": " + lines;
      Count(judgement, message, *blamed.exit);
    }
  }

  struct Pending {
    StartRecord start;
    double judge_at = 0;
    bool seated = true;  // for the scheduler it still holds its seat
  };
  using PendingMap = std::map<int, Pending>;

  static std::string SeatIn(const Order& order, int number) {
    const auto at = static_cast<std::size_t>(number);
    return at < order.seats.size() ? order.seats[at] : std::string();
  }

  static bool Stays(const OrderInHand& order, int number, const Worker& worker) {
    if (worker.stopping || (order.whole && worker.start.serial < order.first_new)) return false;
    return worker.start.spec && !worker.start.spec->node.empty() &&
           worker.start.spec->node == SeatIn(order, number);
  }

  // Whether worker 0 was not told of the new size: the job's limits have changed since its start.
  bool Outside(const Order& order) const {
    const Worker* root = workers_.Find(0);
    if (root == nullptr || order.seats.empty() || order.seats[0].empty()) return false;
    const auto& own = job_.spec->worker.env;  // a job's own setting stands
    if (std::any_of(own.begin(), own.end(), [](const EnvVar& v) { return v.name == "PET_NNODES"; }))
      return false;
    for (const EnvVar& variable : root->start.spec->env) {
      if (variable.name != "PET_NNODES") continue;
      int min = 0;
      const char* const end = variable.value.data() + variable.value.size();
      const auto [colon, code] = std::from_chars(variable.value.data(), end, min);
      int max = min;
      if (code == std::errc() && colon != end) std::from_chars(colon + 1, end, max);
      const int size = static_cast<int>(order.seats.size());
      const bool told = size >= min && size <= max;
      // Only if another start would tell it better.
      return !told && size >= job_.spec->limits.min && size <= job_.spec->limits.max;
    }
    return false;
  }

  // Decides whether the job must be started as a whole. Worker 0 cannot be started beside others. A job
  // that keeps its size can only be started as a whole, unless its running workers still wait for the rest
  // of their start.
  void ConsiderWhole(OrderInHand& order) {
    if (workers_.live().empty()) return;
    const bool rigid = Rigid(*job_.spec);
    bool whole = false;
    for (int number = 0; number < static_cast<int>(order.seats.size()); ++number) {
      const Worker* worker = workers_.Find(number);
      if (SeatIn(order, number).empty() || (worker != nullptr && Stays(order, number, *worker))) continue;
      whole = whole || number == 0 || (rigid && (worker != nullptr || lost_.contains(number) || Ran(number)));
    }
    order.whole = whole;
    order.first_new = workers_.next_serial();
  }

  // Whether a worker was started in the present incarnation and is gone. If that cannot be read, it counts as
  // started: the job is then started as a whole, which is right in any case.
  bool Ran(int number) const {
    const auto starts = workers_.folder().Starts();
    if (!starts) return true;
    for (const StartRecord& start : *starts) {
      if (start.worker == number && start.spec && start.spec->incarnation == workers_.last_incarnation() &&
          !(start.verdict && start.verdict->kind == ExitVerdict::Kind::kLost))
        return true;
    }
    return false;
  }

  // Starts in ascending order, so that a crash leaves a job of fewer workers. Returns false if the order
  // failed.
  bool StartMissing(OrderInHand& order) {
    for (int number = 0; number < static_cast<int>(order.seats.size()); ++number) {
      const std::string node = SeatIn(order, number);
      if (node.empty() || workers_.Find(number) != nullptr) continue;
      if (pending_.contains(number)) continue;  // this order started it, and it ended well
      if (const Status started = StartOne(order, number, node); !started) {
        order.failed = started.error().message;
        return false;
      }
    }
    return true;
  }

  Status StartOne(const OrderInHand& order, int number, const std::string& node) {
    auto devices = machine_.FreeDevices(node, job_.spec->gpus_per_worker);
    if (!devices) return devices.error();
    const bool anew = order.kind == ActionKind::kStart || order.whole;
    const bool master = number == 0 && job_.spec->master;
    WorkerSpec start{
        .worker = number,
        .node = node,
        .devices = std::move(devices->indices),
        .purpose = anew                     ? "start"
                   : lost_.contains(number) ? "repair"
                                            : std::string(Name(order.kind)),
        .memory_bytes = master ? job_.spec->master->memory_bytes : job_.spec->worker.memory_bytes};
    Told told{.has_devices = devices->known};
    const Worker* root = workers_.Find(0);
    if (root == nullptr) {
      const auto port = machine_.FreePort();
      if (!port) return port.error();
      start.port = *port;
      start.incarnation = workers_.last_incarnation() + 1;
      if (config().private_network) start.network = kOwnNetwork;
    } else {
      if (!root->start.spec->network.empty()) start.network = root->start.folder;
      start.port = root->start.spec->port;
      start.incarnation = root->start.spec->incarnation;
      for (const EnvVar& variable : root->start.spec->env) {
        if (variable.name == "PET_NNODES") told.nnodes = variable.value;
        if (variable.name == "PET_RDZV_ID") told.rendezvous = variable.value;
      }
    }
    return Start(std::move(start), told);
  }

  void Collapse(std::string reason) {
    collapse_ = true;
    collapse_reason_ = std::move(reason);
    DropPending();
  }

  bool PendingDecides() const {
    return std::any_of(pending_.begin(), pending_.end(),
                       [](const auto& entry) { return entry.second.judge_at < kForever; });
  }

  void JudgePending(double now) {
    for (auto at = pending_.begin(); at != pending_.end() && running();) {
      const auto next = std::next(at);
      if (now >= at->second.judge_at) {
        const bool failed = !at->second.start.exit->success();
        const std::string how = fmt::format("worker {} {}", at->first, Describe(*at->second.start.exit));
        JudgeOne(at, now);
        if (failed && running() && Rigid(*job_.spec)) return Collapse(how);
      }
      at = next;
    }
  }

  PendingMap::iterator FirstPending() {
    return std::min_element(pending_.begin(), pending_.end(), [](const auto& a, const auto& b) {
      return a.second.start.exit->ended < b.second.start.exit->ended;
    });
  }

  void JudgeOne(PendingMap::iterator at, double now) {
    const StartRecord start = std::move(at->second.start);
    pending_.erase(at);
    lost_.insert(start.worker);
    if (start.exit->success()) {
      ++early_;
      Close(start, {ExitVerdict::Kind::kEarly, 0});
    } else {
      CountEnd(start, now);
    }
  }

  // Nothing depends any more on how the worker ended.
  void DropPending(PendingMap::iterator at) {
    const bool success = at->second.start.exit->success();
    Close(at->second.start, {success ? ExitVerdict::Kind::kEarly : ExitVerdict::Kind::kDisturbed, 0});
    pending_.erase(at);
  }
  void DropPending() {
    while (!pending_.empty()) DropPending(pending_.begin());
  }

  int early_ = 0;
  bool adopted_ = false;
  std::optional<double> forming_since_;  // set while a resize waits for torchrun
  std::map<int, int> attempts_;          // torchrun's attempts that were handled, by serial
  double look_inside_ = 0;
  double fresh_since_ = 0;  // the end of a worker that no training waits for any more
  bool collapse_ = false;   // all workers are being stopped, because worker 0 is gone
  std::string collapse_reason_;
  PendingMap pending_;  // workers other than 0 that ended, until worker 0 has had time to end, too
};

}  // namespace

std::unique_ptr<JobRunner> MakePyTorchRunner(Machine& machine, AcceptedJob job) {
  return std::make_unique<PyTorchRunner>(machine, std::move(job));
}

}  // namespace voda::local
