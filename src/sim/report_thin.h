// Thinning: fewer points that draw the same picture.
#pragma once

#include <span>
#include <vector>

#include "sim/result.h"

namespace voda::sim {

// Returns the history without segments that change nothing or have no finite time. It draws the same.
std::vector<Segment> Canonical(std::span<const Segment> history);

// Keeps the first and the longest segments of `history`, `keep` in all; the segment before a dropped one
// covers it.
std::vector<Segment> KeepLongest(const std::vector<Segment>& history, size_t keep);

// The largest cap for which the sum of min(size, cap) stays within `budget`; at least 4, so that every job
// keeps a shape.
size_t CapPerJob(std::vector<size_t> sizes, size_t budget);

struct MeanUsage {
  double from = 0;
  double capacity = 0;
  double used = 0;
};

// Returns the usage as it is if it has at most `points` points, else time-weighted means over `points`
// equal intervals, which keep the area.
std::vector<MeanUsage> AverageUsage(std::span<const UsagePoint> usage, size_t points);

struct CdfPoint {
  double x = 0;
  double share = 0;  // of all jobs, including those that never completed
};

// The empirical distribution of completion times, with every value if at most `points` jobs completed.
std::vector<CdfPoint> JctDistribution(std::span<const JobResult> jobs, size_t points);

}  // namespace voda::sim
