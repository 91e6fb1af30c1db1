// Counters: what the Kubernetes client did, for the metrics. Any thread may use them; each counter is exact
// by itself.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/enum_array.h"
#include "kube/request.h"

namespace voda::kube {

struct Counters {
  using Count = std::atomic<std::uint64_t>;
  static constexpr int kCodes = 600;

  // By verb and HTTP status; status 0 means that there was no answer.
  EnumArray<std::array<std::atomic<std::uint32_t>, kCodes>, Verb::kDelete> requests{};
  Count retries{0};
  Count throttled{0};         // answers of 429
  Count conflicts{0};         // answers of 409
  Count refused_by_us{0};     // requests that found a queue full
  Count watch_restarts{0};    // watches that were opened again
  Count relists{0};           // lists after the first one
  Count bad_objects{0};       // objects that could not be decoded
  Count credential_loads{0};  // token files read and plug-ins run
  Count events_sent{0};
  Count events_lost{0};
  Count leases_lost{0};

  void CountRequest(Verb verb, int code);
  // Visits only the counts that are not zero.
  void ForEachRequest(const std::function<void(Verb, int code, std::uint64_t count)>& then) const;
};

}  // namespace voda::kube
