// Thinning: fewer points that draw the same picture.
#pragma once

#include <span>
#include <vector>

#include "sim/result.h"

namespace voda::sim {

// Without segments that change nothing or have no finite time. Loses nothing that can be drawn.
std::vector<Segment> Canonical(std::span<const Segment> history);

// The first and the longest of `history`, `keep` in all; what is dropped is covered by the segment before it.
std::vector<Segment> KeepLongest(const std::vector<Segment>& history, size_t keep);

// Largest cap for which the sum of min(size, cap) stays within `budget`; at least 4, so that every job keeps
// a shape.
size_t CapPerJob(std::vector<size_t> sizes, size_t budget);

struct MeanUsage {
  double from = 0;
  double capacity = 0;
  double used = 0;
};

// As they are when at most `points`; else time-weighted means over `points` equal intervals, which keep the
// area.
std::vector<MeanUsage> AverageUsage(std::span<const UsagePoint> usage, size_t points);

struct CdfPoint {
  double x = 0;
  double share = 0;  // of all jobs, also those that never completed
};

// Empirical distribution of the completion times; every value when at most `points` jobs completed.
std::vector<CdfPoint> JctDistribution(std::span<const JobResult> jobs, size_t points);

}  // namespace voda::sim
