#include "kube/retry.h"

#include <algorithm>

namespace voda::kube {

namespace {

constexpr Duration kFirstReconnect{100};
constexpr Duration kLongestReconnect{5'000};

}  // namespace

std::optional<Duration> RetryDelay(const Request& request, const ApiError& error, int tries, Random& random) {
  if (tries > kMaxRetries || request.verb == Verb::kWatch) return std::nullopt;
  const auto spread = [&](Duration delay) {
    return delay +
           Duration(static_cast<Duration::rep>(static_cast<double>(delay.count()) * 0.2 * random.Uniform()));
  };
  if (error.code == 429 || error.code >= 500) {
    if (!error.retry_after) return std::nullopt;
    return spread(std::min(*error.retry_after, kLongestRetryAfter));
  }
  // This holds even if nobody listened and nothing was sent: the sender of a write should learn of it early.
  if (error.reason != Reason::kConnection || !ChangesNothing(request)) return std::nullopt;
  Duration delay = kFirstReconnect;
  for (int i = 1; i < tries && delay < kLongestReconnect; ++i) delay *= 2;
  return spread(std::min(delay, kLongestReconnect));
}

}  // namespace voda::kube
