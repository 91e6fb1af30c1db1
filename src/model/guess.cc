#include "model/guess.h"

#include <algorithm>

namespace voda {

namespace {

constexpr double kLeastShare = 0.2;  // of the usual work, or of what is done, that is still to come
constexpr double kOutlier = 3;       // times the usual work: the category says nothing of such a job

// Of a sorted list from `from` on, which is not its end.
double Median(const FinishedWork& sorted, std::size_t from) {
  const std::size_t count = sorted.size() - from;
  const std::size_t middle = from + count / 2;
  return count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

}  // namespace

Estimate EstimateOf(const Job& job) {
  if (job.guessed) return Estimate::kGuessed;
  return job.measured ? Estimate::kLearned : Estimate::kTold;
}

std::string_view Name(Estimate estimate) {
  switch (estimate) {
    case Estimate::kTold:
      return "told";
    case Estimate::kLearned:
      return "learned";
    case Estimate::kGuessed:
      return "guessed";
  }
  return "";
}

double GuessedWorkLeft(double done, const FinishedWork* finished) {
  const double unknown = std::max(kNewCategorySeconds, done);
  if (finished == nullptr || finished->empty()) return unknown;
  const double usual = Median(*finished, 0);
  if (done < usual) return std::max(usual - done, kLeastShare * usual);
  const auto above = static_cast<std::size_t>(std::upper_bound(finished->begin(), finished->end(), done) -
                                              finished->begin());
  if (above < finished->size()) return std::max(Median(*finished, above) - done, kLeastShare * done);
  return done < kOutlier * usual ? kLeastShare * done : unknown;
}

void GuessAnew(Job& job) {
  job.remaining_seconds = GuessedWorkLeft(job.work_done, job.finished.get());
  job.total_seconds = job.work_done + job.remaining_seconds;
}

}  // namespace voda
