// The name under which a job runs: what was submitted and when, `mnist-20260101-120000` (UTC).
#pragma once

#include <functional>
#include <string>

namespace voda {

// Adds -2, -3 … where `taken` says that the name is in use.
std::string UniqueJobName(const std::string& submitted, double now,
                          const std::function<bool(const std::string&)>& taken);

}  // namespace voda
