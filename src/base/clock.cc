#include "base/clock.h"

#include <time.h>

namespace voda {

namespace {

double Read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

double WallNow() {
  return Read(CLOCK_REALTIME);
}

double UptimeNow() {
  return Read(CLOCK_BOOTTIME);
}

double SteadyWallNow() {
  static const double booted = WallNow() - UptimeNow();
  return booted + UptimeNow();
}

}  // namespace voda
