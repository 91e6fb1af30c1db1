// The host list of an MPIJob, as Elastic Horovod polls it, and the processes that follow from it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "local/proc.h"

namespace voda::local {

// A nominal worker: on this machine all of them are the launcher's descendants.
struct MpiSeat {
  std::string node;
  std::vector<int> devices;
};

// What the job holds, on the disk: written before the list of hosts grows and after what was taken from it
// is gone, so it never claims less than runs.
Status WriteSeats(const std::string& job_path, const std::vector<MpiSeat>& seats);
std::vector<MpiSeat> ReadSeats(const std::string& job_path);
void RemoveSeats(const std::string& job_path);

// `localhost:SLOTS` and the script that prints it.
Status WriteHosts(const std::string& job_path, int slots);

// The job's Horovod processes, by rank: those with a HOROVOD_RANK whose parent has none, for a rank's own
// children inherit it.
struct RankProcess {
  int rank = 0;
  Process process;
};
std::vector<RankProcess> RankProcesses(const std::string& job_path);

}  // namespace voda::local
