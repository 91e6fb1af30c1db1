// Processes as /proc shows them. A process is named by its id and its start time, so that a signal never
// reaches another one that got the same id.
//
// A process that is not seen is gone. What cannot be read, for example because there is no free descriptor,
// is an error instead: nobody may conclude from it that a process has ended.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda::local {

struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start = 0;
  bool zombie = false;
};

Result<std::optional<Process>> FindProcess(pid_t pid);
Result<std::vector<Process>> AllProcesses();  // by id
// The children of a process, their children and so on, without zombies.
Result<std::vector<Process>> Descendants(pid_t root);
// Sends a signal; returns whether that very process was there to get it.
bool Signal(const Process& process, int signal);

// The environment that a process was started with: NAME=value pairs, each ended by a zero byte. Empty if the
// process is gone or another user's.
Result<std::string> EnvironmentOf(pid_t pid);
std::optional<std::string_view> Lookup(std::string_view environment, std::string_view name);

// A process that was started for a job, by its VODA_JOB_DIR. Zombies do not count.
struct JobProcess {
  Process process;
  std::string environment;
};
// The processes of one job, whose VODA_JOB_DIR is `work`. This reads all of /proc.
Result<std::vector<JobProcess>> ProcessesOfJob(const std::string& work);
// The processes of all jobs whose folders are below `folder`.
Result<std::vector<JobProcess>> ProcessesOfJobsBelow(const std::string& folder);

}  // namespace voda::local
