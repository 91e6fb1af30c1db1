// Durations as people type them: 30, 30s, 1.5m, 2h. In seconds, not negative.
#pragma once

#include <string_view>

#include "base/result.h"

namespace voda {

Result<double> ParseDuration(std::string_view text);

}  // namespace voda
