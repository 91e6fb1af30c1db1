#include "kube/lanes.h"

#include <algorithm>
#include <cmath>

namespace voda::kube {

LimitsOfLanes DefaultLanes() {
  LimitsOfLanes lanes;
  lanes[Lane::kLease] = {.per_second = 0, .burst = 0, .in_flight = 4, .waiting = 64};
  lanes[Lane::kWrite] = {.per_second = 50, .burst = 100, .in_flight = 16, .waiting = 10'000};
  lanes[Lane::kStatus] = {.per_second = 25, .burst = 50, .in_flight = 4, .waiting = 4096};
  lanes[Lane::kRead] = {.per_second = 50, .burst = 100, .in_flight = 8, .waiting = 10'000};
  lanes[Lane::kEvent] = {.per_second = 10, .burst = 50, .in_flight = 2, .waiting = 4096};
  return lanes;
}

double TokenBucket::At(TimePoint now) const {
  if (!started_ || now <= since_) return tokens_;
  const double seconds = std::chrono::duration<double>(now - since_).count();
  return std::min(burst_, tokens_ + seconds * per_second_);
}

bool TokenBucket::Take(TimePoint now) {
  if (per_second_ <= 0) return true;
  tokens_ = At(now);
  if (!started_ || now > since_) since_ = now;
  started_ = true;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

TimePoint TokenBucket::ReadyAt(TimePoint now) const {
  const double missing = per_second_ <= 0 ? 0 : 1 - At(now);
  if (missing <= 0) return now;
  return now + Duration(static_cast<Duration::rep>(std::ceil(missing / per_second_ * 1000)));
}

Lanes::Lanes(const LimitsOfLanes& limits) {
  for (const LaneLimits& lane : limits) {
    lanes_.push_back({.limits = lane, .bucket = TokenBucket(lane.per_second, std::max(1.0, lane.burst))});
  }
}

bool Lanes::Add(Lane lane, const std::string& flow, Id id) {
  State& state = lanes_[lane];
  if (state.waiting >= state.limits.waiting) return false;
  state.flows[flow].push_back(id);
  ++state.waiting;
  return true;
}

void Lanes::Remove(Lane lane, Id id) {
  State& state = lanes_[lane];
  for (auto at = state.flows.begin(); at != state.flows.end(); ++at) {
    auto& queue = at->second;
    const auto found = std::find(queue.begin(), queue.end(), id);
    if (found == queue.end()) continue;
    queue.erase(found);
    --state.waiting;
    if (queue.empty()) state.flows.erase(at);
    return;
  }
}

std::vector<Lanes::Id> Lanes::Take(TimePoint now) {
  std::vector<Id> out;
  for (State& state : lanes_) {
    if (GivesWay(state)) continue;
    while (state.waiting > 0 && state.in_flight < state.limits.in_flight && state.bucket.Take(now)) {
      auto turn = state.flows.upper_bound(state.last);
      if (turn == state.flows.end()) turn = state.flows.begin();
      out.push_back(turn->second.front());
      turn->second.pop_front();
      state.last = turn->first;
      if (turn->second.empty()) state.flows.erase(turn);
      --state.waiting;
      ++state.in_flight;
    }
  }
  return out;
}

bool Lanes::GivesWay(const State& state) const {
  return &state == &lanes_[Lane::kEvent] &&
         (lanes_[Lane::kWrite].waiting > 0 || lanes_[Lane::kStatus].waiting > 0);
}

void Lanes::Finished(Lane lane) {
  --lanes_[lane].in_flight;
}

std::optional<TimePoint> Lanes::NextAt(TimePoint now) const {
  std::optional<TimePoint> next;
  for (const State& state : lanes_) {
    if (state.waiting == 0 || state.in_flight >= state.limits.in_flight || GivesWay(state)) continue;
    const TimePoint at = state.bucket.ReadyAt(now);
    if (!next || at < *next) next = at;
  }
  return next;
}

std::size_t Lanes::waiting(Lane lane) const {
  return lanes_[lane].waiting;
}

}  // namespace voda::kube
