// JobEpochs: the epochs of the latest jobs of one category, job by job.
//
// Most jobs of a category run one program on the same data. Their epochs are alike, and a job on two workers
// can be compared with another on four. Where they are not alike, that would take a job with short epochs for
// a fast size. There, sizes are compared only within jobs: with s the mean epoch of job j at layout p,
//     ln s(j, p) = length(j) + time(p)
// is fitted by least squares over the jobs that were seen at several layouts.
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

class JobEpochs {
 public:
  static constexpr std::size_t kMost = 50;  // jobs; the oldest is forgotten

  // Returns whether that is news.
  bool Add(const std::string& job, Layout layout, double seconds);

  // Whether jobs at the same layout have epochs of different length: they scatter by more than three tenths.
  bool Uneven() const;

  // exp(time) of each layout that was seen.
  std::map<Layout, double> Times() const;

  // exp(length) of a job, or of the typical job if this one was not seen, where exp(time) of each layout is
  // as `time_of` says. Some job must have been seen.
  double Length(const std::string& job, const std::function<double(Layout)>& time_of) const;

 private:
  using Seen = std::map<Layout, Mean>;
  std::map<std::string, Seen, std::less<>> jobs_;
  std::deque<std::string> order_;  // in which they were first seen
};

}  // namespace voda
