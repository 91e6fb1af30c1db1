// JobEpochs: the epochs of the latest jobs of one category, job by job.
//
// Most jobs of a category run one program on the same data. Their epochs are alike, and a job on two workers
// can be compared with another on four. Where they are not alike, that would take a job with short epochs for
// a fast size. There, sizes are compared only within jobs: with s the mean epoch of job j at layout p,
//     ln s(j, p) = length(j) + time(p)
// is fitted by least squares over the jobs that were seen at several layouts. What an earlier run had fitted
// counts as a job of typical length, with the weight of those that it was fitted from, until kMost jobs were
// seen anew.
#pragma once

#include <compare>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "estimate/mean.h"

namespace voda {

// A size and the number of nodes that it is spread over.
struct Layout {
  int workers = 1;
  int nodes = 1;
  friend auto operator<=>(Layout, Layout) = default;  // NOLINT: clang-tidy 14 takes it for a null
};

// What is fitted where the epochs of jobs differ, for a later run.
struct EpochFit {
  struct Time {
    double value = 1;  // exp(time)
    int jobs = 0;      // that were seen at this layout and another; 0: the time is a guess
  };
  std::map<Layout, Time> times;
  double length = 1;  // exp(length) of the typical job
  int jobs = 0;       // that it is typical of; 0: the epochs do not differ
};

class JobEpochs {
 public:
  static constexpr std::size_t kMost = 50;  // jobs; beyond that, those that ended first are forgotten

  // Returns whether that is news.
  bool Add(const std::string& job, Layout layout, double seconds);
  // The job has ended: it may be forgotten. A job that comes by its name later is another.
  void Ended(const std::string& job);

  // Whether jobs at the same layout have epochs of different length: they scatter by more than three tenths,
  // or did so in an earlier run.
  bool Uneven() const;

  // exp(time) of each layout that was seen.
  std::map<Layout, double> Times() const;

  // exp(length) of a job, or of the typical job if this one was not seen, where exp(time) of each layout is
  // as `time_of` says. Some job must have been seen.
  double Length(const std::string& job, const std::function<double(Layout)>& time_of) const;

  EpochFit Fit() const;
  void RestoreTime(Layout layout, EpochFit::Time time);
  void RestoreTypical(double length, int jobs);

 private:
  using Seen = std::map<Layout, Mean>;
  bool FromEarlier() const { return earlier_.jobs > 0 && !earlier_.times.empty(); }
  void Forget();
  EpochFit FitTimes() const;  // without the typical job

  std::map<std::string, Seen, std::less<>> jobs_;
  std::deque<std::string> ended_;  // of these, the earliest first
  EpochFit earlier_;               // of an earlier run
};

}  // namespace voda
