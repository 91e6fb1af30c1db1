// Pulse: tells whether a thread moves. The thread says when it takes something up and when it has nothing to
// do; others ask how long it has been busy with one thing.
#pragma once

#include <atomic>

namespace voda {

class Pulse {
 public:
  // The thread itself, with UptimeNow().
  void Beat(double now) { since_ = now; }
  void Rest() { since_ = kResting; }

  // Any thread.
  double BusySeconds(double now) const {
    const double since = since_;
    return since == kResting ? 0 : now - since;
  }

 private:
  static constexpr double kResting = -1;
  std::atomic<double> since_ = kResting;
};

}  // namespace voda
