#include "kube/counters.h"

namespace voda::kube {

void Counters::CountRequest(Verb verb, int code) {
  const int known = code >= 0 && code < kCodes ? code : 0;
  ++requests[verb].begin()[known];
  if (code == 429) ++throttled;
  if (code == 409) ++conflicts;
}

void Counters::ForEachRequest(const std::function<void(Verb, int, std::uint64_t)>& then) const {
  for (const Verb verb : requests.keys()) {
    for (std::size_t code = 0; code < requests[verb].size(); ++code) {
      if (const std::uint64_t count = requests[verb][code]; count > 0) {
        then(verb, static_cast<int>(code), count);
      }
    }
  }
}

}  // namespace voda::kube
