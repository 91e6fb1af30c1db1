// Lanes: the requests that wait to be sent. Each lane has a token bucket, a limit on requests in flight,
// and a bounded queue in which flows take turns. Pure: `now` is an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/enum_array.h"
#include "base/indexed.h"
#include "kube/request.h"
#include "kube/time.h"

namespace voda::kube {

struct LaneLimits {
  double per_second = 50;  // 0 means no limit
  double burst = 100;
  int in_flight = 16;
  std::size_t waiting = 10'000;
};
using LimitsOfLanes = EnumArray<LaneLimits, Lane::kEvent>;
LimitsOfLanes DefaultLanes();

class TokenBucket {
 public:
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}
  bool Take(TimePoint now);
  // When Take will next succeed, if nobody else takes.
  TimePoint ReadyAt(TimePoint now) const;

 private:
  double At(TimePoint now) const;

  double per_second_;
  double burst_;
  double tokens_;
  TimePoint since_{};
  bool started_ = false;
};

class Lanes {
 public:
  using Id = std::uint64_t;

  explicit Lanes(const LimitsOfLanes& limits);

  // Returns false if the queue is full.
  bool Add(Lane lane, const std::string& flow, Id id);
  // Removes a request from the queue; does nothing if it is not there.
  void Remove(Lane lane, Id id);
  // Returns the requests that may be sent now; each counts as in flight until Finished.
  std::vector<Id> Take(TimePoint now);
  void Finished(Lane lane);
  // When Take may next return something without another Add or Finished; nothing if never.
  std::optional<TimePoint> NextAt(TimePoint now) const;
  std::size_t waiting(Lane lane) const;

 private:
  struct State {
    LaneLimits limits;
    TokenBucket bucket;
    int in_flight = 0;
    std::size_t waiting = 0;
    std::map<std::string, std::deque<Id>> flows;
    std::string last;  // the flow whose turn it was
  };
  // Whether others go first: Events are best effort, and none of the other writes waits behind them.
  bool GivesWay(const State& state) const;

  IndexedVector<Lane, State> lanes_;
};

}  // namespace voda::kube
