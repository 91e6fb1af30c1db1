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

// Returns what the program printed, if it ended with exit code 0 within the limits; see os/run.h. The
// program is searched on PATH unless its name has a slash, and runs without a shell.
Result<std::string> RunChild(const std::vector<std::string>& argv, std::string_view input,
                             const ChildLimits& limits);

}  // namespace voda
