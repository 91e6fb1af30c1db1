// Kubernetes quantities: 512Mi, 2G, 1e9, 1500m.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace voda::spec {

// The amount, rounded up to a whole number. The message of an error holds no path.
Result<std::int64_t> ParseQuantity(std::string_view text);

}  // namespace voda::spec
