// Collector: what is learned of each category from the epochs that its jobs finish and the changes they go
// through.
//
// What is measured is the mean time of an epoch on n workers, on the number of nodes where it was fastest.
// From it, with m the smallest and M the largest size measured:
//   one worker:      epoch(1) = epoch(m) · m          (linear below what was measured)
//   speed-up at n:   epoch(1) / epoch(n) where measured; linear in n between measured sizes; n below m;
//                    above M   s(M) · (n / M)^0.8
// Where the epochs of jobs differ in length, sizes are compared within jobs only (job_epochs.h), and the time
// of an epoch is that of the job itself or, before it has reported one, of the typical job.
// A category of which nothing is known is taken to be linear; its epoch on one worker is taken to last as
// long as the mean over the known categories, or kUnknownEpochSeconds if there is none. Where a size was
// seen on several numbers of nodes, the cost of spreading is known too. Stalls are the means of those
// observed, or the defaults of Stalls. How much work a job of the category took is kept of the latest
// kFinishedKept that finished; jobs that report nothing are guessed by it (model/guess.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimate/job_epochs.h"
#include "estimate/mean.h"
#include "model/curve.h"
#include "model/job.h"
#include "model/span.h"

namespace voda {

inline constexpr double kUnknownEpochSeconds = 60;
inline constexpr int kFinishedKept = 100;  // of each category

// Seconds without progress that a change costs.
struct Stalls {
  double start = 40;
  double rescale = 60;
  double migration = 60;
};

enum class StallKind : std::uint8_t { kStart, kRescale, kMigration };

class Collector {
 public:
  // An epoch of a job of this category took this long on this many workers and nodes, undisturbed. Returns
  // whether the speed-ups of the category changed. Impossible values (not a number, under a microsecond,
  // over thirty years) are refused.
  bool Epoch(const std::string& category, const std::string& job, int workers, int nodes, double seconds);
  // A change of a job of this category stalled it this long. Returns whether the stalls of the category
  // changed.
  bool Stall(const std::string& category, StallKind kind, double seconds);
  // A job of this category finished after so many seconds of work on one worker. Impossible values are
  // refused.
  bool Finished(const std::string& category, double work_seconds);
  // No more epochs of this job will come.
  void Ended(const std::string& category, const std::string& job);

  // The curve over the sizes of `shape`, by what is known of the category now. Who asks for the same gets the
  // same object, so that the jobs of a category share theirs.
  CurvePtr CurveFor(const std::string& category, const Curve& shape) const;
  // The same for a job that reports nothing: where the category is unknown, what is guessed of every job.
  CurvePtr GuessedCurveFor(const std::string& category, const Curve& shape) const;
  // Whether any size of the category was measured.
  bool Measured(const std::string& category) const { return SizesFor(category) != nullptr; }
  // The measured sizes, ascending; and what spreading over nodes costs, null if that is unknown.
  std::shared_ptr<const std::vector<int>> MeasuredOf(const std::string& category) const;
  std::shared_ptr<const SpanTable> SpansOf(const std::string& category) const;
  // The work of its finished jobs, ascending; null if there is none.
  std::shared_ptr<const FinishedWork> FinishedOf(const std::string& category) const;
  // Seconds of one epoch of a job on one worker; without a job, of the typical one.
  double EpochSeconds(const std::string& category, const std::string& job = {}) const;
  Stalls StallsOf(const std::string& category) const;

  // What was learned, to be kept and given to a collector of a later run.
  Mean EpochMean(const std::string& category, int workers, int nodes) const;
  Mean StallMean(const std::string& category, StallKind kind) const;
  // Returns false and learns nothing if Epoch or Stall would refuse the value.
  bool RestoreEpoch(const std::string& category, int workers, int nodes, Mean mean);
  bool RestoreStall(const std::string& category, StallKind kind, Mean mean);
  // Whether the epochs of the category's jobs differ, and what is known then.
  bool Uneven(const std::string& category) const;
  EpochFit FitOf(const std::string& category) const;
  // A time counts once the typical job is restored, too. Both return false if the value cannot be.
  bool RestoreTime(const std::string& category, Layout layout, EpochFit::Time time);
  bool RestoreTypical(const std::string& category, double length, int jobs);
  // The latest job that finished was the count-th; it takes the place of the one kFinishedKept before it.
  int FinishedCount(const std::string& category) const;
  bool RestoreFinished(const std::string& category, double work_seconds, int count);

 private:
  struct Size {
    std::map<int, Mean> by_nodes;
    double seconds() const;  // on the number of nodes where it is fastest
  };
  using Sizes = std::map<int, Size>;
  struct Category {
    Sizes pooled;  // over all jobs
    JobEpochs jobs;
    bool uneven = false;                  // the jobs' epochs differ in length
    mutable std::optional<Sizes> fitted;  // of such a category, for a job of length 1; empty: not asked yet
  };
  struct Finishes {
    std::map<int, double> work;  // by their number modulo kFinishedKept
    int count = 0;               // of all so far
    std::shared_ptr<const FinishedWork> sorted;
  };

  // What was said of a category since it changed, to be shared.
  struct Said {
    std::shared_ptr<const std::vector<int>> measured;
    std::shared_ptr<const SpanTable> spans;
    // By their sizes; consecutive ones as 0, the first, the last.
    struct Curves {
      std::map<std::vector<int>, std::weak_ptr<const Curve>> known;
      std::size_t sweep_at = 64;  // those that nobody has any more are dropped when there are so many
    };
    Curves curves;
    Curves guesses;  // of jobs that report nothing
  };

  static double OneWorker(const Sizes& sizes);  // seconds of an epoch
  static double Speedup(const Sizes& sizes, int workers);
  // What is known of the sizes of a category; null: nothing.
  const Sizes* SizesFor(const std::string& category) const;
  Said& SaidOf(const std::string& category) const;
  void Refit(const std::string& category, Category& known);  // after its jobs were restored

  std::map<std::string, Category, std::less<>> categories_;
  std::map<std::pair<std::string, StallKind>, Mean> stalls_;
  std::map<std::string, Finishes, std::less<>> finishes_;
  mutable std::map<std::string, Said, std::less<>> said_;  // "": of all categories that are not known
};

}  // namespace voda
