// Names of jobs: under which one runs, `mnist-20260101-120000` (UTC), and who may read them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace voda {

// Adds -2, -3 … where `taken` says that the name is in use.
std::string UniqueJobName(const std::string& submitted, double now,
                          const std::function<bool(const std::string&)>& taken);

// The text for those who may see the jobs of one namespace: NAMESPACE/NAME of others is left out.
std::string WithoutOthers(std::string_view text, std::string_view name_space);

}  // namespace voda
