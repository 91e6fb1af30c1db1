// JobState: what of a job must outlive Voda beside its document: what users asked for since they submitted
// it, and the totals that policies and people count by. Every ledger keeps it as the same text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/limits.h"

namespace voda {

struct JobState {
  // What users ask for.
  bool held = false;
  int priority = 0;
  Limits limits;

  // Totals, and what the policies count (since the last promotion), in seconds.
  double waited = 0, ran = 0, gpu_seconds = 0;
  double attained = 0, waiting = 0, running = 0;
  double work_done = 0;  // as it is believed, in seconds on one worker
  double accounted = 0;  // when the totals were brought up to date
  std::optional<double> first_started, last_change, last_start;
  int starts = 0;
  int epoch = 0;  // epochs done
  int total_epochs = 0;
  bool reported = false;  // anything of its progress, be it no epoch yet

  friend bool operator==(const JobState&, const JobState&) = default;
};

std::string WriteJobState(const std::string& job, const JobState& state);

// The text of a state, as far as it can be read.
struct JobStateText {
  std::string job;  // for which it was written; empty: nothing can be read
  std::optional<JobState> state;
};
JobStateText ReadJobState(std::string_view text);

// What users asked for is taken from `kept`; the rest only where it is newer. Who has reported once has
// reported.
void TakeKept(const JobState& kept, JobState& state);

}  // namespace voda
