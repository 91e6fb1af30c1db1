// Durations as people type and read them, in seconds.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace voda {

// Of 30, 30s, 1.5m, 2h, 100ms; not negative.
Result<double> ParseDuration(std::string_view text);

// 0s, 28s, 1m5s, 1h2m3s, as Go prints them; whole seconds, down. "0s" for less than nothing.
std::string GoDuration(double seconds);
// 850ms, 1.5s, 28s, 1m5s: the same, but finer below ten seconds.
std::string FineDuration(double seconds);
// 40 s, 7 min 30 s, 12 min, 1 h 20 min, 3 d 4 h: rounded, for sentences.
std::string SpokenDuration(double seconds);

}  // namespace voda
