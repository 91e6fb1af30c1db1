#include "sim/report_thin.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace voda::sim {

std::vector<Segment> Canonical(std::span<const Segment> history) {
  std::vector<Segment> out;
  for (const Segment& segment : history) {
    if (!std::isfinite(segment.from)) continue;
    if (!out.empty() && out.back().from == segment.from) out.pop_back();
    if (!out.empty() && out.back().workers == segment.workers && out.back().nodes == segment.nodes) continue;
    out.push_back(segment);
  }
  return out;
}

std::vector<Segment> KeepLongest(const std::vector<Segment>& history, size_t keep) {
  if (history.size() <= keep || keep < 2) return history;
  // The last segment is the end of the job: it has no length and always stays.
  std::vector<double> lengths;
  for (size_t i = 1; i + 1 < history.size(); ++i) lengths.push_back(history[i + 1].from - history[i].from);
  size_t left = keep - 2;
  std::vector<double> sorted = lengths;
  std::ranges::sort(sorted, std::greater<>());
  const double shortest_kept = left > 0 ? sorted[left - 1] : 0;
  const auto longer = static_cast<size_t>(
      std::ranges::count_if(lengths, [&](double length) { return length > shortest_kept; }));
  size_t ties = left > longer ? left - longer : 0;
  std::vector<Segment> kept = {history.front()};
  for (size_t i = 1; i + 1 < history.size() && left > 0; ++i) {
    const double length = lengths[i - 1];
    if (length < shortest_kept || (length == shortest_kept && ties == 0)) continue;
    if (length == shortest_kept) --ties;
    kept.push_back(history[i]);
    --left;
  }
  kept.push_back(history.back());
  return Canonical(kept);
}

size_t CapPerJob(std::vector<size_t> sizes, size_t budget) {
  constexpr size_t kCapMin = 4;
  std::ranges::sort(sizes);
  size_t used = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const size_t jobs = sizes.size() - i;
    if (used + sizes[i] * jobs > budget) return std::max(kCapMin, budget > used ? (budget - used) / jobs : 0);
    used += sizes[i];
  }
  return sizes.empty() ? kCapMin : std::max(kCapMin, sizes.back());
}

std::vector<MeanUsage> AverageUsage(std::span<const UsagePoint> usage, size_t points) {
  std::vector<MeanUsage> out;
  const double begin = usage.empty() ? 0 : usage.front().from;
  const double end = usage.empty() ? 0 : usage.back().from;
  if (usage.size() <= points || !(end > begin) || !std::isfinite(end - begin)) {
    for (const UsagePoint& point : usage) {
      out.push_back({point.from, double(point.capacity), double(point.used)});
    }
    return out;
  }
  const double width = (end - begin) / double(points);
  size_t i = 0;
  for (size_t k = 0; k < points; ++k) {
    const double from = begin + width * double(k);
    const double to = k + 1 == points ? end : begin + width * double(k + 1);
    MeanUsage mean{from, 0, 0};
    for (double t = from; t < to;) {
      while (i + 1 < usage.size() && usage[i + 1].from <= t) ++i;
      const double next = i + 1 < usage.size() ? std::min(to, usage[i + 1].from) : to;
      const double share = (next - t) / (to - from);
      mean.capacity += share * usage[i].capacity;
      mean.used += share * usage[i].used;
      t = next;
    }
    out.push_back(mean);
  }
  out.push_back({end, double(usage.back().capacity), double(usage.back().used)});
  return out;
}

std::vector<CdfPoint> JctDistribution(std::span<const JobResult> jobs, size_t points) {
  std::vector<double> times;
  for (const JobResult& job : jobs) {
    if (job.end && std::isfinite(*job.end - job.submit_time)) times.push_back(*job.end - job.submit_time);
  }
  std::ranges::sort(times);
  const size_t count = std::min(times.size(), std::max<size_t>(points, 2));
  std::vector<CdfPoint> out;
  for (size_t k = 0; k < count; ++k) {
    const size_t i = count == times.size() ? k : k * (times.size() - 1) / (count - 1);
    out.push_back({times[i], double(i + 1) / double(jobs.size())});
  }
  return out;
}

}  // namespace voda::sim
