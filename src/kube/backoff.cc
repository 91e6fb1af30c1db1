#include "kube/backoff.h"

#include <algorithm>

namespace voda::kube {

Duration Backoff::Next(TimePoint now) {
  if (Fresh(now)) next_ = rule_.first;
  used_ = true;
  last_ = now;
  const Duration base = next_;
  next_ = std::min(next_ * 2, rule_.longest);
  return base + std::chrono::duration_cast<Duration>(base * (rule_.jitter * random_.Uniform()));
}

}  // namespace voda::kube
