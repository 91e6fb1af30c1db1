// JudgeExit: what the end of a worker that nobody asked to stop means for its job. A pure function.
#pragma once

#include <string>

#include "local/start_files.h"
#include "spec/job_spec.h"

namespace voda::local {

struct EndFacts {
  ExitRecord exit;         // not a success
  double ran = 0;          // seconds
  bool disturbed = false;  // whether the job's workers changed, or another worker ended, just before
  int failures = 0;        // earlier failures that count
  int disturbed_row = 0;   // how many verdicts in a row before were `disturbed`
};

// How many failures in a row may be the effect of something else. Otherwise a job that dies at every change
// would be started for ever.
inline constexpr int kDisturbedMax = 20;

struct ExitJudgement {
  ExitVerdict verdict;
  std::string rule;  // for the message, such as "failure 7, backoffLimit 6"
};

ExitJudgement JudgeExit(const JobSpec& spec, const EndFacts& facts, double disturbed_seconds);

// "exited with code 1", "was killed by signal 9 (Killed)".
std::string Describe(const ExitRecord& exit);

// The last lines of a worker's output: at most 20 lines and 4 KiB, safe on a terminal and valid UTF-8.
std::string LastLines(std::string_view text);
// The same for the log of a start folder.
std::string LastLinesOf(const std::string& folder);

}  // namespace voda::local
