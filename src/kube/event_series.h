// EventSeries: which Events are worth a write. The same thing said again about the same object becomes a
// count in a series, and an object that is spoken of too often loses its turn. Pure, bounded; what is dropped
// is counted.
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
  std::string action;  // what was being done: "Scale"; the server insists on one
  std::string note;    // for people; cut to 1024 bytes
};

struct EventRules {
  double burst = 25;  // of one object
  double per_second = 1.0 / 300;
  std::size_t objects = 4096;  // remembered
  std::size_t series = 4096;   // remembered
  Duration forget{360'000};    // a series that was silent so long has ended
  Duration refresh{30'000};    // a count is written at most so often
};

struct EventWrite {
  bool create = true;  // else: the series of `name` has a new count
  std::string name;    // of the Event object
  std::string name_space;
  std::string body;
};

class EventSeries {
 public:
  EventSeries(EventRules rules, std::string controller, std::string instance);

  // Nothing: counted in a series and written later, or dropped.
  std::optional<EventWrite> Record(TimePoint now, WallTime wall, const KubeEvent& event);
  // Counts that have waited long enough.
  std::vector<EventWrite> Flush(TimePoint now);
  // There is no Event of that name any more: what comes next begins a new one.
  void Gone(const std::string& name);
  bool waiting() const;  // there are counts for Flush
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

// At most `bytes` bytes of UTF-8, cut between characters and marked as cut.
std::string CutText(std::string_view text, std::size_t bytes);

}  // namespace voda::kube
