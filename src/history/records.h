// What the history keeps: values, as they are written and read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ledger/job_state.h"
#include "model/event.h"
#include "model/job_kind.h"
#include "model/job_status.h"

namespace voda {

// A job from its acceptance on. What users asked for and the totals are the state.
struct JobRecord : JobState {
  std::int64_t id = 0;
  std::string name;
  std::string category;
  std::string gpu_type;
  JobKind kind = JobKind::kPyTorchJob;
  std::string token;  // tells it from others of its name
  JobStatus status = JobStatus::kSubmitted;
  std::string message;
  std::string warnings;   // joined by newlines
  bool deleting = false;  // canceled by its user; its workers are being stopped
  int gpus_per_worker = 1;
  double submitted = 0;
  std::optional<double> ended;
  int failures = 0;
  int exit_code = kNoExitCode;  // of the worker that its end followed from, as a shell reports it
  std::optional<double> loss, progress_time;
};

struct SizeRecord {
  double time = 0;
  std::int64_t round = 0;
  int from = 0, to = 0;
  std::string reason, trigger;
  std::vector<std::string> nodes;  // of the workers, in their order, as the round placed them
};

struct RoundRecord {
  std::string gpu_type;
  std::int64_t round = 0;
  double time = 0;
  std::string algorithm, trigger, note;
  double seconds = 0;
  std::string changes;  // JSON array, as the API shows it
};

// A mean of the collector (estimate/collector.h): kind "epoch" has workers and nodes, "start", "rescale" and
// "migration" are stalls. Where the epochs of a category's jobs differ, "typical" has the length of the
// typical job and how many it is typical of (0: they differ no more), and "time" has what was fitted for
// workers and nodes (estimate/job_epochs.h). And of kind "work", what the latest jobs of a category took: one
// for each number of workers from 0 on.
struct MeanRecord {
  std::string gpu_type, category, kind;
  int workers = 0, nodes = 0;
  double value = 0;
  int count = 0;
};

inline constexpr std::string_view kWorkMean = "work";

// What is kept of the past.
struct Retention {
  int ended_jobs = 20'000;
  double ended_seconds = 90 * 86400.0;
  int rounds = 20'000;
  int sizes_per_job = 1'000;  // the newest
  int means = 100'000;        // those written last; what finished jobs took counts apart
  int finished = 100'000;
};

}  // namespace voda
