#include "estimate/mean.h"

#include <algorithm>
#include <cmath>

namespace voda {

bool Mean::Add(double sample) {
  constexpr int kMostCounted = 1000;
  constexpr double kNews = 0.005;  // a change below this share of the value is not worth telling all jobs
  count = std::min(count + 1, kMostCounted);
  value += (sample - value) / count;
  if (count > 1 && std::abs(value - told) <= kNews * told) return false;
  told = value;
  return true;
}

}  // namespace voda
