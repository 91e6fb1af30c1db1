// Health: which of the threads that everything depends on does not move, for /livez and /readyz. A thread
// that waits for a disk or for the reader of a pipe answers nobody, so others must say so.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/pulse.h"

namespace voda {

class Health {
 public:
  static constexpr double kStuckSeconds = 10;  // with one thing: far more than anything takes

  // Before anybody asks.
  void Watch(std::string thread, const Pulse& pulse) { watched_.emplace_back(std::move(thread), &pulse); }

  // "the cluster thread has not moved for 12 s", of each that is stuck; empty: none. Any thread.
  std::string Stuck(double uptime) const;

 private:
  std::vector<std::pair<std::string, const Pulse*>> watched_;
};

}  // namespace voda
