// Which requests are sent again by the transport itself. As client-go: an answer of 429 or >= 500 that says
// when to come back, ten times; a lost connection for reads alone. A write whose answer was lost may have
// been done: whoever sent it must read and compare, so it is told.
#pragma once

#include <optional>

#include "base/random.h"
#include "kube/api_error.h"
#include "kube/request.h"

namespace voda::kube {

inline constexpr int kMaxRetries = 10;
inline constexpr Duration kLongestRetryAfter{60'000};

// How long to wait before the next try; nothing: give the error to the caller. `tries`: how often it was
// sent.
std::optional<Duration> RetryDelay(const Request& request, const ApiError& error, int tries, Random& random);

}  // namespace voda::kube
