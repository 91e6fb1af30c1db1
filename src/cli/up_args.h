// How `voda up` reads --listen, --slots, --nodes and --gpu-type. Nothing here asks the machine.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "local/gpus.h"
#include "service/service.h"

namespace voda {

struct ListenAddress {
  std::string host;  // empty if not given
  int port = -1;     // -1 if not given
};
// "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", ":8000"
Result<ListenAddress> ParseListen(const std::string& text);

struct NodeFlags {
  int slots = 0;         // 0 if not given
  std::string nodes;     // "a:4,b:4:v100": name, slots, and the GPU type if it differs
  std::string gpu_type;  // if empty, the type that is found
};

struct OfferedNodes {
  std::vector<DeclaredNode> nodes;
  std::string note;     // what the nodes offer, for the log
  std::string warning;  // empty if there is none
};

// Each slot is a GPU, in order. Slots have no GPU if the machine has none or the type is cpu. They also
// have none if there are fewer GPUs than slots, or if the driver does not answer; then the flags must name
// the type, because a type that changed with the state of the driver would stop the jobs of the other type.
Result<OfferedNodes> OfferNodes(const NodeFlags& flags, const Result<std::vector<GpuInfo>>& found,
                                const std::string& host, int cores);

}  // namespace voda
