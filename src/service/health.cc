#include "service/health.h"

#include <fmt/format.h>

namespace voda {

std::string Health::Stuck(double uptime) const {
  std::string stuck;
  for (const auto& [thread, pulse] : watched_) {
    const double seconds = pulse->BusySeconds(uptime);
    if (seconds < kStuckSeconds) continue;
    stuck +=
        fmt::format("{}the {} thread has not moved for {:.0f} s", stuck.empty() ? "" : "; ", thread, seconds);
  }
  return stuck;
}

}  // namespace voda
