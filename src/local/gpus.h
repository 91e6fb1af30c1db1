// The machine's NVIDIA GPUs, as the driver's library (NVML) knows them. The library is loaded at run time:
// a machine without it has no GPUs, which is not an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda {

struct GpuInfo {
  int index = 0;
  std::string name;  // "NVIDIA H200"
  std::string type;  // "nvidia-h200"
  std::int64_t memory_bytes = 0;
};

struct GpuUsage {
  int index = 0;
  double utilization = 0;  // 0 to 1
  std::int64_t memory_used_bytes = 0;
};

// The GPUs by index. Fails if there is a driver that does not answer.
Result<std::vector<GpuInfo>> FindGpus();
// What is unknown about a GPU is 0.
Result<std::vector<GpuUsage>> ReadGpuUsage();

// Makes a GPU type of a product's name: lower case, words joined by dashes, at most 63 characters as in a
// label.
std::string GpuTypeOf(std::string_view name);

}  // namespace voda
