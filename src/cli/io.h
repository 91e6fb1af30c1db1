// Files and standard streams for commands, with the errors people should see.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace voda {

// The whole file, or stdin for "-". Stops reading, and fails, at more than `limit` bytes.
Result<std::string> ReadInput(const std::string& path, std::size_t limit);

// All of the text on stdout; a full disk or a closed pipe is an error.
Status WriteOutput(std::string_view text);

}  // namespace voda
