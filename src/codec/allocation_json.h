// The answer of an external policy: {"allocation": {"job": workers, …}}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace voda {

// Jobs in the order of the answer, each once, with whole numbers as given; whether they fit is for the caller
// to check.
using NamedWorkers = std::vector<std::pair<std::string, std::int64_t>>;

Result<NamedWorkers> ParseAllocation(std::string_view text);

}  // namespace voda
