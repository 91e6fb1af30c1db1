#include "local/nudge.h"

#include <limits>

namespace voda::local {

void Nudge::Begin(double now) {
  active_ = true;
  off_ = false;
  times_ = 0;
  wait_ = kFirst;
  due_ = now + wait_;
}

double Nudge::due() const {
  return active_ ? due_ : std::numeric_limits<double>::infinity();
}

bool Nudge::Off(double now, bool follows) {
  if (now < due()) return active_ && off_;
  if (off_) {
    off_ = false;
    wait_ *= 2;
    due_ = now + wait_;
  } else if (follows || times_ == kTimes) {
    active_ = false;
  } else {
    off_ = true;
    ++times_;
    due_ = now + kFor;
  }
  return off_;
}

}  // namespace voda::local
