// What torchrun does inside a worker, as seen from outside: its training processes, whether its agents have
// formed their group, and how often it started training anew because that had failed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "local/proc.h"
#include "spec/job_spec.h"

namespace voda::local {

// Whether the job's command says so: torchrun or torch.distributed.run as a word, also of a shell's text. A
// script of the user's may still start it: TorchrunPath of its workers then tells.
bool NamesTorchrun(const JobSpec& spec);

// A process that an agent started, and what it was told.
struct Training {
  int worker = 0;
  int group = 0;     // workers in its group
  double began = 0;  // BootTime()
  Process process;
};
// Those below one job's folder: another Voda on this machine may have a job of the same number.
std::vector<Training> TrainingProcesses(const std::string& job_path);

// Whether every agent of these workers has a training process that knows the group's present size.
bool TorchrunFormed(const std::string& job_path, const std::set<int>& workers);

// PET_LOG_DIR of a start: torchrun makes a folder for each attempt there.
std::string TorchrunPath(const std::string& start_folder);

struct Attempt {
  int number = 0;  // failures before it; a change of the group does not count
  // When the attempt before it began, BootTime(); 0: there was none, or it cannot be told.
  double previous_began = 0;
};

// The latest attempt of a start; number 0 also where there is nothing to see.
Attempt LastAttempt(const std::string& start_folder, double now);

}  // namespace voda::local
