// Files and standard streams for commands, with errors for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace voda {

// Reads a whole file, or stdin for "-". Fails at more than `limit` bytes.
Result<std::string> ReadInput(const std::string& path, std::size_t limit);

// Writes all of the text to stdout; a full disk or a closed pipe is an error.
Status WriteOutput(std::string_view text);

}  // namespace voda
