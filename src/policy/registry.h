// The table of scheduling algorithms: names as accepted everywhere, with their options.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

namespace voda {

// Option name -> value as given, for example {"threshold", "1800"}.
using PolicyOptions = std::map<std::string, std::string, std::less<>>;

struct OptionInfo {
  std::string_view name;
  std::string_view fallback;
  std::string_view help;
};

struct PolicyInfo {
  std::string_view name;
  std::string_view summary;
  std::vector<OptionInfo> options;
  // Called with a value for every option of the list; fails on a value it cannot use.
  std::function<Result<std::unique_ptr<Policy>>(const PolicyOptions&)> make;
};

inline constexpr std::string_view kDefaultPolicy = "Price";

const std::vector<PolicyInfo>& Policies();

// Fails on an unknown name or option with a message that lists the known ones.
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const PolicyOptions& options = {});

}  // namespace voda
