// The host list of an MPIJob, which Elastic Horovod polls, and the processes that follow from it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "local/proc.h"

namespace voda::local {

// A nominal worker: on this machine all workers are descendants of the launcher.
struct MpiSeat {
  std::string node;
  std::vector<int> devices;
};

// Writes the job's seats to the disk: before the list of hosts grows, and after the processes of a shorter
// list are gone, so that the file never claims less than what runs.
Status WriteSeats(const std::string& job_path, const std::vector<MpiSeat>& seats);
Result<std::vector<MpiSeat>> ReadSeats(const std::string& job_path);  // none where no file is there
void RemoveSeats(const std::string& job_path);

// Writes `localhost:SLOTS` and the script that prints it.
Status WriteHosts(const std::string& job_path, int slots);

// The job's Horovod processes, by rank: those with a HOROVOD_RANK whose parent has none, because a rank's
// own children inherit it.
struct RankProcess {
  int rank = 0;
  Process process;
};
Result<std::vector<RankProcess>> RankProcesses(const std::string& job_path);

}  // namespace voda::local
