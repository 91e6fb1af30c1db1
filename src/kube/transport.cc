#include "kube/transport.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/credentials.h"
#include "kube/http_call.h"
#include "kube/retry.h"

namespace voda::kube {

namespace {

constexpr Duration kLongestSleep{60'000};
constexpr long kMoreConnections = 32;  // for watches and logs

// libcurl also counts connections that are in use. With a smaller limit it closes each connection after its
// request, and the next request needs a new handshake.
long KeptConnections(const LimitsOfLanes& lanes) {
  long kept = kMoreConnections;
  for (const LaneLimits& lane : lanes) kept += lane.in_flight;
  return kept;
}

TimePoint SteadyNow() {
  return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now());
}

}  // namespace

// Everything but the mailbox belongs to the I/O thread.
class Transport::Impl {
 public:
  Impl(const KubeConfig& config, HttpTarget target, const TransportOptions& options, Counters& counters)
      : target_(std::move(target)),
        name_space_(config.name_space),
        counters_(counters),
        lanes_(options.lanes),
        random_(options.seed),
        pool_(KeptConnections(options.lanes)),
        credentials_(
            std::make_unique<Credentials>(config, counters, [this] { Post([this] { Resume(); }); })) {
    thread_ = std::thread([this] { Run(); });
  }

  ~Impl() {
    Post([this] { stop_ = true; });
    thread_.join();
    credentials_.reset();  // first, because its thread posts to the mailbox
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Ticket Send(Request request, Done done) {
    auto entry = std::make_unique<Entry>();
    entry->request = std::move(request);
    entry->done = std::move(done);
    return Submit(std::move(entry));
  }

  Ticket Stream(Request request, StreamCallbacks callbacks) {
    auto entry = std::make_unique<Entry>();
    entry->request = std::move(request);
    entry->stream = std::move(callbacks);
    entry->is_stream = true;
    return Submit(std::move(entry));
  }

  Ticket After(Duration delay, std::function<void()> then) {
    const std::uint64_t id = ++last_id_;
    OnThread([this, id, at = SteadyNow() + delay, call = std::move(then)]() mutable {
      AddTimer(id, at, std::move(call));
    });
    return static_cast<Ticket>(id);
  }

  void Cancel(Ticket ticket) {
    if (ticket == Ticket::kNone) return;
    OnThread([this, id = static_cast<std::uint64_t>(ticket)] {
      RemoveTimer(id);
      if (const auto at = entries_.find(id); at != entries_.end()) Drop(at);
    });
  }

  void Post(std::function<void()> then) {
    const std::lock_guard lock(mutex_);
    mail_.push_back(std::move(then));
    pool_.Wake();
  }

  void RunAndWait(const std::function<void()>& what) {
    if (InThread()) return what();
    std::promise<void> done;
    Post([&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }

  bool InThread() const { return std::this_thread::get_id() == thread_id_.load(); }
  const std::string& name_space() const { return name_space_; }
  const Pulse& pulse() const { return pulse_; }

 private:
  struct Entry {
    std::uint64_t id = 0;
    Request request;
    Done done;
    StreamCallbacks stream;
    bool is_stream = false;
    bool has_slot = false;
    bool reauthenticated = false;
    int tries = 0;
    TimePoint deadline{};     // a patient request in the queue has none
    std::uint64_t timer = 0;  // fires at the deadline
    std::uint64_t pause = 0;  // fires when a retry is due
    std::unique_ptr<HttpCall> call;
  };
  using Entries = std::map<std::uint64_t, std::unique_ptr<Entry>>;

  template <class What>
  void OnThread(What what) {
    if (InThread()) return what();
    // std::function must be copyable, so a move-only callable goes through a pointer.
    Post([held = std::make_shared<What>(std::move(what))] { (*held)(); });
  }

  Ticket Submit(std::unique_ptr<Entry> entry) {
    entry->id = ++last_id_;
    const auto ticket = static_cast<Ticket>(entry->id);
    entry->deadline = entry->request.patient ? TimePoint::max() : SteadyNow() + entry->request.timeout;
    OnThread([this, held = std::move(entry)]() mutable { Add(std::move(held)); });
    return ticket;
  }

  void Run() {
    // Writing to a closed TLS connection must be an error and not a signal; libcurl leaves that to us.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    thread_id_ = std::this_thread::get_id();
    while (true) {
      RunMail();
      if (stop_) break;
      pulse_.Beat(UptimeNow());
      FireTimers();
      for (const std::uint64_t id : lanes_.Take(SteadyNow())) Begin(id);
      in_curl_ = true;
      const std::string error = pool_.Perform();
      in_curl_ = false;
      if (!error.empty()) Log(LogLevel::kError, "libcurl failed", {{"error", error}});
      for (HttpExchange* exchange : std::exchange(removals_, {})) pool_.Remove(*exchange);
      Finished();
      graveyard_.clear();
      pulse_.Rest();
      pool_.Wait(static_cast<int>(Sleep().count()));
    }
    Shutdown();
  }

  void RunMail() {
    std::vector<std::function<void()>> mail;
    {
      const std::lock_guard lock(mutex_);
      mail.swap(mail_);
    }
    for (auto& item : mail) {
      pulse_.Beat(UptimeNow());
      item();
    }
  }

  Duration Sleep() {
    const TimePoint now = SteadyNow();
    Duration sleep = kLongestSleep;
    if (!timers_.empty()) sleep = std::min(sleep, timers_.begin()->first.first - now);
    if (const auto next = lanes_.NextAt(now)) sleep = std::min(sleep, *next - now);
    return std::max(sleep, Duration(0));
  }

  // Timers, ordered by time and then by creation

  void AddTimer(std::uint64_t id, TimePoint at, std::function<void()> then) {
    timers_[{at, id}] = std::move(then);
    timer_at_[id] = at;
  }

  std::uint64_t AddTimer(TimePoint at, std::function<void()> then) {
    const std::uint64_t id = ++last_id_;
    AddTimer(id, at, std::move(then));
    return id;
  }

  void RemoveTimer(std::uint64_t id) {
    const auto at = timer_at_.find(id);
    if (at == timer_at_.end()) return;
    timers_.erase({at->second, id});
    timer_at_.erase(at);
  }

  void FireTimers() {
    const TimePoint now = SteadyNow();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
      const auto node = timers_.extract(timers_.begin());
      timer_at_.erase(node.key().second);
      node.mapped()();
    }
  }

  // The life of a request: Add, Begin, Complete; or back to the queue; or Drop

  void Add(std::unique_ptr<Entry> entry) {
    const std::uint64_t id = entry->id;
    Entry& kept = *entry;
    entries_[id] = std::move(entry);
    if (!kept.request.patient) StartClock(kept);
    Queue(kept);
  }

  void StartClock(Entry& entry) {
    if (entry.is_stream) return;
    entry.timer = AddTimer(entry.deadline, [this, id = entry.id] { TooLate(id); });
  }

  void Queue(Entry& entry) {
    if (lanes_.Add(entry.request.lane, entry.request.flow, entry.id)) return;
    ++counters_.refused_by_us;
    ApiError error{.reason = Reason::kQueueFull,
                   .message = fmt::format("{} requests wait in the {} lane; the API server does not keep up",
                                          lanes_.waiting(entry.request.lane), Name(entry.request.lane))};
    // Callbacks must not run from within Send.
    entry.pause = AddTimer(SteadyNow(), [this, id = entry.id, why = std::move(error)] {
      entries_.at(id)->pause = 0;
      End(id, {}, why);
    });
  }

  void Begin(std::uint64_t id) {
    const auto at = entries_.find(id);
    VODA_CHECK(at != entries_.end());
    Entry& entry = *at->second;
    entry.has_slot = true;
    if (entry.is_stream) ReleaseSlot(entry);  // a watch must not keep reads waiting
    if (entry.request.patient) {
      entry.deadline = SteadyNow() + entry.request.timeout;
      StartClock(entry);
    }
    Go(entry);
  }

  void Go(Entry& entry) {
    auto grant = credentials_->Get(SteadyNow(), Wall());
    if (!grant) {
      waiting_.push_back(entry.id);
      return;
    }
    if (!*grant) {
      End(entry.id, {}, ApiError{.reason = Reason::kCredentials, .message = grant->error().message});
      return;
    }
    ++entry.tries;
    entry.call = std::make_unique<HttpCall>(target_, entry.request, **grant,
                                            entry.is_stream ? &entry.stream : nullptr, entry.id);
    pool_.Add(entry.call->exchange());
  }

  // Called when a plug-in has ended.
  void Resume() {
    for (const std::uint64_t id : std::exchange(waiting_, {})) {
      if (const auto at = entries_.find(id); at != entries_.end()) Go(*at->second);
    }
  }

  void Finished() {
    std::vector<std::pair<std::uint64_t, std::optional<HttpFailure>>> over;
    for (auto& [exchange, failure] : pool_.Ended()) over.emplace_back(exchange->id(), std::move(failure));
    for (const auto& [id, failure] : over) {
      // The callback of another request may have dropped it meanwhile.
      if (const auto at = entries_.find(id); at != entries_.end() && at->second->call)
        Complete(*at->second, failure);
    }
  }

  void Complete(Entry& entry, const std::optional<HttpFailure>& failure) {
    const std::unique_ptr<HttpCall> call = std::move(entry.call);
    pool_.Remove(call->exchange());
    ReleaseSlot(entry);
    if (entry.request.patient) {
      RemoveTimer(std::exchange(entry.timer, 0));
      entry.deadline = TimePoint::max();
    }
    auto error = call->Outcome(failure);
    counters_.CountRequest(entry.request.verb, error && error->code == 0 ? 0 : call->status());
    if (error && error->code == 401) {
      const bool worth = credentials_->Refused(call->grant());
      if (worth && !entry.is_stream && !std::exchange(entry.reauthenticated, true)) return Queue(entry);
    }
    if (error && !entry.is_stream) {
      if (const auto delay = RetryDelay(entry.request, *error, entry.tries, random_);
          delay && SteadyNow() + *delay < entry.deadline) {
        ++counters_.retries;
        entry.pause = AddTimer(SteadyNow() + *delay, [this, id = entry.id] {
          Entry& again = *entries_.at(id);
          again.pause = 0;
          Queue(again);
        });
        return;
      }
    }
    Reply reply{.code = call->status()};
    if (!entry.is_stream && !error) reply.body = call->TakeBody();
    End(entry.id, std::move(reply), std::move(error));
  }

  void TooLate(std::uint64_t id) {
    Entry& entry = *entries_.at(id);
    entry.timer = 0;
    if (entry.call) counters_.CountRequest(entry.request.verb, 0);
    const bool queued = entry.tries == 0;
    const double seconds = static_cast<double>(entry.request.timeout.count()) / 1000;
    End(id, {},
        ApiError{
            .reason = Reason::kNoAnswer,
            .message = queued ? fmt::format("not sent within {} s: too many requests wait before it", seconds)
                              : fmt::format("{}: no answer within {} s", target_.server, seconds)});
  }

  // Calls the callbacks of a request for the last time.
  void End(std::uint64_t id, Reply reply, std::optional<ApiError> error) {
    const auto at = entries_.find(id);
    const std::unique_ptr<Entry> entry = Take(at);
    if (entry->is_stream) {
      if (entry->stream.on_end) entry->stream.on_end(std::move(error));
      return;
    }
    reply.error = std::move(error);
    if (entry->done) entry->done(std::move(reply));
  }

  void Drop(Entries::iterator at) {
    std::unique_ptr<Entry> entry = Take(at);
    // The callback that runs now may be that of this entry.
    graveyard_.push_back(std::move(entry));
  }

  // Takes a request out of every list and off the wire.
  std::unique_ptr<Entry> Take(Entries::iterator at) {
    std::unique_ptr<Entry> entry = std::move(at->second);
    entries_.erase(at);
    RemoveTimer(entry->timer);
    RemoveTimer(entry->pause);
    lanes_.Remove(entry->request.lane, entry->id);
    std::erase(waiting_, entry->id);
    ReleaseSlot(*entry);
    if (entry->call) {
      HttpExchange& exchange = entry->call->exchange();
      exchange.Mute();
      if (in_curl_) {
        removals_.push_back(&exchange);
      } else {
        pool_.Remove(exchange);
      }
    }
    return entry;
  }

  void ReleaseSlot(Entry& entry) {
    if (std::exchange(entry.has_slot, false)) lanes_.Finished(entry.request.lane);
  }

  void Shutdown() {
    RunMail();
    std::vector<std::uint64_t> open;
    for (const auto& [id, entry] : entries_) open.push_back(id);
    for (const std::uint64_t id : open) {
      if (!entries_.contains(id)) continue;
      End(id, {}, ApiError{.reason = Reason::kCanceled, .message = "the client is shutting down"});
    }
    while (!entries_.empty()) Drop(entries_.begin());  // callbacks may have sent new ones
    timers_.clear();
    graveyard_.clear();
  }

  static WallTime Wall() {
    return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  }

  const HttpTarget target_;
  const std::string name_space_;
  Pulse pulse_;
  Counters& counters_;
  Lanes lanes_;
  Random random_;
  HttpPool pool_;
  Entries entries_;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> timers_;
  std::map<std::uint64_t, TimePoint> timer_at_;
  std::vector<std::uint64_t> waiting_;  // requests that wait for credentials
  std::vector<std::unique_ptr<Entry>> graveyard_;
  std::vector<HttpExchange*> removals_;
  bool in_curl_ = false;
  bool stop_ = false;

  std::mutex mutex_;
  std::vector<std::function<void()>> mail_;  // guarded by mutex_
  std::atomic<std::uint64_t> last_id_ = 0;
  std::atomic<std::thread::id> thread_id_;
  std::unique_ptr<Credentials> credentials_;
  std::thread thread_;
};

Result<std::unique_ptr<Transport>> Transport::Create(const KubeConfig& config,
                                                     const TransportOptions& options, Counters& counters) {
  auto target = MakeTarget(config, options.version, options.connect_timeout);
  if (!target) return target.error();
  auto impl = std::make_unique<Impl>(config, *std::move(target), options, counters);
  return std::unique_ptr<Transport>(new Transport(std::move(impl)));
}

Transport::Transport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Transport::~Transport() = default;

TimePoint Transport::Now() const {
  return SteadyNow();
}
WallTime Transport::Wall() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}
Io::Ticket Transport::Send(Request request, Done done) {
  return impl_->Send(std::move(request), std::move(done));
}
Io::Ticket Transport::Stream(Request request, StreamCallbacks callbacks) {
  return impl_->Stream(std::move(request), std::move(callbacks));
}
Io::Ticket Transport::After(Duration delay, std::function<void()> then) {
  return impl_->After(delay, std::move(then));
}
void Transport::Cancel(Ticket ticket) {
  impl_->Cancel(ticket);
}
void Transport::Post(std::function<void()> then) {
  impl_->Post(std::move(then));
}
void Transport::RunAndWait(const std::function<void()>& what) {
  impl_->RunAndWait(what);
}
const std::string& Transport::name_space() const {
  return impl_->name_space();
}

const Pulse& Transport::pulse() const {
  return impl_->pulse();
}

Reply Transport::Call(Request request) {
  VODA_CHECK(!impl_->InThread());
  std::promise<Reply> done;
  auto reply = done.get_future();
  Send(std::move(request), [&done](Reply answer) { done.set_value(std::move(answer)); });
  return reply.get();
}

}  // namespace voda::kube
