#include "cli/policy_args.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "exec/exec_policy.h"

namespace voda {

namespace {

constexpr double kLongestTimeout = 86400;

Result<std::unique_ptr<Policy>> MakeExec(std::string_view command, const PolicyOptions& options) {
  if (command.find_first_not_of(' ') == command.npos) {
    return Error{"exec: names no program; give it behind the colon, such as exec:./mine.py"};
  }
  double timeout = kExecTimeoutSeconds;
  for (const auto& [key, value] : options) {
    if (key != "timeout")
      return Error{fmt::format("unknown option \"{}\" of exec; the only one is timeout", key)};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), timeout);
    const bool number = error == std::errc() && end == value.data() + value.size();
    if (!number || !(timeout > 0 && timeout <= kLongestTimeout)) {
      return Error{fmt::format("option timeout: \"{}\" is not usable; give seconds above 0, at most {}",
                               value, kLongestTimeout)};
    }
  }
  return MakeExecPolicy(std::string(command), timeout);
}

}  // namespace

void AddPolicyFlags(CLI::App& command, PolicyArgs& args, const std::string& algorithm_help) {
  command.add_option("-a,--algorithm", args.algorithm, algorithm_help)
      ->capture_default_str()
      ->type_name("NAME");
  command
      .add_option("--option", args.options,
                  "an option of the algorithm, such as threshold=1800; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

Result<PolicyOptions> ParsePolicyOptions(const std::vector<std::string>& options) {
  PolicyOptions parsed;
  for (const std::string& option : options) {
    const auto equals = option.find('=');
    if (equals == option.npos || equals == 0) {
      return Error{fmt::format("--option \"{}\" is not KEY=VALUE; give for example threshold=1800", option)};
    }
    if (!parsed.emplace(option.substr(0, equals), option.substr(equals + 1)).second) {
      return Error{fmt::format("--option {} is given twice", option.substr(0, equals))};
    }
  }
  return parsed;
}

Result<std::unique_ptr<Policy>> MakeNamedPolicy(std::string_view algorithm, const PolicyOptions& options) {
  if (algorithm.substr(0, kExecPrefix.size()) == kExecPrefix) {
    return MakeExec(algorithm.substr(kExecPrefix.size()), options);
  }
  return MakePolicy(algorithm, options);
}

Result<std::unique_ptr<Policy>> MakePolicyFrom(const PolicyArgs& args) {
  const auto options = ParsePolicyOptions(args.options);
  if (!options) return options.error();
  return MakeNamedPolicy(args.algorithm, *options);
}

}  // namespace voda
