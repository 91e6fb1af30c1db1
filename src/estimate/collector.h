// Collector: what is learned of jobs from the epochs they finish and the changes they go through, per
// category.
//
// Measured: the mean time of an epoch on n workers (on as few nodes as it was seen on). From it, with m the
// smallest and M the largest size measured:
//   one worker:      epoch(1) = epoch(m) · m          (linear below what was measured)
//   speed-up at n:   epoch(1) / epoch(n) where measured; linear in n between measured sizes; n below m;
//                    above M   s(M) · (n / M)^0.8
// A category nothing is known of is linear, and an epoch of it is taken to last as long as the mean over the
// categories that are known (one worker), or kUnknownEpochSeconds at the very start. Where a size was seen on
// several numbers of nodes, what spreading costs is known too. Stalls are the means of those observed, else
// the defaults of Stalls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/curve.h"
#include "model/span.h"

namespace voda {

inline constexpr double kUnknownEpochSeconds = 60;

// Seconds without progress that a change costs.
struct Stalls {
  double start = 40;
  double rescale = 60;
  double migration = 60;
};

enum class StallKind : std::uint8_t { kStart, kRescale, kMigration };

class Collector {
 public:
  // One epoch of a job of this category took so long on so many workers and nodes, undisturbed. Returns
  // whether that is news: the speed-ups of the category changed. Values that cannot be (no number, under a
  // microsecond, over thirty years) are refused.
  bool Epoch(const std::string& category, int workers, int nodes, double seconds);
  // A change of a job of this category stalled it so long. Returns whether that is news.
  bool Stall(const std::string& category, StallKind kind, double seconds);

  // The curve over the sizes of `shape` as the category is known now.
  CurvePtr CurveFor(const std::string& category, const Curve& shape) const;
  // The sizes measured, ascending; and what spreading over nodes costs, null where nothing is known of that.
  std::shared_ptr<const std::vector<int>> MeasuredOf(const std::string& category) const;
  std::shared_ptr<const SpanTable> SpansOf(const std::string& category) const;
  // Seconds of one epoch on one worker.
  double EpochSeconds(const std::string& category) const;
  Stalls StallsOf(const std::string& category) const;

  // What was learned, to be kept and given back to a collector of a later run.
  struct Mean {
    double value = 0;
    int count = 0;
    void Add(double sample);
  };
  Mean EpochMean(const std::string& category, int workers, int nodes) const;
  Mean StallMean(const std::string& category, StallKind kind) const;
  // Refused (false) where the value is one that Epoch or Stall would refuse.
  bool RestoreEpoch(const std::string& category, int workers, int nodes, Mean mean);
  bool RestoreStall(const std::string& category, StallKind kind, Mean mean);

 private:
  struct Size {
    std::map<int, Mean> by_nodes;
    double seconds() const;  // on the number of nodes where it is fastest
  };
  using Sizes = std::map<int, Size>;

  static double Speedup(const Sizes& sizes, int workers);

  std::map<std::string, Sizes, std::less<>> categories_;
  std::map<std::pair<std::string, StallKind>, Mean> stalls_;
};

}  // namespace voda
