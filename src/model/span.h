// What spreading a job over nodes costs it, where that was measured.
#pragma once

#include <memory>
#include <vector>

#include "model/curve.h"

namespace voda {

// Speed-up of a size when its workers span at least so many nodes.
struct SpanSpeedup {
  int workers = 0;
  int nodes = 0;
  double speedup = 0;
};

// Sorted by (workers, nodes); shared by the jobs of a category.
using SpanTable = std::vector<SpanSpeedup>;

// Speed-up of so many workers on so many nodes: the measurement with most nodes that these still reach, else
// the curve's. A size that is not allowed counts as the next smaller one.
double SpeedupOver(const Curve& curve, const SpanTable* spans, int workers, int nodes);
// Whether the table says anything of so many workers.
bool SpanMeasured(const SpanTable* spans, int workers);

}  // namespace voda
