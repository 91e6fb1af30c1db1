// What a collector learned, as the history keeps it.
#pragma once

#include <string>
#include <vector>

#include "estimate/collector.h"
#include "history/records.h"

namespace voda {

MeanRecord EpochMean(const Collector& collector, const std::string& category, int workers, int nodes);
MeanRecord StallMean(const Collector& collector, const std::string& category, StallKind kind);
// What is fitted where the epochs of the category's jobs differ, or that they do so no more.
std::vector<MeanRecord> FitMeans(const Collector& collector, const std::string& category);
// The work of the job of this category that finished last.
MeanRecord FinishedMean(const Collector& collector, const std::string& category, double work_seconds);

// False: it cannot be.
bool RestoreMean(const MeanRecord& mean, Collector& collector);

}  // namespace voda
