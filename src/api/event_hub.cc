#include "api/event_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "document/json_writer.h"

namespace voda {

namespace {

// A line break would end the line of the event; in JSON it can only stand between tokens.
void AppendLine(std::string& out, std::string_view text) {
  for (const char c : text) out += c == '\n' || c == '\r' ? ' ' : c;
}

}  // namespace

EventHub::EventHub(Config config) : config_(config), next_seq_(config.first_seq) {
  VODA_CHECK(config.first_seq > 0);
}

std::uint64_t EventHub::Publish(std::string_view type, std::string_view job, std::string_view fields) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t seq = next_seq_++;
  std::string text = fmt::format("id: {}\nevent: ", seq);
  AppendLine(text, type);
  JsonWriter data;
  data.Object().Field("seq", seq).Field("type", type).FieldIf("job", job);
  if (!fields.empty()) data.Raw(fields);
  text += "\ndata: ";
  AppendLine(text, data.End().text());
  text += "\n\n";
  const auto shared = std::make_shared<const std::string>(std::move(text));

  ++counters_.published;
  kept_bytes_ += shared->size();
  kept_.push_back({seq, std::string(job), shared});
  while (kept_.size() > config_.keep_events || (kept_bytes_ > config_.keep_bytes && kept_.size() > 1)) {
    kept_bytes_ -= kept_.front().text->size();
    kept_.pop_front();
  }

  SendTo(of_all_, shared, seq);
  if (!job.empty()) {
    for (const std::string_view scope : {job, job.substr(0, job.find('/') + 1)}) {
      const auto at = scope.empty() ? of_scope_.end() : of_scope_.find(std::string(scope));
      if (at == of_scope_.end()) continue;
      SendTo(at->second, shared, seq);
      if (at->second.empty()) of_scope_.erase(at);
    }
  }
  return seq;
}

void EventHub::SendTo(Subscribers& subscribers, const std::shared_ptr<const std::string>& text,
                      std::optional<std::uint64_t> seq) {
  for (std::size_t i = 0; i < subscribers.size();) {
    Subscriber& subscriber = subscribers[i];
    if (subscriber.stream->Send(text)) {
      if (seq.has_value()) subscriber.last = *seq;
      ++i;
      continue;
    }
    LetGo(subscriber);
    if (i + 1 < subscribers.size()) subscriber = std::move(subscribers.back());
    subscribers.pop_back();
  }
}

void EventHub::LetGo(const Subscriber& subscriber) {
  --counters_.open;
  if (!subscriber.stream->open()) return;
  ++counters_.lagged;
  subscriber.stream->Finish(Lagged(subscriber.last));
}

// `now` is the number to go on after, once the client has fetched the lists anew.
std::string EventHub::Lagged(std::uint64_t last) const {
  JsonWriter data;
  data.Object().Field("last", last).Field("now", next_seq_ - 1).End();
  return fmt::format("event: lagged\ndata: {}\n\n", data.text());
}

void EventHub::Forget() {
  const auto forget = [this](Subscribers& subscribers) {
    counters_.open -= std::erase_if(subscribers, [](const Subscriber& one) { return !one.stream->open(); });
  };
  forget(of_all_);
  for (auto at = of_scope_.begin(); at != of_scope_.end();) {
    forget(at->second);
    at = at->second.empty() ? of_scope_.erase(at) : std::next(at);
  }
}

bool EventHub::Full() {
  const std::lock_guard lock(mutex_);
  if (counters_.open >= config_.streams) Forget();
  return counters_.open >= config_.streams;
}

bool EventHub::Subscribe(std::shared_ptr<HttpStream> stream, std::string_view scope,
                         std::optional<std::uint64_t> after) {
  const std::lock_guard lock(mutex_);
  if (counters_.open >= config_.streams) Forget();
  if (counters_.open >= config_.streams) return false;
  const std::uint64_t last = next_seq_ - 1;
  if (after.has_value() && *after != last) {
    const std::uint64_t oldest = kept_.empty() ? next_seq_ : kept_.front().seq;
    if (*after > last || *after + 1 < oldest) {
      ++counters_.lagged;
      stream->Finish(Lagged(*after));
      return true;
    }
    std::vector<std::shared_ptr<const std::string>> missed;
    const auto from = std::lower_bound(kept_.begin(), kept_.end(), *after + 1,
                                       [](const Event& event, std::uint64_t seq) { return event.seq < seq; });
    const auto within = [scope](const std::string& job) {
      return scope.ends_with('/') ? job.starts_with(scope) : scope.empty() || job == scope;
    };
    for (auto at = from; at != kept_.end(); ++at) {
      if (within(at->job)) missed.push_back(at->text);
    }
    stream->SendBacklog(std::move(missed));
  }
  // The head of the answer goes out with the first bytes: a client knows at once that it is connected.
  stream->Send(std::make_shared<const std::string>(fmt::format(": now {}\n\n", last)));
  ++counters_.open;
  Subscribers& subscribers = scope.empty() ? of_all_ : of_scope_[std::string(scope)];
  subscribers.push_back({std::move(stream), last});
  return true;
}

void EventHub::Beat() {
  const auto comment = std::make_shared<const std::string>(": alive\n\n");
  const std::lock_guard lock(mutex_);
  Forget();
  SendTo(of_all_, comment, std::nullopt);
  for (auto at = of_scope_.begin(); at != of_scope_.end();) {
    SendTo(at->second, comment, std::nullopt);
    at = at->second.empty() ? of_scope_.erase(at) : std::next(at);
  }
}

std::uint64_t EventHub::last_seq() const {
  const std::lock_guard lock(mutex_);
  return next_seq_ - 1;
}

EventHub::Counters EventHub::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

}  // namespace voda
