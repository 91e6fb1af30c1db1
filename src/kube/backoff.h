// Backoff: the waits between attempts, by the rule of client-go's reflector. They begin at 0.8 s and double
// up to 30 s, and begin anew after two quiet minutes. Each is stretched by a random part, so that a
// thousand clients do not return to a server in step.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "kube/time.h"

namespace voda::kube {

struct BackoffRule {
  Duration first{800};
  Duration longest{30'000};
  double jitter = 1;  // a wait of d becomes one of [d, d + jitter * d)
  Duration reset{120'000};
};

class Backoff {
 public:
  Backoff(BackoffRule rule, std::uint64_t seed) : rule_(rule), random_(seed), next_(rule.first) {}

  // Returns how long to wait now; the next wait is twice as long.
  Duration Next(TimePoint now);
  // Whether nothing went wrong lately.
  bool Fresh(TimePoint now) const { return !used_ || now - last_ > rule_.reset; }

 private:
  BackoffRule rule_;
  Random random_;
  Duration next_;
  TimePoint last_{};
  bool used_ = false;
};

}  // namespace voda::kube
