// For the tests: an Io in virtual time whose answers the test writes itself.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kube/io.h"
#include "kube/json_read.h"

namespace voda::kube::testing {

class FakeIo final : public Io {
 public:
  struct Open {
    Ticket ticket;
    Request request;
    Done done;
    StreamCallbacks stream;
  };

  TimePoint Now() const override { return now_; }
  WallTime Wall() const override {
    return WallTime(std::chrono::seconds(1'700'000'000)) + (now_ - TimePoint());
  }
  Ticket Send(Request request, Done done) override {
    open.push_back({NewTicket(), std::move(request), std::move(done), {}});
    return open.back().ticket;
  }
  Ticket Stream(Request request, StreamCallbacks callbacks) override {
    open.push_back({NewTicket(), std::move(request), {}, std::move(callbacks)});
    return open.back().ticket;
  }
  Ticket After(Duration delay, std::function<void()> then) override {
    const Ticket ticket = NewTicket();
    timers_[{now_ + delay, ticket}] = std::move(then);
    return ticket;
  }
  void Cancel(Ticket ticket) override {
    std::erase_if(open, [&](const Open& one) { return one.ticket == ticket; });
    std::erase_if(timers_, [&](const auto& one) { return one.first.second == ticket; });
  }
  void Post(std::function<void()> then) override { posted_.push_back(std::move(then)); }
  void RunAndWait(const std::function<void()>& what) override { what(); }

  // The oldest open request.
  const Request& Asked() const {
    VODA_CHECK(!open.empty());
    return open.front().request;
  }
  void Answer(int code, std::string body) {
    AddPadding(body);
    Reply reply{.code = code, .body = std::move(body)};
    if (code >= 300) reply.error = DecodeError(code, reply.body);
    Finish(std::move(reply));
  }
  void Fail(ApiError error) { Finish({.error = std::move(error)}); }
  void RunPosted() {
    while (!posted_.empty()) {
      const auto then = std::move(posted_.front());
      posted_.pop_front();
      then();
    }
  }
  // Lets time pass; what is due happens in order.
  void Pass(Duration duration) {
    const TimePoint until = now_ + duration;
    while (!timers_.empty() && timers_.begin()->first.first <= until) {
      auto node = timers_.extract(timers_.begin());
      now_ = std::max(now_, node.key().first);
      node.mapped()();
    }
    now_ = until;
  }
  std::size_t timers() const { return timers_.size(); }

  std::deque<Open> open;

 private:
  Ticket NewTicket() { return static_cast<Ticket>(++last_); }
  void Finish(Reply reply) {
    VODA_CHECK(!open.empty());
    const Done done = std::move(open.front().done);
    open.pop_front();
    done(std::move(reply));
  }

  TimePoint now_{Duration(1'000'000)};
  std::uint64_t last_ = 0;
  std::map<std::pair<TimePoint, Ticket>, std::function<void()>> timers_;
  std::deque<std::function<void()>> posted_;
};

}  // namespace voda::kube::testing
