#include "kube/lease.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "kube/patch.h"

namespace voda::kube {

namespace {

const Resource& Leases() {
  static const Resource leases{.group = "coordination.k8s.io", .version = "v1", .plural = "leases"};
  return leases;
}

}  // namespace

class LeaderElection::Impl {
 public:
  Impl(Io& io, Counters& counters, LeaseOptions options, LeaseCallbacks callbacks)
      : io_(io),
        counters_(counters),
        options_(std::move(options)),
        callbacks_(std::move(callbacks)),
        state_(options_.rules, options_.identity, options_.seed) {}

  void Start() {
    if (started_) return;
    started_ = true;
    Do(state_.Start());
  }

  void Stop(std::function<void()> stopped) {
    if (stopped_) return;
    stopped_ = std::move(stopped);
    silent_ = true;
    io_.Cancel(ticket_);
    Do(started_ ? state_.Stop(io_.Now(), io_.Wall()) : LeaseCommand{.kind = LeaseCommand::Kind::kStopped});
  }

  void Abandon() {
    io_.Cancel(ticket_);
    io_.Cancel(deadline_);
    until_ = TimePoint::min().time_since_epoch().count();
  }

  TimePoint LeaderUntil() const { return TimePoint(Duration(until_.load())); }
  std::string Holder() const {
    const std::lock_guard lock(mutex_);
    return holder_;
  }

 private:
  void Do(const LeaseCommand& command) {
    Execute(command);
    if (command.kind != LeaseCommand::Kind::kStopped) Tell();
  }

  void Execute(const LeaseCommand& command) {
    switch (command.kind) {
      case LeaseCommand::Kind::kGet:
        return Send(GetRequest(Leases(), Key()));
      case LeaseCommand::Kind::kCreate:
        return Send(CreateRequest(Leases(), options_.name_space, Body(command)));
      case LeaseCommand::Kind::kUpdate:
        return Send(UpdateRequest(Leases(), Key(), Body(command)));
      case LeaseCommand::Kind::kWait:
        ticket_ = io_.After(command.wait, [this] { Do(state_.OnTimer(io_.Now(), io_.Wall())); });
        return;
      case LeaseCommand::Kind::kStopped:
        ticket_ = Io::Ticket::kNone;
        Tell();
        if (const auto stopped = std::exchange(stopped_, nullptr)) stopped();
        return;
    }
  }

  ObjectKey Key() const { return {options_.name_space, options_.name}; }
  std::string Body(const LeaseCommand& command) const {
    return LeaseJson(options_.name_space, options_.name, command.lease);
  }

  void Send(Request request) {
    const bool reads = request.verb == Verb::kGet;
    request.lane = Lane::kLease;
    request.timeout = std::max(Duration(500), options_.rules.renew_deadline / 2);
    ticket_ = io_.Send(std::move(request), [this, reads](Reply reply) { OnReply(reads, std::move(reply)); });
  }

  void OnReply(bool reads, Reply reply) {
    const TimePoint now = io_.Now();
    const WallTime wall = io_.Wall();
    if (reply.ok()) {
      const auto lease = DecodeLease(reply.body);
      if (lease) return Do(reads ? state_.OnGot(now, wall, *lease) : state_.OnWritten(now, *lease));
      reply.error =
          ApiError{.reason = Reason::kBadAnswer, .code = reply.code, .message = lease.error().message};
    }
    const bool usual = reply.error->reason == Reason::kNotFound || reply.error->reason == Reason::kConflict ||
                       reply.error->reason == Reason::kAlreadyExists;
    Log(usual ? LogLevel::kDebug : LogLevel::kWarn, "lease not renewed",
        {{"lease", options_.name}, {"error", reply.error->Text()}});
    Do(state_.OnFailed(now, wall, *reply.error));
  }

  // Tells the callbacks and the readers on other threads what has changed.
  void Tell() {
    until_ = state_.LeaderUntil().time_since_epoch().count();
    {
      const std::lock_guard lock(mutex_);
      holder_ = state_.holder();
    }
    io_.Cancel(deadline_);
    deadline_ = Io::Ticket::kNone;
    if (state_.leading()) {
      const Duration left = std::max(Duration(0), state_.LeaderUntil() - io_.Now());
      deadline_ = io_.After(left, [this] {
        state_.OnDeadline(io_.Now());
        Tell();
      });
    }
    if (std::exchange(leading_, state_.leading()) == state_.leading()) return;
    if (!leading_ && !silent_) ++counters_.leases_lost;
    Log(LogLevel::kInfo, leading_ ? "leading" : "not leading any more",
        {{"lease", options_.name}, {"identity", options_.identity}});
    const auto& callback = leading_ ? callbacks_.on_leading : callbacks_.on_lost;
    if (callback && !silent_) callback();
  }

  Io& io_;
  Counters& counters_;
  const LeaseOptions options_;
  const LeaseCallbacks callbacks_;
  LeaseState state_;
  std::function<void()> stopped_;
  Io::Ticket ticket_ = Io::Ticket::kNone;
  Io::Ticket deadline_ = Io::Ticket::kNone;
  bool started_ = false;
  bool silent_ = false;
  bool leading_ = false;
  std::atomic<Duration::rep> until_ = TimePoint::min().time_since_epoch().count();
  mutable std::mutex mutex_;
  std::string holder_;
};

Result<std::unique_ptr<LeaderElection>> LeaderElection::Create(Io& io, Counters& counters,
                                                               LeaseOptions options,
                                                               LeaseCallbacks callbacks) {
  if (const Status checked = options.rules.Check(); !checked) return checked.error();
  if (options.identity.empty() || options.name.empty() || options.name_space.empty()) {
    return Error{
        "leader election: namespace, name and identity must be given; use the pod's name as identity"};
  }
  auto impl = std::make_unique<Impl>(io, counters, std::move(options), std::move(callbacks));
  return std::unique_ptr<LeaderElection>(new LeaderElection(io, std::move(impl)));
}

LeaderElection::LeaderElection(Io& io, std::unique_ptr<Impl> impl) : io_(io), impl_(std::move(impl)) {}

LeaderElection::~LeaderElection() {
  io_.RunAndWait([this] { impl_->Abandon(); });
}

void LeaderElection::Start() {
  io_.RunAndWait([this] { impl_->Start(); });
}

void LeaderElection::Stop(std::function<void()> stopped) {
  io_.RunAndWait([&] { impl_->Stop(std::move(stopped)); });
}

TimePoint LeaderElection::LeaderUntil() const {
  return impl_->LeaderUntil();
}

bool LeaderElection::IsLeader() const {
  return io_.Now() < impl_->LeaderUntil();
}

std::string LeaderElection::Holder() const {
  return impl_->Holder();
}

}  // namespace voda::kube
