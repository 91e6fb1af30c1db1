// ReflectorState: list, then watch, for ever: the rules by which a copy of one resource stays true. It is a
// pure state machine: events go in with their time, the next command comes out, and changes of the copy go
// to a sink. The numbered rules are those of client-go's reflector; reflector_state_test.cc has a test
// named after each.
//
// At any time exactly one thing is under way: a list, a watch or a wait. A new command replaces it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "kube/api_error.h"
#include "kube/backoff.h"
#include "kube/json_read.h"
#include "kube/request.h"
#include "kube/watch_parser.h"

namespace voda::kube {

// The changes of the copy, in order for each object. `object` is valid during the call.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;
  virtual void OnAdd(const ObjectHead& head, const JsonView& object) = 0;
  virtual void OnUpdate(const ObjectHead& head, const JsonView& object) = 0;
  // `object` is absent if it was deleted while nobody watched; the last state that was told is then its
  // last state.
  virtual void OnDelete(const ObjectHead& head, const JsonView& object) = 0;
  // Called once, after the whole first list.
  virtual void OnSynced() = 0;
};

struct ReflectorRules {
  int page = 500;
  // The first list asks the server's store instead of its cache: decisions must not begin with an old state.
  bool consistent_first_list = true;
  BackoffRule backoff;
  Duration shortest_watch{1000};
  int server_errors = 5;  // in a row, after which a list replaces the watch
  Duration watch_from{300'000};
  Duration watch_to{600'000};
};

struct ReflectorCommand {
  enum class Kind : std::uint8_t { kList, kWatch, kWait };
  Kind kind = Kind::kWait;
  // kList, kWatch
  std::string resource_version;  // if empty, a list asks for the newest version
  std::string continue_token;
  int limit = 0;
  int timeout_seconds = 0;  // kWatch
  Duration wait{0};         // for kWait; then call OnTimer
};

class ReflectorState {
 public:
  ReflectorState(ReflectorRules rules, std::uint64_t seed, ObjectSink& sink);

  ReflectorCommand Start();
  // The items of a page come one by one, then the end of the page.
  void OnListItem(const ObjectHead& head, const JsonView& object);
  ReflectorCommand OnListPage(const ListHead& page);
  ReflectorCommand OnListFailed(TimePoint now, const ApiError& error);
  void OnWatchOpened(TimePoint now);
  // Returns a command if this watch must be left.
  std::optional<ReflectorCommand> OnWatchEvent(TimePoint now, const WatchEvent& event);
  ReflectorCommand OnWatchEnded(TimePoint now, const std::optional<ApiError>& error);
  ReflectorCommand OnTimer();

  bool synced() const { return synced_; }
  const std::string& resource_version() const { return version_; }
  // Whether the copy is at least as new as a write that got this version (rule 12). Versions are opaque but
  // for one thing: those of one resource can be compared as numbers. A version that is not a number counts
  // as seen when it is the latest one.
  bool HasSeen(std::string_view written_version) const;
  std::size_t objects() const { return known_.size(); }

 private:
  struct Known {
    std::string uid;
    std::string resource_version;
    std::uint64_t seen = 0;  // the number of the latest list that had it
  };

  ReflectorCommand List();
  ReflectorCommand Watch();
  ReflectorCommand Wait(TimePoint now, bool then_list, std::optional<Duration> at_least);
  ReflectorCommand Relist(TimePoint now, const ApiError& error);
  ReflectorCommand AfterError(TimePoint now, const ApiError& error);
  void Apply(const ObjectHead& head, const JsonView& object, std::uint64_t seen);

  ReflectorRules rules_;
  ObjectSink& sink_;
  Backoff backoff_;
  Random random_;
  std::map<ObjectKey, Known> known_;
  std::string version_;   // the last version seen, of a list or of any event
  std::string continue_;  // for the list under way
  bool newest_ = true;    // whether the next list asks for the newest version
  bool paged_ = true;
  bool list_next_ = true;  // whether a list follows the wait
  bool synced_ = false;
  std::uint64_t round_ = 0;  // the number of the list
  int server_errors_ = 0;
  bool opened_ = false;
  bool had_events_ = false;
  TimePoint opened_at_{};
};

}  // namespace voda::kube
