#include "kubeflow/job_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "kube/json_read.h"

namespace voda::kubeflow {

namespace {

constexpr kube::Duration kSoon{1000};
constexpr kube::Duration kQuiet{100};          // without a change in the watch, a job is at rest
constexpr kube::Duration kMostQuiet{1000};     // how long an order waits for that
constexpr kube::Duration kUntilHandled{2000};  // how long it waits for an operator that may not run at all
constexpr kube::Duration kLongest{30'000};
constexpr kube::Duration kUntilSeen{60'000};
constexpr kube::Duration kEnding{5'000};
constexpr kube::Duration kPatience{20'000};
constexpr kube::Duration kForgotten{600'000};  // after running this long, a worker's failure is forgotten
constexpr kube::Duration kStuck{30'000};       // after this long, the user is told that an order is stuck
constexpr kube::Duration kNoRoom{120'000};     // after this long, pods that find no room give back their GPUs
constexpr kube::Duration kGiveUp{300'000};     // how long the scheduler waits for an outcome
constexpr int kHostTries = 120;
constexpr kube::Duration kHostsEvery{500};

kube::Duration Backoff(int failures) {
  return std::min(kLongest, kSoon * (1 << std::min(failures, 5)));
}

// Whether a job that holds these seats has workers, and all of them have given back theirs.
bool Vacated(const std::vector<std::string>& seats) {
  return !seats.empty() &&
         std::all_of(seats.begin(), seats.end(), [](const auto& seat) { return seat.empty(); });
}

std::size_t Count(std::string_view text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

}  // namespace

JobDriver::JobDriver(DriverHost& host, ClusterSink& sink, ManagedJob job)
    : host_(host),
      sink_(sink),
      job_(std::move(job.name)),
      gpu_type_(std::move(job.gpu_type)),
      whole_(job.whole),
      min_(job.min),
      settings_(std::move(job.settings)),
      believed_(std::move(job.believed)) {}

void JobDriver::Change(ManagedJob job) {
  whole_ = job.whole;
  min_ = job.min;
  job.settings.state = std::move(settings_.state);
  settings_ = std::move(job.settings);
}

void JobDriver::Abandon(const std::string& why) {
  if (const auto left = std::exchange(order_, {})) {
    sink_.Post({{left->order.gpu_type, ActionFailed{left->order.id, why}}});
  }
}

JobDriver::~JobDriver() {
  *alive_ = false;
  host_.io().Cancel(timer_);
}

void JobDriver::Execute(Order order) {
  order_ = {std::move(order), host_.io().Now(), false};
  Advance();
}

void JobDriver::Changed() {
  changed_ = host_.io().Now();
  ++changes_;
  if (std::exchange(stale_, false)) retry_at_ = {};
  Advance();
}

kube::Duration JobDriver::OperatorNeeds(const JobObject& job) const {
  const kube::TimePoint now = host_.io().Now();
  const kube::Duration waited = now - order_->begun;
  if (job.handled) return std::min(kQuiet - (now - changed_), kMostQuiet - waited);
  // An older object had its time before the order, or before we came. Its age is known to a second, by the
  // server's clock: a clock that differs only makes this wait shorter or longer.
  const auto created =
      std::chrono::duration_cast<kube::Duration>(std::chrono::duration<double>(job.created + 1));
  const auto wall = std::chrono::duration_cast<kube::Duration>(host_.io().Wall().time_since_epoch());
  return kUntilHandled - std::max(waited, wall - created);
}

JobView JobDriver::View() const {
  const JobObject* job = host_.FindJob(job_);
  static const JobObject kNone;
  JobView view = MakeView(job != nullptr ? *job : kNone, host_.PodsOf(job_), whole_);
  view.nominal = settings_.steering == Steering::kOff;
  for (JobView::Worker& worker : view.workers) worker.dead = Dead(*worker.pod);
  view.patient = order_ && host_.io().Now() - order_->begun < kPatience;
  view.launcher_dead = view.launcher != nullptr && Dead(*view.launcher);
  return view;
}

bool JobDriver::Dead(const PodObject& pod) const {
  return pod.deleting && WallSeconds() >= pod.gone_by && host_.Silent(pod.node);
}

void JobDriver::LookAtEnding(const JobView& view) {
  const auto look = [&](const PodObject* pod) {
    if (pod == nullptr || !pod->deleting) return;
    const std::chrono::duration<double> left(pod->gone_by - WallSeconds());
    Again(std::max(kEnding, std::chrono::duration_cast<kube::Duration>(left)));
  };
  for (const JobView::Worker& worker : view.workers) look(worker.pod);
  look(view.launcher);
}

double JobDriver::WallSeconds() const {
  return std::chrono::duration<double>(host_.io().Wall().time_since_epoch()).count();
}

std::vector<std::string> JobDriver::Held() const {
  const JobView view = View();
  std::vector<std::string> seats = Seats(view);
  // All workers of a vacated job are down, and yet it runs: its launcher does, and its object says so.
  const bool vacated = !view.job->suspended && Vacated(believed_) &&
                       believed_.size() == static_cast<std::size_t>(view.job->replicas);
  if (seats.empty() && vacated) return believed_;
  if (settings_.steering == Steering::kOff) {
    // The scheduler goes on with the nodes that it chose; only their number counts.
    for (std::size_t i = 0; i < std::min(seats.size(), believed_.size()); ++i) {
      if (!seats[i].empty() && !believed_[i].empty()) seats[i] = believed_[i];
    }
  }
  return seats;
}

std::string JobDriver::Waits() const {
  if (!order_) return {};
  if (in_flight_ > 0) return fmt::format("{} writes to be answered", in_flight_);
  if (!awaited_.empty()) return fmt::format("{} writes to be seen", awaited_.size());
  return NextStep(View(), order_->order).why;
}

bool JobDriver::WritesSeen() {
  if (in_flight_ > 0) return false;
  const kube::TimePoint now = host_.io().Now();
  std::set<std::string> there;  // uids
  for (const PodObject* pod : host_.PodsOf(job_)) {
    if (!pod->deleting || Dead(*pod)) there.insert(pod->head.uid);
  }
  std::erase_if(awaited_, [&](const Awaited& one) {
    if (now >= one.until) return true;
    if (!one.sent.removes.empty()) return !there.contains(one.sent.removes);
    return host_.HasSeen(one.sent.resource, KeyOf(job_).name_space, one.version);
  });
  if (!awaited_.empty()) Again(awaited_.front().until - now);
  return awaited_.empty();
}

void JobDriver::Advance() {
  const JobObject* job = host_.FindJob(job_);
  if (job == nullptr || ended_ || !WritesSeen()) return;
  if (job->end != JobObject::End::kNone) {
    ended_ = true;
    order_.reset();
    std::vector<TypedEvent> events = host_.Ended(job_);
    const bool succeeded = job->end == JobObject::End::kSucceeded;
    events.insert(events.begin(),
                  {gpu_type_, succeeded ? Event(JobCompleted{job_}) : Event(JobFailed{job_, job->message})});
    return sink_.Post(std::move(events));
  }
  LookAtSuspension(*job);
  if (order_ && !Pursue(*job)) return;
  Tell();
}

void JobDriver::LookAtSuspension(const JobObject& job) {
  const bool was_running = std::exchange(not_suspended_, !job.suspended);
  if (!was_running || !job.suspended || order_) return;
  host_.TellUser(
      job_, {"SuspendedByOthers",
             fmt::format("somebody else set spec.runPolicy.suspend, by which Voda stops and starts jobs; "
                         "it starts this one again as planned. To keep it from running: voda hold {}",
                         job_),
             true});
}

void JobDriver::GiveBack(const JobView& view, const std::string& why) {
  Order& order = order_->order;
  if (!order_->no_room.empty() || Releases(order.kind)) return;
  std::vector<bool> placed;
  for (const std::string& seat : order.seats) placed.push_back(seat.empty());  // one that is down needs none
  for (const JobView::Worker& worker : view.workers) {
    if (worker.pod->deleting) return;  // it waits for an end, not for room
    const auto at = static_cast<std::size_t>(worker.number);
    if (at < placed.size() && (!worker.pod->node.empty() || worker.pod->over())) placed[at] = true;
  }
  // The operators take away the highest numbers.
  const auto room = std::find(placed.begin(), placed.end(), false) - placed.begin();
  const bool all = room == static_cast<std::ptrdiff_t>(placed.size());
  if (all && !view.launcher_waits()) return;
  order_->no_room = why;
  const bool trains = !view.launcher_waits() && !view.whole && room >= std::max(min_, 1);
  order.kind = trains ? ActionKind::kShrink : ActionKind::kHalt;
  order.seats.resize(trains ? static_cast<std::size_t>(room) : 0);
}

std::string JobDriver::WhyStuck(const StepResult& step) const {
  return refusal_.empty() ? step.why : fmt::format("{}; Kubernetes refused: {}", step.why, refusal_);
}

// Takes the order one step further. Returns true when it is over.
bool JobDriver::Pursue(const JobObject& job) {
  const JobView view = View();
  const kube::Duration waited = host_.io().Now() - order_->begun;
  if (waited >= kNoRoom) GiveBack(view, WhyStuck(NextStep(view, order_->order)));
  const Order& order = order_->order;
  const StepResult step = NextStep(view, order);
  if (step.state == StepResult::State::kDone) {
    const bool resized = order.seats.size() != believed_.size();
    believed_ = order.seats;
    if (order_->no_room.empty()) {
      sink_.Post({{order.gpu_type, ActionDone{order.id}}});
    } else {
      sink_.Post(
          {{order.gpu_type, WorkersObserved{job_, believed_}},
           {order.gpu_type, ActionFailed{.id = order.id, .message = order_->no_room, .no_room = true}}});
    }
    if (resized && !order.seats.empty() && job.kind == JobKind::kMpiJob) {
      FollowHosts(static_cast<int>(order.seats.size()), 0);
    }
    order_.reset();
    // By this the next leader counts the time at each size.
    if (note_due_ && !settings_.state.empty() && host_.MayWrite()) {
      note_due_ = false;
      SendRequest(AnnotationRequest(job.resource, job.key(), job.head.uid, kStateAnnotation, settings_.state),
                  {job.resource, {}, changes_});
    }
    return true;
  }
  if (waited >= kGiveUp) {
    // The outcome is reported, so that the next plan can repair it.
    Abandon(fmt::format("given up: {}", step.why));
    return true;
  }
  if (waited >= kStuck && !order_->told) {
    order_->told = true;
    const std::string why = WhyStuck(step);
    host_.Stuck(job_, why);
    sink_.Notice({job_, gpu_type_, JobNotice::Kind::kStuck, why, failed_workers_});
  }
  Again((!order_->told ? kStuck : waited < kNoRoom ? kNoRoom : kGiveUp) - waited);
  LookAtEnding(view);
  if (view.patient) Again(kPatience - waited);
  if (step.writes.empty()) return false;
  if (const kube::Duration left = retry_at_ - host_.io().Now(); left.count() > 0) {
    Again(left);
    return false;
  }
  const bool of_the_job = std::any_of(step.writes.begin(), step.writes.end(), [](const Write& write) {
    return write.kind != Write::Kind::kPin && write.kind != Write::Kind::kDeletePod;
  });
  const bool may_write = host_.MayWrite();
  const kube::Duration needed = of_the_job ? OperatorNeeds(job) : kube::Duration(0);
  if (!may_write || needed.count() > 0) {
    Again(may_write ? needed : kSoon);
    return false;
  }
  if (!host_.MaySend(job_)) return false;
  for (const Write& write : step.writes) {
    const bool repairs = write.kind == Write::Kind::kDeletePod && write.pod->over();
    if (repairs && TooSoon(*write.pod)) continue;
    Send(write, job);
  }
  return false;
}

bool JobDriver::TooSoon(const PodObject& failed) {
  Repair& repair = repairs_[failed.index];
  const kube::TimePoint now = host_.io().Now();
  if (now - repair.next >= kForgotten) repair.count = 0;
  if (now < repair.next) {
    Again(repair.next - now);
    return true;
  }
  repair.next = now + Backoff(repair.count++);
  sink_.Notice(
      {job_, gpu_type_, JobNotice::Kind::kWorkerFailed,
       fmt::format("worker {} on {} failed{}{}", failed.index, failed.node.empty() ? "no node" : failed.node,
                   failed.reason.empty() ? "" : ": ", failed.reason),
       ++failed_workers_});
  return false;
}

void JobDriver::Send(const Write& write, const JobObject& job) {
  auto request = ToRequest(write, job, settings_);
  if (!request) {
    Log(LogLevel::kError, "job cannot be written", {{"job", job_}, {"why", request.error().message}});
    return Abandon(request.error().message);
  }
  const bool removes = write.kind == Write::Kind::kDeletePod;
  const bool of_pod = removes || write.kind == Write::Kind::kPin;
  if (!of_pod) note_due_ = write.kind == Write::Kind::kScale && job.kind == JobKind::kPyTorchJob;
  SendRequest(std::move(*request),
              {of_pod ? kPods : job.resource, removes ? write.pod->head.uid : std::string(), changes_});
}

void JobDriver::SendRequest(kube::Request request, Sent sent) {
  ++in_flight_;
  host_.SendWrite(std::move(request),
                  [this, alive = alive_, sent = std::move(sent)](const kube::Reply& reply) {
                    if (*alive) Answered(sent, reply);
                  });
}

void JobDriver::Answered(const Sent& sent, const kube::Reply& reply) {
  --in_flight_;
  if (!reply.ok()) {
    Refused(sent, *reply.error);
    return Advance();
  }
  failures_ = 0;
  refusal_.clear();
  const auto head = kube::ReadHead(reply.body);
  if (head || !sent.removes.empty()) {
    awaited_.push_back({sent, head ? head->resource_version : std::string(), host_.io().Now() + kUntilSeen});
  }
  Advance();
}

void JobDriver::Refused(const Sent& sent, const kube::ApiError& error) {
  // If something changed meanwhile, the watch shows it, and the step is made anew from that. A rule of the
  // cluster may refuse with the same words; then nothing changes.
  stale_ = error.reason == kube::Reason::kConflict || error.reason == kube::Reason::kInvalid ||
           error.reason == kube::Reason::kNotFound;
  refusal_ = error.message.empty() ? error.Text() : error.message;
  if (!stale_) Log(LogLevel::kWarn, "write failed", {{"job", job_}, {"why", error.Text()}});
  if (error.reason == kube::Reason::kForbidden) {
    host_.Stuck(job_, "Kubernetes refused: " + refusal_);
    Abandon(refusal_);
  }
  if (stale_ && sent.changes != changes_) {  // the change was seen already
    stale_ = false;
    retry_at_ = {};
    return;
  }
  const kube::TimePoint now = host_.io().Now();
  if (now < retry_at_) return;  // of several refusals at once, the first counts
  const kube::Duration delay = Backoff(failures_++);
  retry_at_ = now + delay;
  Again(delay);
}

void JobDriver::Again(kube::Duration delay) {
  const kube::TimePoint at = host_.io().Now() + delay;
  if (timer_ != kube::Io::Ticket::kNone && timer_at_ <= at) return;
  host_.io().Cancel(timer_);
  timer_at_ = at;
  timer_ = host_.io().After(delay, [this, alive = alive_] {
    if (!*alive) return;
    timer_ = kube::Io::Ticket::kNone;
    Advance();
  });
}

void JobDriver::Tell() {
  std::vector<std::string> held = Held();
  if (held == believed_) return;
  believed_ = std::move(held);
  sink_.Post({{gpu_type_, WorkersObserved{job_, believed_}}});
}

// The operator lists hosts in a ConfigMap that is mounted into the launcher. The kubelet reads it again
// once a minute, or when the pod changes. Changing the pod before the list is there gains nothing.
void JobDriver::FollowHosts(int workers, int tries) {
  const JobObject* job = host_.FindJob(job_);
  if (job == nullptr || tries >= kHostTries) return;
  kube::Request request = kube::GetRequest(kConfigMaps, {job->head.name_space, job->head.name + "-config"});
  host_.io().Send(std::move(request), [this, alive = alive_, workers, tries](const kube::Reply& reply) {
    if (!*alive || believed_.size() != static_cast<std::size_t>(workers))
      return;  // another resize came first
    const JobView view = View();
    const std::string_view body = reply.body;
    const auto script = body.find("discover_hosts.sh");
    const bool listed =
        reply.ok() && script != body.npos &&
        Count(body.substr(script, body.find("\"hostfile\"", script) - script), "echo ") == believed_.size();
    if (!listed) {
      host_.io().After(kHostsEvery, [this, alive, workers, tries] {
        if (*alive) FollowHosts(workers, tries + 1);
      });
      return;
    }
    if (view.launcher == nullptr || !host_.MayWrite()) return;
    host_.io().Send(TouchRequest(*view.launcher, std::to_string(workers)),
                    [job = job_](const kube::Reply& touched) {
                      if (touched.ok()) return;
                      Log(LogLevel::kWarn, "launcher not told of new hosts; it looks once a minute",
                          {{"job", job}, {"why", touched.error->Text()}});
                    });
  });
}

}  // namespace voda::kubeflow
