// The reference's POST /allocation: a number of GPUs and jobs in, GPUs per job out. No nodes, so sizes only.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/snapshot.h"

namespace voda {

struct AllocationRequest {
  std::string scheduler;  // who asks
  std::string algorithm;
  Snapshot snapshot;  // one node with all GPUs
};

Result<AllocationRequest> ParseAllocationRequest(std::string_view body, double now);

// The decision of the algorithm that the request names: {"job": GPUs, …}.
Result<std::string> Allocate(const AllocationRequest& request);

}  // namespace voda
