// Durations as the reference's tables show them: 28s, 1m5s, 1h2m3s.
#pragma once

#include <string>

namespace voda {

std::string DurationText(double seconds);

}  // namespace voda
