// Lanes: what waits to be sent. Each lane has a token bucket, a number of requests that may be out at once
// and a bounded queue in which flows take turns. Pure: `now` is an argument.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/request.h"
#include "kube/time.h"

namespace voda::kube {

struct LaneLimits {
  double per_second = 50;  // 0: no limit
  double burst = 100;
  int in_flight = 16;
  std::size_t waiting = 10'000;
};
std::array<LaneLimits, kLanes> DefaultLanes();

class TokenBucket {
 public:
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}
  bool Take(TimePoint now);
  // When Take will succeed, if nobody else takes.
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

  explicit Lanes(const std::array<LaneLimits, kLanes>& limits);

  // False: the queue is full.
  bool Add(Lane lane, const std::string& flow, Id id);
  // It will not be sent any more. Free for what is not there.
  void Remove(Lane lane, Id id);
  // Those that may go now; each then counts as in flight until Finished.
  std::vector<Id> Take(TimePoint now);
  void Finished(Lane lane);
  // When Take may give something without another Add or Finished; nothing: never.
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
  std::vector<State> lanes_;
};

}  // namespace voda::kube
