// Backoff: 0.8 s, doubling to 30 s, each stretched by a random part, from the start again after two quiet
// minutes: what client-go's reflector waits between attempts, so that a thousand clients do not return to a
// server in step.
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

  // How long to wait now; the next one is twice as long.
  Duration Next(TimePoint now);
  // Nothing went wrong lately.
  bool Fresh(TimePoint now) const { return !used_ || now - last_ > rule_.reset; }

 private:
  BackoffRule rule_;
  Random random_;
  Duration next_;
  TimePoint last_{};
  bool used_ = false;
};

}  // namespace voda::kube
