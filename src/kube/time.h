// Time as the Kubernetes client measures it: monotonic, and always an argument of what decides. Only the
// transport reads the clock, so every state machine here runs in virtual time in the tests.
#pragma once

#include <chrono>

namespace voda::kube {

using Duration = std::chrono::milliseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// Of the wall clock; written into objects, never compared with another machine's.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

}  // namespace voda::kube
