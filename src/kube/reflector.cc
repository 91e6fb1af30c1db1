#include "kube/reflector.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>

#include "base/log.h"

namespace voda::kube {

class Reflector::Impl {
 public:
  Impl(Io& io, Counters& counters, ReflectorOptions options, ObjectSink& sink)
      : io_(io),
        counters_(counters),
        options_(std::move(options)),
        state_(options_.rules, options_.seed, sink),
        path_(ResourcePath(options_.resource, options_.name_space)) {}

  void Start() {
    if (started_) return;
    started_ = true;
    Heard();
    Do(state_.Start());
  }

  void Stop() {
    stopped_ = true;
    io_.Cancel(ticket_);
  }

  bool synced() const { return synced_; }
  bool HasSeen(std::string_view version) const { return state_.HasSeen(version); }
  Duration Age() const { return io_.Now() - TimePoint(Duration(heard_.load())); }

 private:
  void Do(const ReflectorCommand& command) {
    synced_ = state_.synced();
    if (stopped_) return;
    switch (command.kind) {
      case ReflectorCommand::Kind::kList:
        return List(command);
      case ReflectorCommand::Kind::kWatch:
        return Watch(command);
      case ReflectorCommand::Kind::kWait:
        ticket_ = io_.After(command.wait, [this] { Do(state_.OnTimer()); });
        return;
    }
  }

  void List(const ReflectorCommand& command) {
    if (command.continue_token.empty() && std::exchange(listed_, true)) ++counters_.relists;
    Request request{.verb = Verb::kList, .timeout = options_.list_timeout};
    request.path =
        path_ + Query({{"labelSelector", options_.label_selector},
                       {"fieldSelector", options_.field_selector},
                       {"limit", command.limit > 0 ? std::to_string(command.limit) : std::string()},
                       {"continue", command.continue_token},
                       {"resourceVersion", command.resource_version}});
    ticket_ = io_.Send(std::move(request), [this](const Reply& reply) { OnList(reply); });
  }

  void OnList(const Reply& reply) {
    if (!reply.ok()) return Failed("list", *reply.error);
    auto page = ReadList(reply.body, [this](const JsonView& item) { return OnItem(item); });
    if (page && page->resource_version.empty()) page = Error{"a list without resourceVersion"};
    if (!page) {
      return Failed("list",
                    {.reason = Reason::kBadAnswer, .code = reply.code, .message = page.error().message});
    }
    Heard();
    Do(state_.OnListPage(*page));
  }

  Status OnItem(const JsonView& item) {
    const auto head = ReadHead(item);
    if (!head) return head.error();
    if (head->name.empty() || head->uid.empty() || head->resource_version.empty()) {
      return Error{"an item without name, uid or resourceVersion"};
    }
    state_.OnListItem(*head, item);
    return Ok{};
  }

  void Failed(std::string_view what, const ApiError& error) {
    LogError(what, error);
    Do(state_.OnListFailed(io_.Now(), error));
  }

  void Watch(const ReflectorCommand& command) {
    if (std::exchange(watched_, true)) ++counters_.watch_restarts;
    Request request{.verb = Verb::kWatch, .idle = options_.watch_idle};
    request.path = path_ + Query({{"watch", "1"},
                                  {"labelSelector", options_.label_selector},
                                  {"fieldSelector", options_.field_selector},
                                  {"resourceVersion", command.resource_version},
                                  {"allowWatchBookmarks", "true"},
                                  {"timeoutSeconds", std::to_string(command.timeout_seconds)}});
    parser_.emplace([this](const WatchEvent& event) { return OnEvent(event); });
    next_.reset();
    broken_.reset();
    ticket_ =
        io_.Stream(std::move(request), {.on_open =
                                            [this] {
                                              Heard();
                                              state_.OnWatchOpened(io_.Now());
                                            },
                                        .on_data = [this](std::string_view bytes) { return OnData(bytes); },
                                        .on_end = [this](const auto& error) { OnEnd(error); }});
  }

  bool OnEvent(const WatchEvent& event) {
    if (event.type == WatchType::kError) LogError("watch", DecodeStatusObject(event.object));
    next_ = state_.OnWatchEvent(io_.Now(), event);
    return !next_ && !stopped_;
  }

  bool OnData(std::string_view bytes) {
    Heard();
    const Status fed = parser_->Feed(bytes);
    if (!fed) broken_ = {.reason = Reason::kBadAnswer, .code = 200, .message = fed.error().message};
    return fed && !parser_->stopped();
  }

  void OnEnd(const std::optional<ApiError>& error) {
    if (next_) return Do(*next_);
    const std::optional<ApiError>& why = broken_ ? broken_ : error;
    if (why) LogError("watch", *why);
    if (!why) Heard();
    Do(state_.OnWatchEnded(io_.Now(), why));
  }

  void LogError(std::string_view what, const ApiError& error) const {
    const bool missing = error.reason == Reason::kNotFound && !options_.if_missing.empty();
    Log(LogLevel::kWarn, "kubernetes interrupted",
        {{"what", what},
         {"resource", options_.resource.plural},
         {"error", missing ? fmt::format("{}; {}", error.Text(), options_.if_missing) : error.Text()}});
  }

  void Heard() { heard_ = io_.Now().time_since_epoch().count(); }

  Io& io_;
  Counters& counters_;
  const ReflectorOptions options_;
  ReflectorState state_;
  const std::string path_;
  std::optional<WatchParser> parser_;
  std::optional<ReflectorCommand> next_;  // what an ERROR event asked for
  std::optional<ApiError> broken_;        // set if something other than an event came
  Io::Ticket ticket_ = Io::Ticket::kNone;
  bool started_ = false;
  bool stopped_ = false;
  bool listed_ = false;
  bool watched_ = false;
  std::atomic<bool> synced_ = false;
  std::atomic<Duration::rep> heard_ = 0;
};

Reflector::Reflector(Io& io, Counters& counters, ReflectorOptions options, ObjectSink& sink)
    : io_(io), impl_(std::make_unique<Impl>(io, counters, std::move(options), sink)) {}

Reflector::~Reflector() {
  Stop();
}

void Reflector::Start() {
  io_.RunAndWait([this] { impl_->Start(); });
}

void Reflector::Stop() {
  io_.RunAndWait([this] { impl_->Stop(); });
}

bool Reflector::synced() const {
  return impl_->synced();
}

Duration Reflector::Age() const {
  return impl_->Age();
}

bool Reflector::HasSeen(std::string_view written_version) const {
  return impl_->HasSeen(written_version);
}

void LogBadObject(std::string_view plural, const ObjectHead& head, const Error& error) {
  Log(LogLevel::kWarn, "object not understood",
      {{"resource", plural}, {"namespace", head.name_space}, {"name", head.name}, {"error", error.message}});
}

}  // namespace voda::kube
