// The checks of `voda doctor` on this machine: one line for each thing that jobs or `voda up` need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace voda {

struct Finding {
  enum class Grade : std::uint8_t { kOk, kWarn, kFail } grade = Grade::kOk;
  std::string what;
  std::string found;
  std::string fix;  // empty if there is nothing to do
};

Finding CheckKernel();
Finding CheckClock();
Finding CheckSharedMemory();
Finding CheckMemoryGroups();
Finding CheckGpus();
// The program on PATH that runs PyTorchJobs with its torch, and the torch that `python3` finds.
std::vector<Finding> CheckTorch();
Finding CheckHorovod();
// Whether the folder is writable, has room for the store and logs, and keeps the token from other users.
std::vector<Finding> CheckDataFolder(const std::string& folder);
// Whether nothing listens on this port of the loopback address.
bool PortIsFree(int port);

}  // namespace voda
