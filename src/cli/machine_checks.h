// What `voda doctor` finds on this machine: one line for each thing that jobs or `voda up` need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace voda {

struct Finding {
  enum class Grade : std::uint8_t { kOk, kWarn, kFail } grade = Grade::kOk;
  std::string what;
  std::string found;
  std::string fix;  // empty where nothing is to be done
};

Finding CheckKernel();
Finding CheckClock();
Finding CheckSharedMemory();
Finding CheckMemoryGroups();
Finding CheckGpus();
// The program on PATH that runs PyTorchJobs, and the torch it brings; the torch that `python3` sees.
std::vector<Finding> CheckTorch();
Finding CheckHorovod();
// Writable, with room for the store and logs; a token that others cannot read.
std::vector<Finding> CheckDataFolder(const std::string& folder);
// Whether nothing listens on this port of the loopback address.
bool PortIsFree(int port);

}  // namespace voda
