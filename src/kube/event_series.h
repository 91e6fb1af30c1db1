// EventSeries: which Events are worth a write. A repeated Event about the same object becomes a count in a
// series, and an object with too many Events loses some. This is pure and bounded, and lost Events are
// counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "kube/lanes.h"
#include "kube/time.h"

namespace voda::kube {

struct ObjectReference {
  std::string api_version;
  std::string kind;
  std::string name_space;
  std::string name;
  std::string uid;

  friend bool operator<(const ObjectReference& a, const ObjectReference& b) {
    return std::tie(a.name_space, a.name, a.uid, a.kind, a.api_version) <
           std::tie(b.name_space, b.name, b.uid, b.kind, b.api_version);
  }
};

enum class EventType : std::uint8_t { kNormal, kWarning };

struct KubeEvent {
  ObjectReference regarding;
  EventType type = EventType::kNormal;
  std::string reason;  // CamelCase, at most 128 bytes: "Scaled"
  std::string action;  // what was being done: "Scale"; the server requires one
  std::string note;    // for people; cut to 1024 bytes
};

struct EventRules {
  double burst = 25;  // for each object
  double per_second = 1.0 / 300;
  std::size_t objects = 4096;  // how many objects are remembered
  std::size_t series = 4096;   // how many series are remembered
  Duration forget{360'000};    // a series that was silent for this long has ended
  Duration refresh{30'000};    // the least time between two writes of a count
};

struct EventWrite {
  bool create = true;  // false if the series of `name` has a new count
  std::string name;    // of the Event object
  std::string name_space;
  std::string body;
};

class EventSeries {
 public:
  EventSeries(EventRules rules, std::string controller, std::string instance);

  // Returns nothing if the event was dropped, or was counted in a series to be written later.
  std::optional<EventWrite> Record(TimePoint now, WallTime wall, const KubeEvent& event);
  // Returns the counts that have waited long enough.
  std::vector<EventWrite> Flush(TimePoint now);
  // The Event of that name no longer exists: the next one begins a new series.
  void Gone(const std::string& name);
  bool waiting() const;  // whether there are counts for Flush
  std::uint64_t dropped() const { return dropped_; }

 private:
  struct Key {
    ObjectReference regarding;
    EventType type;
    std::string reason;
    std::string action;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.regarding, a.type, a.reason, a.action) <
             std::tie(b.regarding, b.type, b.reason, b.action);
    }
  };
  struct Series {
    std::string name;
    std::string name_space;
    int count = 1;
    int written = 1;
    TimePoint last{};
    TimePoint written_at{};
    WallTime last_wall{};
  };
  struct Talker {
    TokenBucket bucket;
    TimePoint last{};
  };
  bool MakeRoom(TimePoint now);
  bool MayTalk(TimePoint now, const ObjectReference& object);
  std::string NewName(const ObjectReference& object, WallTime wall);
  EventWrite Count(TimePoint now, Series& series) const;

  EventRules rules_;
  std::string controller_;
  std::string instance_;
  std::map<Key, Series> series_;
  std::map<ObjectReference, Talker> objects_;
  std::uint64_t dropped_ = 0;
  std::uint64_t last_name_ = 0;
};

// Returns at most `bytes` bytes of UTF-8, cut between characters and marked as cut.
std::string CutText(std::string_view text, std::size_t bytes);

}  // namespace voda::kube
