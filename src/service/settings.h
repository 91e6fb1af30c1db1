// Settings: the algorithm and the rate limit of each GPU type, as users set them at run time.
#pragma once

#include <optional>
#include <string>

#include "ledger/ledger.h"
#include "metrics/metrics.h"
#include "service/announcer.h"
#include "service/pools.h"

namespace voda {

class Settings {
 public:
  // What is not given stays as it is.
  struct Change {
    std::optional<std::string> algorithm;
    std::optional<PolicyOptions> options;
    std::optional<double> rate_limit;
  };

  // Everything given outlives it.
  Settings(Pools& pools, Ledger& ledger, Announcer& announcer, Metrics& metrics)
      : pools_(pools), ledger_(ledger), announcer_(announcer), metrics_(metrics) {}

  // For one GPU type, or all where it is empty. Changes nothing where any part cannot be used.
  void Set(const std::string& gpu_type, const Change& change, Ledger::Done done);

 private:
  Pools& pools_;
  Ledger& ledger_;
  Announcer& announcer_;
  Metrics& metrics_;
};

}  // namespace voda
