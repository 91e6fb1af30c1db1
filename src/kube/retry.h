// Which requests the transport itself sends again, by the rules of client-go: up to ten times if the answer
// is 429 or >= 500 and says when to come back; after a lost connection if the request changes nothing. A
// write whose answer was lost may have been carried out: its sender gets the error, and must read and
// compare.
#pragma once

#include <optional>

#include "base/random.h"
#include "kube/api_error.h"
#include "kube/request.h"

namespace voda::kube {

inline constexpr int kMaxRetries = 10;
inline constexpr Duration kLongestRetryAfter{60'000};

// Returns how long to wait before the next try, or nothing if the caller gets the error. `tries` is how
// often the request was sent.
std::optional<Duration> RetryDelay(const Request& request, const ApiError& error, int tries, Random& random);

}  // namespace voda::kube
