// Judge: what the end of a worker that nobody asked for means for its job. Pure.
#pragma once

#include <string>

#include "local/records.h"
#include "spec/job_spec.h"

namespace voda::local {

struct EndFacts {
  ExitRecord exit;         // not a success
  double ran = 0;          // seconds
  bool disturbed = false;  // a change of the job's workers, or another's end, was just before
  int failures = 0;        // counted before
  int disturbed_row = 0;   // verdicts `disturbed` in a row before
};

// How many ends in a row may be put down to something else. A job that dies at every change would otherwise
// be started for ever.
inline constexpr int kDisturbedMax = 20;

struct Judgement {
  Verdict verdict;
  std::string rule;  // "failure 7, backoffLimit 6": what the message says of it
};

Judgement Judge(const JobSpec& spec, const EndFacts& facts, double disturbed_seconds);

// "exited with code 1", "was killed by signal 9 (Killed)".
std::string Describe(const ExitRecord& exit);

// The last lines of what a worker printed: at most 20 lines and 4 KiB, safe on a terminal and valid UTF-8.
std::string LastLines(std::string_view text);
// Of a start folder.
std::string LastLinesOf(const std::string& folder);

}  // namespace voda::local
