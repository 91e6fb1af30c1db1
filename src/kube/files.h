// Files: small files that say something about us, read whole.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace voda::kube {

inline constexpr std::size_t kMaxSmallFile = std::size_t{8} << 20;

// An error names the file and why. A file that others may change under us (`changes`) must be a regular one:
// reading it never waits for somebody.
Result<std::string> ReadSmallFile(const std::string& path, bool changes, std::size_t limit = kMaxSmallFile);

}  // namespace voda::kube
