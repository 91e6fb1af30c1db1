// RunChild: a program gets text on stdin and answers on stdout, within limits of time and size.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda {

struct ChildLimits {
  double timeout_seconds = 10;
  std::size_t output_bytes = std::size_t{64} << 20;
};

// What the program printed, if it ended with exit code 0 within the limits. It is searched on PATH unless its
// name has a slash, runs without a shell in a process group of its own, and its stderr is ours. When this
// returns, the program and whatever it started in its group are dead and reaped. Linux only (memfd).
Result<std::string> RunChild(const std::vector<std::string>& argv, std::string_view input,
                             const ChildLimits& limits);

}  // namespace voda
