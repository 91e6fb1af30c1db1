#include "kube/event_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "document/json_writer.h"

namespace voda::kube {

namespace {

constexpr std::size_t kNoteBytes = 1024;
constexpr std::size_t kReasonBytes = 128;
constexpr std::size_t kNameBytes = 200;  // of an object's name; the name of its Event adds a suffix
constexpr int kMaxCount = 1'000'000'000;
constexpr std::string_view kCut = "...";

template <class Map>
void DropOlder(Map& map, TimePoint than) {
  std::erase_if(map, [&](const auto& entry) { return entry.second.last < than; });
}

}  // namespace

std::string CutText(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  std::size_t keep = bytes - std::min(bytes, kCut.size());
  while (keep > 0 && (static_cast<unsigned char>(text[keep]) & 0xC0U) == 0x80U) --keep;
  return std::string(text.substr(0, keep)) + std::string(kCut.substr(0, bytes));
}

EventSeries::EventSeries(EventRules rules, std::string controller, std::string instance)
    : rules_(rules), controller_(std::move(controller)), instance_(std::move(instance)) {}

bool EventSeries::MakeRoom(TimePoint now) {
  if (series_.size() >= rules_.series) {
    std::erase_if(series_, [&](const auto& entry) {
      const Series& series = entry.second;
      return now - series.last > rules_.forget && series.count == series.written;
    });
  }
  return series_.size() < rules_.series;
}

bool EventSeries::MayTalk(TimePoint now, const ObjectReference& object) {
  auto at = objects_.find(object);
  if (at == objects_.end()) {
    if (objects_.size() >= rules_.objects) DropOlder(objects_, now - rules_.forget);
    if (objects_.size() >= rules_.objects) return false;
    at = objects_.emplace(object, Talker{.bucket = TokenBucket(rules_.per_second, rules_.burst)}).first;
  }
  at->second.last = now;
  return at->second.bucket.Take(now);
}

std::string EventSeries::NewName(const ObjectReference& object, WallTime wall) {
  const auto number = static_cast<std::uint64_t>(wall.time_since_epoch().count());
  last_name_ = std::max(last_name_ + 1, number);
  return fmt::format("{}.{:x}", object.name.substr(0, kNameBytes), last_name_);
}

EventWrite EventSeries::Count(TimePoint now, Series& series) const {
  series.written = series.count;
  series.written_at = now;
  JsonWriter body;
  body.Object().Key("series").Object();
  body.Field("count", series.count).Field("lastObservedTime", MicroTime(series.last_wall)).End().End();
  return {.create = false, .name = series.name, .name_space = series.name_space, .body = body.Take()};
}

std::optional<EventWrite> EventSeries::Record(TimePoint now, WallTime wall, const KubeEvent& event) {
  Key key{event.regarding, event.type, event.reason, event.action};
  const auto known = series_.find(key);
  if (known != series_.end() && now - known->second.last <= rules_.forget) {
    Series& series = known->second;
    series.count = std::min(series.count + 1, kMaxCount);
    series.last = now;
    series.last_wall = wall;
    if (now - series.written_at < rules_.refresh) return std::nullopt;
    return Count(now, series);
  }
  if (known != series_.end()) series_.erase(known);
  if (!MakeRoom(now) || !MayTalk(now, event.regarding)) {
    ++dropped_;
    return std::nullopt;
  }
  Series series{.name = NewName(event.regarding, wall),
                .name_space = event.regarding.name_space.empty() ? "default" : event.regarding.name_space,
                .last = now,
                .written_at = now,
                .last_wall = wall};
  EventWrite write{.create = true, .name = series.name, .name_space = series.name_space};
  JsonWriter body;
  body.Object().Field("apiVersion", "events.k8s.io/v1").Field("kind", "Event");
  body.Key("metadata").Object();
  body.Field("name", series.name).Field("namespace", series.name_space).End();
  body.Field("eventTime", MicroTime(wall))
      .Field("reportingController", controller_)
      .Field("reportingInstance", CutText(instance_, kReasonBytes))
      .Field("action", CutText(event.action, kReasonBytes))
      .Field("reason", CutText(event.reason, kReasonBytes))
      .Field("type", event.type == EventType::kWarning ? "Warning" : "Normal")
      .Field("note", CutText(event.note, kNoteBytes));
  body.Key("regarding").Object();
  body.FieldIf("apiVersion", event.regarding.api_version)
      .FieldIf("kind", event.regarding.kind)
      .FieldIf("namespace", event.regarding.name_space)
      .FieldIf("name", event.regarding.name)
      .FieldIf("uid", event.regarding.uid);
  write.body = body.End().End().Take();
  series_.emplace(std::move(key), std::move(series));
  return write;
}

std::vector<EventWrite> EventSeries::Flush(TimePoint now) {
  std::vector<EventWrite> writes;
  for (auto& [key, series] : series_) {
    if (series.count > series.written && now - series.written_at >= rules_.refresh) {
      writes.push_back(Count(now, series));
    }
  }
  return writes;
}

void EventSeries::Gone(const std::string& name) {
  std::erase_if(series_, [&](const auto& entry) { return entry.second.name == name; });
}

bool EventSeries::waiting() const {
  return std::any_of(series_.begin(), series_.end(),
                     [](const auto& entry) { return entry.second.count > entry.second.written; });
}

}  // namespace voda::kube
