// The subcommands of voda, one file each. A command that fails says why on stderr and throws
// CLI::RuntimeError with its exit code.
#pragma once

namespace CLI {
class App;
}

namespace voda {

// Exit codes of every command (docs/CLI.md).
inline constexpr int kExitError = 1;        // something went wrong
inline constexpr int kExitBadInput = 2;     // wrong usage or unacceptable input
inline constexpr int kExitNotFound = 3;     // no such job or node
inline constexpr int kExitUnreachable = 4;  // the server cannot be reached, or does not let us in
// For `voda wait`.
inline constexpr int kExitJobFailed = 5;
inline constexpr int kExitTimeout = 6;
inline constexpr int kExitJobCanceled = 7;

// Jobs.
void AddCreate(CLI::App& app);
void AddGet(CLI::App& app);
void AddDescribe(CLI::App& app);
void AddExplain(CLI::App& app);
void AddLogs(CLI::App& app);
void AddWait(CLI::App& app);
void AddJobVerbs(CLI::App& app);  // delete, hold, resume
void AddTop(CLI::App& app);
// The cluster.
void AddUp(CLI::App& app);
void AddSet(CLI::App& app);
void AddNodeVerbs(CLI::App& app);  // cordon, uncordon, drain, add node, remove node
// Without a server.
void AddPlan(CLI::App& app);
void AddSimulate(CLI::App& app);
void AddAlgorithms(CLI::App& app);
void AddDoctor(CLI::App& app);
void AddRelease(CLI::App& app);
void AddStore(CLI::App& app);  // rebuild
void AddCompletion(CLI::App& app);

}  // namespace voda
