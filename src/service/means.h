// What a collector learned, as the history keeps it.
#pragma once

#include <string>

#include "estimate/collector.h"
#include "history/records.h"

namespace voda {

MeanRecord EpochMean(const Collector& collector, const std::string& category, int workers, int nodes);
MeanRecord StallMean(const Collector& collector, const std::string& category, StallKind kind);
// The work of the job of this category that finished last.
MeanRecord FinishedMean(const Collector& collector, const std::string& category, double work_seconds);

// False: it cannot be.
bool RestoreMean(const MeanRecord& mean, Collector& collector);

}  // namespace voda
