#include "model/span.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace voda {

double SpeedupOver(const Curve& curve, const SpanTable* spans, int workers, int nodes) {
  const double packed = curve.speedup(std::max(curve.FloorIndex(workers), 0));
  if (spans == nullptr) return packed;
  const auto after = std::upper_bound(spans->begin(), spans->end(), std::pair(workers, nodes),
                                      [](const std::pair<int, int>& key, const SpanSpeedup& entry) {
                                        return key < std::pair(entry.workers, entry.nodes);
                                      });
  if (after == spans->begin()) return packed;
  const SpanSpeedup& entry = *std::prev(after);
  return entry.workers == workers ? entry.speedup : packed;
}

bool SpanMeasured(const SpanTable* spans, int workers) {
  if (spans == nullptr) return false;
  const auto at = std::lower_bound(spans->begin(), spans->end(), workers,
                                   [](const SpanSpeedup& entry, int size) { return entry.workers < size; });
  return at != spans->end() && at->workers == workers;
}

}  // namespace voda
