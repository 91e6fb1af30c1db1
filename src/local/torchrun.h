// What torchrun does inside a worker, as seen from outside: its training processes, whether its agents have
// formed their group, and how often it started training anew because that had failed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "local/proc.h"
#include "spec/job_spec.h"

namespace voda::local {

// Whether the job's command names torchrun or torch.distributed.run as a word, also within a shell's text.
// A user's script may still start it, which the TorchrunPath of its workers shows.
bool NamesTorchrun(const JobSpec& spec);

// A training process that an agent started, and what it was told.
struct Training {
  int worker = 0;
  int group = 0;     // workers in its group
  double began = 0;  // UptimeNow()
  Process process;
};
// Training processes below one job's folder: another Voda on this machine may have a job of the same number.
Result<std::vector<Training>> TrainingProcesses(const std::string& job_path);

// Whether every agent of these workers is seen to have a training process that knows the group's present
// size.
bool TorchrunFormed(const std::string& job_path, const std::set<int>& workers);

// The PET_LOG_DIR of a start, in which torchrun makes a folder for each attempt.
std::string TorchrunPath(const std::string& start_folder);

struct Attempt {
  int number = 0;  // failures before it; a change of the group does not count
  // When the previous attempt began, by UptimeNow(); 0 if there was none or it is unknown.
  double previous_began = 0;
};

// The latest attempt of a start, which began at `started` by UptimeNow(); its number is also 0 if nothing can
// be seen.
Attempt LastAttempt(const std::string& start_folder, double started, double now);

}  // namespace voda::local
