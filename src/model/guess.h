// What is believed of a job that has never said anything of itself.
//
// Its speed-up on n workers is taken to be GuessedSpeedup(n), and what it has done is counted by that. How
// much it has left follows from what it has done and from how much work the finished jobs of its category
// took: as much as is usual, and beyond that a share of what it has done. Without any, it has as long to go
// as it has run, and an hour at least.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "model/job.h"

namespace voda {

// Where an estimate comes from.
enum class Estimate : std::uint8_t {
  kTold,     // by whoever made the snapshot
  kLearned,  // from reports of the job itself and of its category
  kGuessed,  // the job has never reported anything
};

Estimate EstimateOf(const Job& job);
// "told", "learned", "guessed": the word in JSON.
std::string_view Name(Estimate estimate);

inline constexpr double kNewCategorySeconds = 3600;  // the work of a job of which nothing at all is known

// Seconds of work on one worker that are left of a job that has done so much. `finished` may be null.
double GuessedWorkLeft(double done, const FinishedWork* finished);

// Brings the remaining and the total time of a guessed job up to what it has done.
void GuessAnew(Job& job);

}  // namespace voda
