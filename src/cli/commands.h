// The subcommands of voda, one file each. A command that fails throws CLI::RuntimeError with its exit code,
// after saying why on stderr.
#pragma once

namespace CLI {
class App;
}

namespace voda {

// Exit codes of every command.
inline constexpr int kExitError = 1;     // it went wrong
inline constexpr int kExitBadInput = 2;  // usage, or an input that is not acceptable

void AddAlgorithms(CLI::App& app);
void AddPlan(CLI::App& app);
void AddSimulate(CLI::App& app);

}  // namespace voda
