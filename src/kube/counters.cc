#include "kube/counters.h"

namespace voda::kube {

void Counters::CountRequest(Verb verb, int code) {
  const int known = code >= 0 && code < kCodes ? code : 0;
  ++requests[static_cast<std::size_t>(verb)][static_cast<std::size_t>(known)];
  if (code == 429) ++throttled;
  if (code == 409) ++conflicts;
}

void Counters::ForEachRequest(const std::function<void(Verb, int, std::uint64_t)>& then) const {
  for (std::size_t verb = 0; verb < requests.size(); ++verb) {
    for (std::size_t code = 0; code < requests[verb].size(); ++code) {
      if (const std::uint64_t count = requests[verb][code]; count > 0) {
        then(static_cast<Verb>(verb), static_cast<int>(code), count);
      }
    }
  }
}

}  // namespace voda::kube
