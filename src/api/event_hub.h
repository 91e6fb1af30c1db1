// EventHub: the event stream of the API. It numbers events, keeps the latest ones, and hands each to the
// streams that want it.
//
// The text of an event is made once and shared. A stream of one job is found by that job's name, so
// hundreds of them cost nothing when something else happens. A client that does not keep up is told so and
// let go: it never makes others wait, and the limits of the streams bound the memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/http.h"

namespace voda {

class EventHub {
 public:
  struct Config {
    std::uint64_t first_seq = 1;  // of the next event; goes on after the previous process's last number
    std::size_t keep_events = 16384;
    std::size_t keep_bytes = std::size_t{8} << 20;
    std::size_t streams = 4096;
  };
  struct Counters {
    std::size_t open = 0;
    std::uint64_t published = 0;
    std::uint64_t lagged = 0;
  };

  explicit EventHub(Config config);

  // `fields` are members of a JSON object, such as `"from": 1, "to": 2`, without braces; `seq`, `type` and
  // (where not empty) `job` are put before them. Returns the number of the event. Any thread may call this,
  // but events are ordered by call, so one thread should own it.
  std::uint64_t Publish(std::string_view type, std::string_view job, std::string_view fields);

  // Sends a stream everything, or what concerns one job or ("team-a/") the jobs of one namespace. It begins
  // now, or after the event that the client names; the kept events since that one come first. If they are
  // no longer kept, or the number was never given, the stream ends with `event: lagged`. Returns false,
  // without having sent anything, if there are too many streams. Any thread may call this.
  bool Subscribe(std::shared_ptr<HttpStream> stream, std::string_view scope,
                 std::optional<std::uint64_t> after);
  // Whether there are too many streams: a route asks before it answers with a stream's head. Any thread may
  // call this.
  bool Full();

  // To be called every 15 s: keeps quiet connections alive and forgets those that are closed.
  void Beat();

  std::uint64_t last_seq() const;
  Counters counters() const;

 private:
  struct Event {
    std::uint64_t seq;
    std::string job;
    std::shared_ptr<const std::string> text;
  };
  struct Subscriber {
    std::shared_ptr<HttpStream> stream;
    std::uint64_t last;
  };
  using Subscribers = std::vector<Subscriber>;

  void SendTo(Subscribers& subscribers, const std::shared_ptr<const std::string>& text,
              std::optional<std::uint64_t> seq);
  void LetGo(const Subscriber& subscriber);
  void Forget();
  std::string Lagged(std::uint64_t last) const;

  const Config config_;
  mutable std::mutex mutex_;
  std::uint64_t next_seq_;
  std::deque<Event> kept_;
  std::size_t kept_bytes_ = 0;
  Subscribers of_all_;
  std::unordered_map<std::string, Subscribers> of_scope_;
  Counters counters_;
};

}  // namespace voda
