#include "kube/event_recorder.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "kube/patch.h"

namespace voda::kube {

namespace {

constexpr Duration kTimeout{10'000};  // for each try

const Resource& Events() {
  static const Resource events{.group = "events.k8s.io", .version = "v1", .plural = "events"};
  return events;
}

}  // namespace

// Posted work cannot be canceled, so it shares the Impl; `stopped_` ends it.
class EventRecorder::Impl : public std::enable_shared_from_this<EventRecorder::Impl> {
 public:
  Impl(Io& io, Counters& counters, const EventOptions& options)
      : io_(io),
        counters_(counters),
        waiting_(options.waiting),
        most_unsent_(options.unsent),
        most_open_(options.open),
        refresh_(options.rules.refresh),
        series_(options.rules, options.controller, options.instance) {}

  void Record(KubeEvent event) {
    {
      const std::lock_guard lock(mutex_);
      if (queue_.size() >= waiting_) {
        ++counters_.events_lost;
        return;
      }
      queue_.push_back(std::move(event));
      if (queue_.size() > 1) return;
    }
    io_.Post([self = shared_from_this()] { self->Drain(); });
  }

  void Stop() {
    stopped_ = true;
    io_.Cancel(timer_);
    const std::lock_guard lock(mutex_);
    counters_.events_lost += queue_.size() + unsent_.size();
    queue_.clear();
    unsent_.clear();
  }

 private:
  void Drain() {
    std::deque<KubeEvent> events;
    {
      const std::lock_guard lock(mutex_);
      events.swap(queue_);
    }
    if (stopped_) return;
    for (KubeEvent& event : events) {
      Thin(event.regarding);
      unsent_.push_back(std::move(event));
      SendNext();
    }
  }

  // Makes room for one more Event about this object.
  void Thin(const ObjectReference& object) {
    const auto older = std::find_if(unsent_.begin(), unsent_.end(), [&](const KubeEvent& one) {
      return one.type == EventType::kNormal && !(one.regarding < object) && !(object < one.regarding);
    });
    if (older == unsent_.end() && unsent_.size() < most_unsent_) return;
    const auto least =
        older != unsent_.end() ? older : std::find_if(unsent_.begin(), unsent_.end(), [](const auto& one) {
          return one.type == EventType::kNormal;
        });
    unsent_.erase(least != unsent_.end() ? least : unsent_.begin());
    ++counters_.events_lost;
  }

  void SendNext() {
    const std::uint64_t before = series_.dropped();
    while (open_ < most_open_ && !unsent_.empty()) {
      const KubeEvent event = std::move(unsent_.front());
      unsent_.pop_front();
      if (auto write = series_.Record(io_.Now(), io_.Wall(), event)) Send(*std::move(write));
    }
    counters_.events_lost += series_.dropped() - before;
    Arm();
  }

  void Arm() {
    if (armed_ || stopped_ || !series_.waiting()) return;
    armed_ = true;
    timer_ = io_.After(refresh_, [this] {
      armed_ = false;
      for (EventWrite& write : series_.Flush(io_.Now())) Send(std::move(write));
      Arm();
    });
  }

  void Send(EventWrite write) {
    Request request =
        write.create ? CreateRequest(Events(), write.name_space, std::move(write.body))
                     : MergePatchRequest(Events(), {write.name_space, write.name}, std::move(write.body));
    request.lane = Lane::kEvent;
    request.timeout = kTimeout;
    request.patient = true;
    const bool create = write.create;
    ++open_;
    io_.Send(std::move(request), [self = shared_from_this(), create, name = std::move(write.name)](
                                     const Reply& reply) { self->OnReply(create, name, reply); });
  }

  void OnReply(bool create, const std::string& name, const Reply& reply) {
    --open_;
    if (reply.ok()) {
      ++counters_.events_sent;
    } else {
      ++counters_.events_lost;
      if (create || reply.error->reason == Reason::kNotFound) series_.Gone(name);
      Log(LogLevel::kDebug, "event lost", {{"event", name}, {"error", reply.error->Text()}});
    }
    if (!stopped_) SendNext();
  }

  Io& io_;
  Counters& counters_;
  const std::size_t waiting_;
  const std::size_t most_unsent_;
  const int most_open_;
  const Duration refresh_;
  EventSeries series_;
  Io::Ticket timer_ = Io::Ticket::kNone;
  bool armed_ = false;
  bool stopped_ = false;
  int open_ = 0;
  std::deque<KubeEvent> unsent_;
  std::mutex mutex_;
  std::deque<KubeEvent> queue_;
};

EventRecorder::EventRecorder(Io& io, Counters& counters, const EventOptions& options)
    : io_(io), impl_(std::make_shared<Impl>(io, counters, options)) {}

EventRecorder::~EventRecorder() {
  io_.RunAndWait([this] { impl_->Stop(); });
}

void EventRecorder::Record(KubeEvent event) {
  impl_->Record(std::move(event));
}

}  // namespace voda::kube
