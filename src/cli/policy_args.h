// --algorithm and --option, the same for every command that takes a policy.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/registry.h"

namespace CLI {
class App;
}

namespace voda {

inline constexpr std::string_view kExecPrefix = "exec:";

struct PolicyArgs {
  std::string algorithm{kDefaultPolicy};
  std::vector<std::string> options;  // "key=value"
};

// `args` must outlive the parsing. Commands that take several names give their own help for --algorithm.
void AddPolicyFlags(CLI::App& command, PolicyArgs& args,
                    const std::string& algorithm_help = "see `voda algorithms`, or exec:PROGRAM");

Result<PolicyOptions> ParsePolicyOptions(const std::vector<std::string>& options);

// Makes a built-in algorithm, or the program of exec:PROGRAM with its option timeout (seconds).
Result<std::unique_ptr<Policy>> MakeNamedPolicy(std::string_view algorithm, const PolicyOptions& options);
Result<std::unique_ptr<Policy>> MakePolicyFrom(const PolicyArgs& args);

}  // namespace voda
