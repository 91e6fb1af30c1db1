// Gauges: the metrics that say how things stand, brought up to date when somebody asks for them.
#pragma once

#include <cstdint>

#include "api/event_hub.h"
#include "metrics/metrics.h"
#include "service/nodes.h"

namespace voda {

class Gauges {
 public:
  // Everything given outlives it.
  Gauges(const Pools& pools, const Nodes& nodes, const EventHub& events, Metrics& metrics)
      : pools_(pools), nodes_(nodes), events_(events), metrics_(metrics) {}

  void Update();

 private:
  void Update(const Pool& pool);

  const Pools& pools_;
  const Nodes& nodes_;
  const EventHub& events_;
  Metrics& metrics_;
  std::uint64_t lagged_told_ = 0;  // streams
};

}  // namespace voda
