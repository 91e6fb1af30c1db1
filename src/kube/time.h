// Time as the Kubernetes client measures it: monotonic, and always an argument. Only the transport reads
// the clock, so every state machine here runs in virtual time in the tests.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace voda::kube {

using Duration = std::chrono::milliseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;
// The wall clock's time: it is written into objects and never compared with another machine's.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

// As Kubernetes writes it: "2026-01-02T03:04:05.000006Z"
std::string MicroTime(WallTime time);
// RFC 3339, any fraction and offset.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace voda::kube
