// What `voda up` makes of --listen, --slots, --nodes and --gpu-type. Nothing is asked of the machine here.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "local/gpus.h"
#include "service/service.h"

namespace voda {

struct ListenAddress {
  std::string host;  // empty: not said
  int port = -1;     // -1: not said
};
// "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", ":8000"
Result<ListenAddress> ParseListen(const std::string& text);

struct NodeFlags {
  int slots = 0;         // 0: not said
  std::string nodes;     // "a:4,b:4:v100": name, slots, and a GPU type where it differs
  std::string gpu_type;  // empty: what is found
};

struct OfferedNodes {
  std::vector<DeclaredNode> nodes;
  std::string note;     // what they are, for the log
  std::string warning;  // empty: none
};

// A slot is a GPU, the first ones in turn; on a machine without any, and where the type is cpu, slots have
// none. Where there are more slots than GPUs, or the GPUs cannot be asked for, slots have none either, and
// the flags must name their type: one that changed with the state of a driver would stop the jobs of the
// other.
Result<OfferedNodes> OfferNodes(const NodeFlags& flags, const Result<std::vector<GpuInfo>>& found,
                                const std::string& host, int cores);

}  // namespace voda
